"""Adaptive information transfer multi-task framework."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from gradwright.architecture.base import Architecture
from gradwright.architecture.making import MakeModule, check_module, check_number, make_modules
from gradwright.architecture.tasks import TaskModules, check_tasks


class AITM(Architecture):
    """Steps that follow one another, such as click and purchase; each hands features to the next.

    With q_t = tower_t(bottom(x)): z_1 = q_1, and for later steps p_t = transfer_t(z_{t-1}) and
    z_t = Σ_{u ∈ {p_t, q_t}} w_u h_1(u), where w is the softmax of ⟨h_2(u), h_3(u)⟩ / √width.
    The output is head_t(z_t). h_1, h_2, h_3 are linear, without bias, and belong to the step.

    Xi, Chen, Yan, Zhang, Zhu, Zhuang and Chen, Modeling the Sequential Dependence among Audience
    Multi-step Conversions with Multi-task Learning in Targeted Display Advertising, KDD 2021,
    https://arxiv.org/abs/2105.08489. The order of steps is that of `heads`. LibMTL has
    no AITM.

    Called with one input for all tasks, returns {task: output}.

    Args:
        bottom: from the input to what every tower reads, the paper's shared embedding;
            `nn.Identity()` for nothing shared.
        tower: makes one step's tower, which gives [batch, width].
        transfer: makes the module that brings z of a step to the next, [batch, width] again.
        width: the number of features.
        heads: the module of each step, the first step first; returns logits.

    Raises:
        TypeError: a module stands where a callable is needed, or the other way round.
        ValueError: there is no task, or `width` is below 1; when called: shapes that do not fit.

    Example:
        >>> heads = {"click": nn.Linear(8, 1), "purchase": nn.Linear(8, 1)}
        >>> layer = lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        >>> model = AITM(nn.Linear(3, 8), tower=layer, transfer=layer, width=8, heads=heads)
        >>> outputs = model(torch.randn(4, 3))
        >>> outputs["purchase"].shape
        torch.Size([4, 1])
        >>> sorted(model.regularization(outputs))  # to be added to the loss of that task
        ['purchase']
    """

    def __init__(
        self,
        bottom: nn.Module,
        tower: MakeModule,
        transfer: MakeModule,
        width: int,
        heads: Mapping[str, nn.Module],
    ) -> None:
        check_module("bottom", bottom)
        check_number("width", width)
        super().__init__(heads)
        later = self.tasks[1:]
        towers = make_modules("tower", tower, len(self.tasks))
        transfers = make_modules("transfer", transfer, len(later))
        self.bottom = bottom
        self.towers = TaskModules(dict(zip(self.tasks, towers, strict=True)))
        self.transfers = TaskModules(dict(zip(later, transfers, strict=True)))
        self.attentions = TaskModules({task: _Attention(width) for task in later})
        self.width = width

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`; the steps before them are computed too."""
        features = self.bottom(inputs)
        found: dict[str, Tensor] = {}
        z: Tensor | None = None
        for task in self.tasks[: max(map(self.tasks.index, tasks)) + 1]:
            z = self._step(task, features, z)
            if task in tasks:
                found[task] = self.heads[task](z)
        return {task: found[task] for task in tasks}

    def path(self, task: str) -> Iterable[nn.Module]:
        """The bottom, towers, transfers and attentions up to the task, and its own head."""
        first, *later = self.tasks[: self.tasks.index(task) + 1]
        parts = [self.bottom, self.towers[first]]
        for step in later:
            parts += [self.towers[step], self.transfers[step], self.attentions[step]]
        return [*parts, self.heads[task]]

    def regularization(
        self, outputs: Mapping[str, Tensor], weight: float = 0.6
    ) -> dict[str, Tensor]:
        """The calibrator: a step cannot be more probable than the one before it.

        For each step but the first: weight · mean(max(σ(output_t) - σ(output_{t-1}), 0)), to be
        added to its loss. It reaches the head of the step before too.

        Args:
            outputs: logits of all steps for the same examples, as the model returns them.
            weight: α; 0.6 as in the official code.

        Raises:
            ValueError: a step is missing, or there is no such step.
        """
        check_tasks(outputs, self.tasks, "outputs")
        missing = [task for task in self.tasks if task not in outputs]
        if missing:
            raise ValueError(
                f"`outputs` needs the logits of every step: {missing[0]!r} is missing. A step is "
                "compared with the one before it, for the same examples."
            )
        p = {task: outputs[task].sigmoid() for task in self.tasks}
        pairs = zip(self.tasks[:-1], self.tasks[1:], strict=True)
        return {after: weight * (p[after] - p[before]).relu().mean() for before, after in pairs}

    def _step(self, task: str, features: Tensor, before: Tensor | None) -> Tensor:
        """z_t, given z_{t-1} if there is one."""
        q = self._of_width("towers", task, self.towers[task](features))
        if before is None:
            return q
        p = self._of_width("transfers", task, self.transfers[task](before))
        z: Tensor = self.attentions[task](torch.stack([p, q], dim=1))
        return z

    def _of_width(self, name: str, task: str, features: Tensor) -> Tensor:
        if features.ndim != 2 or features.shape[1] != self.width:
            raise ValueError(
                f"`{name}[{task!r}]` needs to give [batch, {self.width}], as `width` says: got "
                f"{list(features.shape)}."
            )
        return features


class _Attention(nn.Module):
    """Σ_u w_u h_1(u) over the rows u of [batch, row, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.value = nn.Linear(width, width, bias=False)  # h_1
        self.query = nn.Linear(width, width, bias=False)  # h_2
        self.key = nn.Linear(width, width, bias=False)  # h_3

    def forward(self, u: Tensor) -> Tensor:
        """[batch, row, width] to [batch, width]."""
        scores = (self.query(u) * self.key(u)).sum(dim=-1) / u.shape[-1] ** 0.5
        return torch.einsum("br,brf->bf", scores.softmax(dim=1), self.value(u))
