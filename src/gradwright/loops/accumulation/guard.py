"""What must not happen while a window is open: a step, and writing into `.grad`."""

from torch import Tensor

from gradwright.loops.accumulation.parameters import Trained
from gradwright.loops.errors import WindowError


class Guard:
    """Notices that others changed the parameters or their gradients between two backwards.

    It compares version counters, which torch raises with every write in place, so it reads no
    memory and waits for no device.
    """

    def __init__(self, trained: Trained) -> None:
        self._trained = trained
        self._versions = [_version(parameter) for parameter in trained.tensors]
        self._gradients: list[tuple[Tensor | None, int]] = []

    def note_gradients(self) -> None:
        """Remember the gradients as a backward of the window has left them."""
        self._gradients = [(p.grad, _version(p.grad)) for p in self._trained.tensors]

    def check_gradients(self) -> None:
        """Refuse gradients that others have written since.

        Raises:
            WindowError: with the first of them.
        """
        changed = [
            parameter
            for parameter, (before, version) in zip(
                self._trained.tensors, self._gradients, strict=False
            )
            if parameter.grad is not before or _version(before) != version
        ]
        if changed:
            how = "vanished" if changed[0].grad is None else "was written into"
            raise WindowError(
                f"`.grad` of {_several(self._trained, changed)} {how} while the window was open, "
                "by zero_grad(), clipping, unscale_() or a backward that the window does not "
                "know. Do that after window.close(); window.discard() gives the window up."
            )

    def check_parameters(self) -> None:
        """Refuse to go on where parameters were written into since the window was opened.

        Raises:
            WindowError: with the first of them.
        """
        changed = [
            parameter
            for parameter, version in zip(self._trained.tensors, self._versions, strict=True)
            if _version(parameter) != version and id(parameter) not in self._trained.rewritten
        ]
        if changed:
            raise WindowError(
                f"{_several(self._trained, changed)} changed while the window was open, by "
                "optimizer.step() it seems, whose gradients were sums and no mean yet. Call "
                "window.close() before the step; window.discard() gives the window up. (An "
                "nn.Embedding with max_norm also writes into its weight: then give the window "
                "the module in place of its parameters.)"
            )


def _several(trained: Trained, changed: list[Tensor]) -> str:
    first = trained.name(changed[0])
    return f"{len(changed)} parameters ({first} first)" if len(changed) > 1 else f"parameter {first}"


def _version(tensor: Tensor | None) -> int:
    return -1 if tensor is None or tensor.is_inference() else tensor._version
