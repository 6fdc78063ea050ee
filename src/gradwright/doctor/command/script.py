"""Run a program as Python would: as `__main__`, with its own arguments and search path."""

import builtins
import importlib.util
import io
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader, Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType


class ProgramError(Exception):
    """A program that cannot be started; the message is complete."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that has been found and compiled. `spec` is that of `python -m`, else None."""

    file: str
    code: CodeType
    loader: Loader
    spec: ModuleSpec | None = None

    def run(self) -> None:
        """Run it in a fresh `__main__`; what it raises is raised."""
        module = ModuleType("__main__")
        module.__dict__.update(
            __package__=None if self.spec is None else self.spec.parent,
            __loader__=self.loader,
            __spec__=self.spec,
            __annotations__={},
            __builtins__=builtins,
            __file__=self.file,
            __cached__=None if self.spec is None else self.spec.cached,
        )
        sys.modules["__main__"] = module
        _Compiled(self.code).exec_module(module)


class _Compiled(InspectLoader):
    """The import system's way of running code in a module."""

    def __init__(self, code: CodeType) -> None:
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def get_source(self, fullname: str) -> None:
        return None


def home_of(name: str, is_module: bool) -> str:
    """The folder of the script, or of the package that the module belongs to; "" if unknown."""
    if not is_module:
        return os.path.dirname(os.path.realpath(name))
    top = name.partition(".")[0]
    if top in sys.modules or not top:
        return ""
    spec = PathFinder.find_spec(top, [os.getcwd(), *sys.path])
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return os.path.realpath(folders[0]) if folders else ""


def open_script(path: str, arguments: Sequence[str]) -> Program:
    """Find and compile the script; set `sys.argv` and `sys.path[0]` for it."""
    full = os.path.abspath(path)
    program = Program(full, _compile(path, full), SourceFileLoader("__main__", full))
    sys.argv = [path, *arguments]
    _search_in(os.path.dirname(os.path.realpath(full)))
    return program


def open_module(name: str, arguments: Sequence[str]) -> Program:
    """Find and compile the module as `python -m` does: its parent packages are imported."""
    sys.argv = ["-m", *arguments]
    _search_in(os.getcwd())
    spec = _spec_of(name)
    code = _code_of(spec)
    file = spec.origin or code.co_filename
    sys.argv[0] = file
    assert spec.loader is not None  # `_code_of` has used it
    return Program(file, code, spec.loader, spec)


def _search_in(folder: str) -> None:
    """Make `folder` the first one searched, in the place of gradwright's own."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _compile(path: str, full: str) -> CodeType:
    try:
        with io.open_code(full) as file:
            source = file.read()
    except OSError as error:
        raise ProgramError(
            f"gradwright: expected a script, but cannot read {path!r}: {error.strerror}. "
            f"Names count from {os.getcwd()}."
        ) from error
    try:
        return compile(source, full, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:  # ValueError: null bytes
        raise ProgramError("".join(traceback.format_exception_only(error)).rstrip()) from error


def _spec_of(name: str) -> ModuleSpec:
    """The spec of the module, or of the `__main__` inside the package, of that name."""
    if name.startswith("."):
        raise ProgramError(f"gradwright: expected an absolute module name, found {name!r}.")
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # a parent package that is missing, or one that is there and misses something itself
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    except ValueError as error:
        raise ProgramError(f"gradwright: expected a module name, found {name!r}.") from error
    if spec is None:
        raise ProgramError(f"gradwright: no module named {name!r}. Names count from {os.getcwd()}.")
    if spec.submodule_search_locations is None:
        return spec
    if name.endswith("__main__"):
        raise ProgramError(f"gradwright: cannot run the package {name!r} as a module.")
    return _spec_of(f"{name}.__main__")


def _code_of(spec: ModuleSpec) -> CodeType:
    get_code = getattr(spec.loader, "get_code", None)  # an extension module has none
    try:
        code: CodeType | None = get_code and get_code(spec.name)
    except SyntaxError as error:
        raise ProgramError("".join(traceback.format_exception_only(error)).rstrip()) from error
    if code is None:
        raise ProgramError(f"gradwright: the module {spec.name!r} has no code to run.")
    return code
