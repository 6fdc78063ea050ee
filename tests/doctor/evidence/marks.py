"""Lines of a test's own source, found by a remark on them."""

from pathlib import Path


def line_marked(file: str, name: str) -> int:
    """The number of the line that ends in `# MARK name`."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# MARK {name}")]
    return found
