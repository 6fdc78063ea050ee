import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradwright.diagnostic.names import absolute_name, display_name, relative_name


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/home/me/train.py", "train.py"),
        ("/home/me/nets/moe.py", "nets/moe.py"),
        ("/home/meg/train.py", "/home/meg/train.py"),
        ("/home/me", "/home/me"),
        ("/home/me/", "/home/me/"),
        ("/home/me//odd.py", "/home/me//odd.py"),
        ("/home/me/<string>", "/home/me/<string>"),
        ("<string>", "<string>"),
    ],
)
def test_names_below_the_directory_are_shortened(file: str, expected: str) -> None:
    assert relative_name(file, Path("/home/me")) == expected


def test_the_current_directory_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert relative_name(str(tmp_path / "a.py")) == "a.py"


def test_a_deleted_directory_shortens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert relative_name("/a/b.py") == "/a/b.py"
    monkeypatch.chdir(tmp_path)


@given(st.sampled_from(["/", "/home/me/", "<", ""]), st.text(), st.sampled_from(["/", "/home/me"]))
def test_absolute_undoes_relative(start: str, rest: str, cwd: str) -> None:
    file = start + rest
    if os.path.isabs(file) or file.startswith("<"):
        assert absolute_name(relative_name(file, Path(cwd)), Path(cwd)) == file


def test_a_terminal_cell_is_named_by_its_number() -> None:
    assert display_name("<ipython-input-12-0a1b2c>") == "Cell In[12]"


def test_a_notebook_cell_is_named_by_its_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiler:
        def format_code_name(self, name: str) -> tuple[str, str] | None:
            return ("Cell", "In[4]") if "ipykernel" in name else None

    class Shell:
        compile = Compiler()

    module = ModuleType("IPython")
    monkeypatch.setattr(module, "get_ipython", Shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert display_name("/made/up/ipykernel_1/2.py") == "Cell In[4]"
    assert display_name("/home/me/a.py", Path("/home/me")) == "a.py"
