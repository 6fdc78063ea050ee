"""Which code is the user's, and which belongs to Python, torch and installed packages."""

import os
import sysconfig
from pathlib import Path

import torch

_KNOWN = 20_000  # file names remembered
_GENERATED = ("<frozen ", "<attrs generated", "<__array_function__", "<eval_with_key>", "<torch_")


class UserCode:
    """Answers by file name, each file once.

    User code is all that does not lie in the standard library, in an installed package or in
    gradwright. `own` names folders that count as the user's although they lie in one of those:
    the folder of a script that is run from inside an installed package.
    """

    def __init__(self, own: tuple[str, ...] = ()) -> None:
        self._own = tuple(os.path.realpath(folder) + os.sep for folder in own)
        self._library = _library_folders()
        self.known: dict[str, bool] = {}  # the tracers look here first: half the cost of a call

    def __call__(self, filename: str) -> bool:
        """Whether the code of that file is the user's."""
        answer = self.known.get(filename)
        if answer is None:
            if len(self.known) >= _KNOWN:
                self.known.clear()  # in place: the tracers hold it
            answer = self.known[filename] = self._decide(filename)
        return answer

    def _decide(self, filename: str) -> bool:
        if filename.startswith("<"):
            return not filename.startswith(_GENERATED)
        path = os.path.realpath(filename)
        if path.startswith(_GRADWRIGHT):
            return False
        return path.startswith(self._own) or not path.startswith(self._library)


_GRADWRIGHT = str(Path(__file__).resolve().parents[2]) + os.sep


def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_paths()[name] for name in names}
    folders.add(str(Path(torch.__file__).parents[1]))
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)
