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
        self._watched = [p for p in trained.tensors if not p.is_inference()]  # they have no version
        self._versions = [parameter._version for parameter in self._watched]
        self._gradients: list[tuple[Tensor | None, int]] = []

    def note_gradients(self) -> None:
        """Remember the gradients as a backward of the window has left them."""
        gradients = [parameter.grad for parameter in self._watched]
        self._gradients = [(g, -1 if g is None else g._version) for g in gradients]

    def check_gradients(self) -> None:
        """Refuse gradients that others have written since.

        Raises:
            WindowError: with the first of them.
        """
        changed = [
            parameter
            for parameter, (seen, version) in zip(self._watched, self._gradients, strict=True)
            if parameter.grad is not seen or (seen is not None and seen._version != version)
        ]
        if changed:
            how = "vanished" if changed[0].grad is None else "was written into"
            raise WindowError(
                f"`.grad` of {self._several(changed)} {how} while the window was open, by "
                "zero_grad(), clipping, unscale_() or a backward that the window does not know. "
                "Do that after window.close(); window.discard() gives the window up."
            )

    def check_parameters(self) -> None:
        """Refuse to go on where parameters were written into since the window was opened.

        Raises:
            WindowError: with the first of them.
        """
        changed = [
            parameter
            for parameter, version in zip(self._watched, self._versions, strict=True)
            if parameter._version != version
        ]
        if changed:
            rewritten = self._trained.rewritten()
            changed = [parameter for parameter in changed if id(parameter) not in rewritten]
        if changed:
            raise WindowError(
                f"{self._several(changed)} changed while the window was open, by optimizer.step() "
                "it seems, whose gradients were sums and no mean yet. Call window.close() before "
                "the step; window.discard() gives the window up. (An nn.Embedding with max_norm "
                "also writes into its weight: then give the window the module in place of its "
                "parameters.)"
            )

    def _several(self, changed: list[Tensor]) -> str:
        shape = f"one of shape {list(changed[0].shape)}"
        first = repr(self._trained.names().get(id(changed[0]), shape))
        more = len(changed) > 1
        return f"{len(changed)} parameters ({first} first)" if more else f"parameter {first}"
