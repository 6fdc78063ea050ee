"""Which package of gradwright may import what, and a reader of imports that finds the offences."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = ""  # gradwright itself: __init__.py and __main__.py
ANYTHING = None
VERSION = "gradwright.__version__"  # a fact about the whole, which every layer may state


class Layer(NamedTuple):
    """What a package may import beside the standard library and itself."""

    ours: set[str]
    others: set[str] | None  # ANYTHING for integrations


LAYERS = {
    "diagnostic": Layer(set(), {"rich", "jinja2"}),
    "graph": Layer({"diagnostic"}, {"torch"}),
    "engine": Layer({"diagnostic", "graph"}, {"torch"}),
    "loops": Layer({"diagnostic", "graph", "engine"}, {"torch", "matplotlib"}),
    "weighting": Layer({"diagnostic", "graph", "engine"}, {"torch"}),
    "monitor": Layer({"diagnostic", "graph", "engine"}, {"torch", "matplotlib"}),
    "editing": Layer({"diagnostic", "graph", "engine"}, {"torch", "safetensors"}),
    "doctor": Layer({"diagnostic", "graph"}, {"torch", "rich", "jinja2"}),
    "architecture": Layer(set(), {"torch"}),
}
LAYERS[TOP] = Layer(set(LAYERS), {"torch"})
LAYERS["integrations"] = Layer(set(LAYERS), ANYTHING)


class Import(NamedTuple):
    """One imported name, made absolute: `from ..graph import walk` is `gradwright.graph.walk`."""

    line: int
    name: str


def offences(package: Path) -> list[str]:
    """Each import in the folder `package` that breaks the order, as a sentence."""
    found = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        home = parts[0] if len(parts) > 1 else _layer_of_module(parts[0])
        where = path.relative_to(package.parent).as_posix()
        if home not in LAYERS:
            found.append(f"{where}: {home!r} has no place in tests/layers.py")
            continue
        found += [
            f"{where}:{line}: {home or 'gradwright'} may not import {name}"
            for line, name in imports(path, package)
            if not _allowed(name, home, package)
        ]
    return found


def name_clashes(package: Path) -> set[str]:
    """Names that `__all__` exports and a package or module directly below `package` also has.

    Importing the one would overwrite the other.
    """
    below = {path.stem for path in package.iterdir() if path.is_dir() or path.suffix == ".py"}
    return _exported(package / "__init__.py") & below


def imports(path: Path, package: Path) -> Iterator[Import]:
    """All imports of a file, those inside functions included, in no particular order."""
    folder = [package.name, *path.relative_to(package).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (Import(node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = folder[: len(folder) - level + 1] if level else []
                base = [*above, *([module] if module else [])]
                yield from (Import(node.lineno, ".".join([*base, a.name])) for a in names)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                if _called_name(function) in {"import_module", "__import__"}:
                    yield Import(node.lineno, name)


def _called_name(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _allowed(name: str, home: str, package: Path) -> bool:
    if name == VERSION:
        return True
    root, *rest = name.split(".")
    if root == package.name:
        target = rest[0] if rest and (package / rest[0]).is_dir() else TOP
        return target == home or target in LAYERS[home].ours
    others = LAYERS[home].others
    return root in sys.stdlib_module_names or others is ANYTHING or root in others


def _layer_of_module(stem: str) -> str:
    return TOP if stem in {"__init__", "__main__"} else stem


def _exported(init: Path) -> set[str]:
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return set(ast.literal_eval(value))
    return set()
