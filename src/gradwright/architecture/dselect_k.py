"""Sparse mixtures with a differentiable choice of k experts."""

from collections.abc import Iterable, Mapping, Sequence

import torch
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
from gradwright.architecture.mixture import gate_logits, mix, stack_experts
from gradwright.architecture.selection import binary_codes, entropy, selectors
from gradwright.architecture.tasks import TaskModules, check_tasks


class DSelectK(Architecture):
    """MMoE whose gates end up using at most k experts.

    Each gate has k selectors. Selector i takes r_i(z_i)_e = Π_d S(z_id) or 1 - S(z_id) of expert e,
    by the digits of e in binary, with the smooth step S; the gate's weights are
    Σ_i softmax(w)_i r_i. Once all |z| ≥ γ/2, each selector takes one expert.

    Hazimeh, Zhao, Chowdhery, Sathiamoorthy, Chen, Mazumder, Hong and Chi, DSelect-k: Differentiable
    Selection in the Mixture of Experts with Applications to Multi-Task Learning, NeurIPS 2021,
    https://arxiv.org/abs/2106.03760. z and w start as in the official code, within
    γ/100 and 0.05. LibMTL's step has γ = 1 whatever is given, its digits are all ones with NumPy
    2.4, and its regulariser is erased before the optimizer's step; see `regularization`.

    Called with one input for all tasks, returns {task: output}. Experts give [batch, *feature].

    Args:
        expert: makes one expert.
        n_experts: how many, at least two.
        k: how many of them a task may use in the end.
        heads: the module of each task.
        gate: for a choice per example: makes a module with so many outputs, called for z (k numbers
            per binary digit) and for w (k numbers); all parameters of these modules are drawn
            anew. Left out: one choice per task, the same for all examples.
        gate_input: from the input to what gates read; the input itself if left out.
        gamma: γ, the width of the smooth step.
        entropy_weight: λ of `regularization`.

    Raises:
        TypeError: a module stands where a callable is needed, or the other way round.
        ValueError: there is no task, or a number is out of range; when called: shapes that do not
            fit.

    Example:
        >>> expert = lambda: nn.Sequential(nn.Linear(3, 8), nn.ReLU())
        >>> heads = {"income": nn.Linear(8, 1), "marital": nn.Linear(8, 1)}
        >>> model = DSelectK(expert, n_experts=4, k=2, heads=heads)
        >>> x = torch.randn(5, 3)
        >>> losses = {task: output.square().mean() for task, output in model(x).items()}
        >>> for task, term in model.regularization(x).items():
        ...     losses[task] = losses[task] + term
        >>> model.weights(x)["income"].shape  # with `gate`: [5, 4]
        torch.Size([1, 4])
    """

    codes: Tensor

    def __init__(
        self,
        expert: MakeModule,
        n_experts: int,
        k: int,
        heads: Mapping[str, nn.Module],
        gate: MakeGate | None = None,
        gate_input: GateInput = the_input_itself,
        gamma: float = 1.0,
        entropy_weight: float = 1e-6,
    ) -> None:
        _check_numbers(n_experts, k, gamma, entropy_weight)
        check_gate_input(gate_input)
        super().__init__(heads)
        self.k, self.gamma, self.entropy_weight = k, gamma, entropy_weight
        self.experts = nn.ModuleList(make_modules("expert", expert, n_experts))
        self.register_buffer("codes", binary_codes(n_experts), persistent=False)
        widths = [k * self.codes.shape[1], k] * len(self.tasks)
        made = (
            [_Constant(width) for width in widths]
            if gate is None
            else make_gates("gate", gate, widths)
        )
        self.z = TaskModules(dict(zip(self.tasks, made[::2], strict=True)))
        self.w = TaskModules(dict(zip(self.tasks, made[1::2], strict=True)))
        self.per_example, self.gate_input = gate is not None, gate_input
        _draw(self.z, gamma / 100)
        _draw(self.w, 0.05)

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input."""
        experts = stack_experts([expert(inputs) for expert in self.experts])
        weights = self.weights(inputs, tasks)
        return {
            task: self.heads[task](mix(self._of_batch(weights[task], len(experts)), experts))
            for task in tasks
        }

    def path(self, task: str) -> Iterable[nn.Module]:
        """All experts, the task's gate and its head."""
        read = modules_of(self.gate_input) if self.per_example else []
        return [self.experts, *read, self.z[task], self.w[task], self.heads[task]]

    def weights(self, inputs: object, tasks: Sequence[str] | None = None) -> dict[str, Tensor]:
        """How much each task takes of each expert: {task: [batch, expert]}.

        Without `gate` the weights are the same for all examples: [1, expert].

        Raises:
            ValueError: there is no such task, or a gate's output does not fit.
        """
        read = self.gate_input(inputs)
        found = {}
        for task in self._known(tasks):
            r = self._selectors(task, read)
            w = gate_logits(self.w[task], read, self.k, f"w[{task!r}]").softmax(dim=-1)
            found[task] = torch.einsum("bi,bie->be", w, r)
        return found

    def regularization(
        self, inputs: object, tasks: Sequence[str] | None = None
    ) -> dict[str, Tensor]:
        """What to add to the task's loss so that its selectors decide: {task: scalar}.

        λ Σ_i H(r_i), with H the entropy; where the number of experts is no power of 2, also
        Σ_i 1 / Σ_e r_ie, which keeps selectors from codes that no expert has. Both are means over
        the batch; the official code has sums.

        LibMTL calls `backward` on this inside `forward`, for the last task alone, and its trainer
        sets gradients to zero afterwards, so it has no effect there.

        Raises:
            ValueError: there is no such task, or a gate's output does not fit.
        """
        read = self.gate_input(inputs)
        return {task: self._undecided(self._selectors(task, read)) for task in self._known(tasks)}

    def _of_batch(self, weights: Tensor, size: int) -> Tensor:
        return weights if self.per_example else weights.expand(size, -1)

    def _known(self, tasks: Sequence[str] | None) -> Sequence[str]:
        check_tasks(tasks or (), self.tasks, "tasks")
        return self.tasks if tasks is None else tasks

    def _selectors(self, task: str, read: object) -> Tensor:
        """r [batch, selector, expert]; a batch of one without `gate`."""
        n_digits = self.codes.shape[1]
        logits = gate_logits(self.z[task], read, self.k * n_digits, f"z[{task!r}]")
        return selectors(logits.unflatten(1, (self.k, n_digits)), self.codes, self.gamma)

    def _undecided(self, r: Tensor) -> Tensor:
        total = self.entropy_weight * entropy(r)  # [batch, selector]
        if len(self.codes) < 2 ** self.codes.shape[1]:
            total = total + 1 / r.sum(dim=-1)
        return total.sum(dim=-1).mean()


class _Constant(nn.Module):
    """A gate that reads nothing: [1, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.empty(1, width))

    def forward(self, inputs: object) -> Tensor:
        """The logits, whatever the input is."""
        return self.logits


def _draw(module: nn.Module, bound: float) -> None:
    """Draws all parameters from [-bound, bound]: beyond γ/2 the smooth step has no gradient."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -bound, bound)


def _check_numbers(n_experts: int, k: int, gamma: float, entropy_weight: float) -> None:
    check_number("n_experts", n_experts, least=2)
    check_number("k", k)
    if k > n_experts:
        raise ValueError(f"`k` needs to be at most `n_experts`, {n_experts}: got {k}.")
    if not gamma > 0:
        raise ValueError(f"`gamma` needs to be above 0: got {gamma}.")
    if not entropy_weight >= 0:
        raise ValueError(f"`entropy_weight` needs to be 0 or more: got {entropy_weight}.")
