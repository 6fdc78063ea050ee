"""Multi-gate mixture of experts."""

from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor, nn

from gradwright.architecture.base import Architecture
from gradwright.architecture.gating import GateInput, check_gate_input, modules_of, the_input_itself
from gradwright.architecture.making import (
    MakeGate,
    MakeModule,
    check_number,
    make_gates,
    make_modules,
)
from gradwright.architecture.mixture import gate_weights, mix, stack_experts
from gradwright.architecture.tasks import TaskModules


class MMoE(Architecture):
    """Experts that all tasks share, and one gate per task that mixes them.

    y_k = h_k(Σ_e g_k(x)_e f_e(x)), with g_k(x) = softmax(gate_k(x)) over the experts.

    Ma, Zhao, Yi, Chen, Hong and Chi, Modeling Task Relationships in Multi-task Learning with
    Multi-gate Mixture-of-Experts, KDD 2018, section 4.2,
    https://doi.org/10.1145/3219819.3220007. LibMTL computes the same for one tensor of a size that
    is given in advance; its gate always reads the whole of it, flattened.

    Called with one input for all tasks, returns {task: output}. Experts give [batch, *feature],
    gates [batch, expert].

    Args:
        expert: makes one expert f_e.
        n_experts: how many.
        gate: makes one gate, given the number of its outputs; the softmax is added here.
        heads: h_k, the module of each task.
        gate_input: from the input to what gates read; the input itself if left out.

    Raises:
        TypeError: a module stands where a callable is needed, or the other way round.
        ValueError: there is no task, or no expert; when called: shapes that do not fit.

    Example:
        >>> import torch
        >>> model = MMoE(
        ...     expert=lambda: nn.Sequential(nn.Linear(3, 8), nn.ReLU()),
        ...     n_experts=4,
        ...     gate=lambda n: nn.Linear(3, n),
        ...     heads={"income": nn.Linear(8, 1), "marital": nn.Linear(8, 1)},
        ... )
        >>> model(torch.randn(5, 3))["income"].shape
        torch.Size([5, 1])
    """

    def __init__(
        self,
        expert: MakeModule,
        n_experts: int,
        gate: MakeGate,
        heads: Mapping[str, nn.Module],
        gate_input: GateInput = the_input_itself,
    ) -> None:
        check_number("n_experts", n_experts)
        check_gate_input(gate_input)
        super().__init__(heads)
        self.experts = nn.ModuleList(make_modules("expert", expert, n_experts))
        gates = make_gates("gate", gate, [n_experts] * len(self.tasks))
        self.gates = TaskModules(dict(zip(self.tasks, gates, strict=True)))
        self.gate_input = gate_input

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input."""
        experts = stack_experts([expert(inputs) for expert in self.experts])
        read = self.gate_input(inputs)
        return {task: self.heads[task](self._mixed(task, read, experts)) for task in tasks}

    def path(self, task: str) -> Iterable[nn.Module]:
        """All experts, the task's gate and its head."""
        gate = [self.gates[task], *modules_of(self.gate_input)]
        return [self.experts, *gate, self.heads[task]]

    def _mixed(self, task: str, read: object, experts: Tensor) -> Tensor:
        n_experts = len(self.experts)
        return mix(gate_weights(self.gates[task], read, n_experts, f"gates[{task!r}]"), experts)
