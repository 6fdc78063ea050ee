"""Customized gate control."""

from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor, nn

from gradwright.architecture.base import Architecture
from gradwright.architecture.extraction import Extraction, ExtractionLevel
from gradwright.architecture.gating import GateInput, check_gate_input, modules_of, the_input_itself
from gradwright.architecture.making import MakeGate, MakeModule


class CGC(Architecture):
    """Shared experts, experts of each task, and one gate per task over those two groups.

    y_k = h_k(Σ_e g_k(x)_e f_e(x)), the sum over the task's own experts and the shared ones, with
    g_k(x) = softmax(gate_k(x)). Own experts come first in a gate's outputs.

    Tang, Liu, Zhao and Gong, Progressive Layered Extraction (PLE), RecSys 2020, section on
    customized gate control, https://doi.org/10.1145/3383313.3412236. In LibMTL the shared experts
    come first, which changes nothing but the order of a gate's outputs; there an MMoE gate is made,
    and replaced.

    Called with one input for all tasks, returns {task: output}. Experts give [batch, *feature].

    Args:
        expert: makes one expert f_e.
        n_shared: how many experts all tasks share.
        n_task: how many experts each task has; an integer, or a mapping from task to integer.
        gate: makes one gate, given the number of its outputs; the softmax is added here.
        heads: h_k, the module of each task.
        gate_input: from the input to what gates read; the input itself if left out.

    Raises:
        TypeError: a module stands where a callable is needed, or the other way round.
        ValueError: there is no task, or no expert; when called: shapes that do not fit.

    Example:
        >>> import torch
        >>> model = CGC(
        ...     expert=lambda: nn.Sequential(nn.Linear(3, 8), nn.ReLU()),
        ...     n_shared=2,
        ...     n_task=1,
        ...     gate=lambda n: nn.Linear(3, n),
        ...     heads={"income": nn.Linear(8, 1), "marital": nn.Linear(8, 1)},
        ... )
        >>> model(torch.randn(5, 3))["income"].shape
        torch.Size([5, 1])
    """

    def __init__(
        self,
        expert: MakeModule,
        n_shared: int,
        n_task: int | Mapping[str, int],
        gate: MakeGate,
        heads: Mapping[str, nn.Module],
        gate_input: GateInput = the_input_itself,
    ) -> None:
        check_gate_input(gate_input)
        super().__init__(heads)
        level = ExtractionLevel(expert, gate, n_shared, n_task)
        self.level = Extraction(level, self.tasks, with_shared_gate=False)
        self.gate_input = gate_input

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input."""
        own, shared = self.level.experts(dict.fromkeys(tasks, inputs), inputs)
        read = self.gate_input(inputs)
        mixed = {task: self.level.mixed(task, read, own[task], shared) for task in tasks}
        return {task: self.heads[task](features) for task, features in mixed.items()}

    def path(self, task: str) -> Iterable[nn.Module]:
        """The shared experts, and the task's own experts, gate and head."""
        parts = self.level.parts([task], [task])
        return [*parts, *modules_of(self.gate_input), self.heads[task]]
