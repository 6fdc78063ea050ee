"""The shared folder is found where it is, and its absence skips."""

from pathlib import Path

import pytest

from tests.data import shared


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cases" / "crash").mkdir(parents=True)
    monkeypatch.setenv("GRADWRIGHT_SHARED", str(tmp_path))

    assert shared("cases/crash") == tmp_path / "cases" / "crash"


def test_absence_skips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADWRIGHT_SHARED", str(tmp_path))

    with pytest.raises(pytest.skip.Exception, match="no shared 'cases/crash' here"):
        shared("cases/crash")
