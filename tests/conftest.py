"""What holds for every test: one torch thread, repeatable examples, slow tests only when asked."""

import os
from pathlib import Path

import hypothesis
import pytest

from tests.sampling import sample

# Before torch is loaded, and for the programs that tests start: several workers share the cores.
os.environ["OMP_NUM_THREADS"] = "1"

# No deadline: the first example of a test pays for loading torch.
hypothesis.settings.register_profile("gradwright", deadline=None, derandomize=True)
hypothesis.settings.load_profile("gradwright")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--slow`."""
    parser.addoption(
        "--slow",
        choices=["none", "sample", "all"],
        default="none",
        help="which tests marked slow to run: none, every fourth of each test function, all",
    )


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Keeps `--doctest-modules` from importing the helpers and sample programs among the tests."""
    inside = Path(__file__).parent in collection_path.parents
    helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if inside and helper else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the slow tests that `--slow` does not ask for."""
    slow = [item for item in items if item.get_closest_marker("slow")]
    match config.getoption("--slow"):
        case "all":
            kept = slow
        case "sample":
            kept = [slow[position] for position in sample([_function(item) for item in slow])]
        case _:
            kept = []
    dropped = set(slow) - set(kept)
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=list(dropped))


def _function(item: pytest.Item) -> str:
    """The test function's path and name, without its parameters."""
    return item.nodeid.partition("[")[0]
