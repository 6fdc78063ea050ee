"""Finds the programs and data sets that the repository is too small for."""

import os
from pathlib import Path

import pytest

BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared"


def shared(name: str) -> Path:
    """The shared file or folder `name`; the test, or the whole test file, is skipped without it.

    The folder lies beside the repository. `GRADWRIGHT_SHARED` names another one.
    """
    folder = Path(os.environ.get("GRADWRIGHT_SHARED") or BESIDE_THE_REPOSITORY)
    path = folder / name
    if not path.exists():
        pytest.skip(
            f"no shared {name!r} here; GRADWRIGHT_SHARED can say where it is",
            allow_module_level=True,
        )
    return path
