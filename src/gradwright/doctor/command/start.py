"""Wait for a program to load torch.

Loading torch before the program runs would change it: what the program sets first, such as
`OMP_NUM_THREADS` or warning filters, would come too late.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_torch_is_loaded(action: Callable[[], None]) -> None:
    """Call `action` as soon as torch is there: now, or when its first import has finished."""
    if "torch" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _TorchFinder(action))


class _TorchFinder(MetaPathFinder):
    """Finds torch as the others do, once, and hears when it has been loaded."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of torch; None for everything else."""
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            self._listen(spec)
        return spec

    def _listen(self, spec: ModuleSpec) -> None:
        """Shadow the method of this one loader until it has run."""
        loader = spec.loader
        assert loader is not None
        load = loader.exec_module

        def load_and_tell(module: ModuleType) -> None:
            del loader.exec_module
            load(module)
            self._action()

        loader.exec_module = load_and_tell  # type: ignore[method-assign]
