"""Everything between your losses and `optimizer.step()`, and an explanation when it fails."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradwright.doctor.watch import watch
    from gradwright.engine import backward, gramian, jacobian
    from gradwright.loops import Window, cut, tbptt, windows

__version__ = "0.1.0"
__all__ = ["backward", "jacobian", "gramian", "windows", "Window", "tbptt", "cut", "watch"]

_HOMES = {
    "backward": "gradwright.engine",
    "gramian": "gradwright.engine",
    "jacobian": "gradwright.engine",
    "tbptt": "gradwright.loops",
    "windows": "gradwright.loops",
    "Window": "gradwright.loops",
    "cut": "gradwright.loops",
    "watch": "gradwright.doctor.watch",
}
_PACKAGES = ("architecture", "engine", "loops", "monitor", "weighting")


def __getattr__(name: str) -> object:
    """What is public, loaded at first use: the command line starts without torch."""
    if name in _PACKAGES:
        return import_module(f"gradwright.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOMES[name]), name)
    return globals()[name]
