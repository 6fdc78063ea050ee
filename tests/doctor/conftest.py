"""Small programs, written to files and run in this process under the doctor."""

import importlib.util
import itertools
import sys
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from gradwright.diagnostic import Fix, apply_to_files
from gradwright.doctor.crash import Crash
from tests.doctor.evidence.crashes import crash_of

_NUMBERS = itertools.count()
_HEAD = "import torch\nfrom torch import nn\n\n"


class Programs:
    """Runs programs that begin with the imports of torch and nn: their text starts at line 4."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = patch

    def crash(self, text: str) -> Crash:
        """How the program ends."""
        return crash_of(lambda: self.run(_HEAD + dedent(text).removeprefix("\n")))

    def repaired(self, fix: Fix) -> str:
        """The program with the fix applied, which has run to its end."""
        ((_, text),) = apply_to_files(fix).items()
        self.run(text)
        return text.removeprefix(_HEAD)

    def run(self, text: str) -> None:
        name = f"program_{next(_NUMBERS)}"
        path = self._folder / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        self._patch.setitem(sys.modules, name, module)
        torch.manual_seed(0)
        spec.loader.exec_module(module)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path, monkeypatch)
