"""Everything between your losses and `optimizer.step()`, and an explanation when it fails."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradwright.doctor.watch import watch

__version__ = "0.1.0"
__all__ = ["watch"]


def __getattr__(name: str) -> object:
    """The public functions, loaded at first use: the command line starts without torch."""
    if name == "watch":
        from gradwright.doctor.watch import watch

        globals()[name] = watch
        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
