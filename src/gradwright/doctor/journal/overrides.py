"""Keeps torch.nn on its fused paths while our function mode is active.

Attention and transformer layers leave their fused path in eval mode if
`torch.overrides.has_torch_function` says that somebody overrides functions, and a fused path
rounds differently. Our mode only looks on, so it must not count.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradwright.doctor.journal import modes


class Overrides:
    """Stands in for `torch.overrides.has_torch_function`."""

    def __init__(self, mode_here: Callable[[], TorchFunctionMode | None]) -> None:
        self._mode_here = mode_here
        self._original: Callable[[Iterable[Any]], bool] | None = None
        self._stand_in = self._ask  # one object: TorchScript knows functions by their id
        self._builtins: dict[int, str] = {}

    def start(self) -> None:
        """Take its place, for TorchScript as well."""
        self._original = torch.overrides.has_torch_function
        self._builtins = torch.jit._builtins._get_builtin_table()
        self._builtins[id(self._stand_in)] = "aten::has_torch_function"
        torch.overrides.has_torch_function = self._stand_in  # type: ignore[assignment]

    def stop(self) -> None:
        """Step back, unless somebody else has taken the place since."""
        if self._original is None:
            return
        if torch.overrides.has_torch_function is self._stand_in:
            torch.overrides.has_torch_function = self._original  # type: ignore[assignment]
        self._builtins.pop(id(self._stand_in), None)
        self._original = None

    def _ask(self, relevant_args: Iterable[Any]) -> bool:
        """Whether any argument, or any mode but ours, overrides torch functions."""
        original = self._original or torch._C._has_torch_function
        mode = self._mode_here()
        taken = mode is not None and modes.remove(mode)
        try:
            return bool(original(relevant_args))
        finally:
            if taken and mode is not None:
                modes.insert(mode)
