"""README.md lists the rules as they are."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_readme_has_the_table_of_all_rules() -> None:
    spec = importlib.util.spec_from_file_location("readme_rules", ROOT / "docs" / "readme_rules.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "GW101" in module.table()
    assert module.with_table(text) == text, "run: python docs/readme_rules.py"
