"""Hard parameter sharing."""

from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor, nn

from gradwright.architecture.base import Architecture
from gradwright.architecture.making import check_module


class SharedBottom(Architecture):
    """One bottom for all tasks, one head per task: y_k = h_k(f(x)).

    Caruana, Multitask Learning: A Knowledge-Based Source of Inductive Bias, ICML 1993,
    https://doi.org/10.1016/B978-1-55860-307-3.50012-5. LibMTL calls it HPS, hard parameter sharing.

    Called with one input for all tasks, returns {task: output}.

    Args:
        bottom: f, from the input to the features that every head reads.
        heads: h_k, the module of each task.

    Raises:
        TypeError: an argument is no module.
        ValueError: there is no task.

    Example:
        >>> import torch
        >>> heads = {"age": nn.Linear(8, 1), "job": nn.Linear(8, 5)}
        >>> model = SharedBottom(nn.Sequential(nn.Linear(3, 8), nn.ReLU()), heads)
        >>> outputs = model(torch.randn(4, 3))
        >>> outputs["job"].shape
        torch.Size([4, 5])
    """

    def __init__(self, bottom: nn.Module, heads: Mapping[str, nn.Module]) -> None:
        check_module("bottom", bottom)
        super().__init__(heads)
        self.bottom = bottom

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input."""
        features = self.bottom(inputs)
        return {task: self.heads[task](features) for task in tasks}

    def path(self, task: str) -> Iterable[nn.Module]:
        """The bottom, and the task's head."""
        return [self.bottom, self.heads[task]]


HPS = SharedBottom
"""What LibMTL calls it."""
