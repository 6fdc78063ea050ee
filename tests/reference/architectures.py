"""Multi-task architectures from the equations of their papers: loops over examples and experts.

Each takes one of our models for its modules alone, and x [batch, feature].
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

Outputs = dict[str, Tensor]


def shared_bottom(model: Any, x: Tensor) -> Outputs:
    """y_k = h_k(f(x))."""
    return by_example(model, x, lambda k, row: model.bottom(row))


def mmoe(model: Any, x: Tensor) -> Outputs:
    """f_k(x) = Σ_e softmax(W_k x)_e f_e(x)."""
    return by_example(model, x, lambda k, row: gated(model.gates[k], row, model.experts, row))


def dselect_k(model: Any, x: Tensor) -> Outputs:
    """Σ_e q_k(x)_e f_e(x)."""

    def features(k: str, row: Tensor) -> Tensor:
        q = dselect_k_weights(model, k, row)
        return add([q[e] * expert(row) for e, expert in enumerate(model.experts)])

    return by_example(model, x, features)


def dselect_k_weights(model: Any, task: str, row: Tensor) -> list[Tensor]:
    """q_e = Σ_i softmax(w)_i r_ie for one example."""
    w = softmax(list(model.w[task](row)[0]))
    r = dselect_k_selectors(model, task, row)
    return [add([w[i] * r[i][e] for i in range(model.k)]) for e in range(len(model.experts))]


def dselect_k_selectors(model: Any, task: str, row: Tensor) -> list[list[Tensor]]:
    """r_ie = Π_d S(z_id) or 1 - S(z_id), by the digits of e, the high digit first."""
    z, n_digits = list(model.z[task](row)[0]), len(f"{len(model.experts) - 1:b}")
    found = []
    for i in range(model.k):
        row_of_experts = []
        for e in range(len(model.experts)):
            product = torch.ones((), dtype=row.dtype)
            for d, digit in enumerate(f"{e:0{n_digits}b}"):
                S = smooth_step(z[i * n_digits + d], model.gamma)
                product = product * (S if digit == "1" else 1 - S)
            row_of_experts.append(product)
        found.append(row_of_experts)
    return found


def dselect_k_regularization(model: Any, task: str, x: Tensor) -> Tensor:
    """The mean over examples of λ Σ_i H(r_i) + Σ_i 1 / Σ_e r_ie; the latter not for 2^m experts."""
    terms = []
    for row in x.split(1):
        for r in dselect_k_selectors(model, task, row):
            terms += [-model.entropy_weight * p * (p + 1e-6).log() for p in r]
            if len(r) not in (2, 4, 8, 16):
                terms.append(1 / add(r))
    return add(terms) / len(x)


def smooth_step(t: Tensor, gamma: float) -> Tensor:
    if t <= -gamma / 2:
        return torch.zeros_like(t)
    if t >= gamma / 2:
        return torch.ones_like(t)
    return -2 / gamma**3 * t**3 + 3 / (2 * gamma) * t + 1 / 2


def cgc(model: Any, x: Tensor) -> Outputs:
    """g_k(x) = Σ over own and shared experts of softmax(W_k x)_e E_e(x)."""
    level = model.level

    def features(k: str, row: Tensor) -> Tensor:
        return gated(level.gates[k], row, [*level.own[k], *level.shared], row)

    return by_example(model, x, features)


def ple(model: Any, x: Tensor) -> Outputs:
    """Level after level: every task's mixture, and the shared one of all experts."""

    def features(task: str, row: Tensor) -> Tensor:
        g: dict[str, Tensor] = dict.fromkeys(model.tasks, row)
        s = row
        for number, level in enumerate(model.levels, 1):
            E_s = [expert(s) for expert in level.shared]
            E = {k: [expert(g[k]) for expert in level.own[k]] for k in model.tasks}
            new = {k: weighted(level.gates[k], g[k], E[k] + E_s) for k in model.tasks}
            if number < len(model.levels):
                s = weighted(level.shared_gate, s, [e for k in model.tasks for e in E[k]] + E_s)
            g = new
        return g[task]

    return by_example(model, x, features)


def cross_stitch(model: Any, x: Tensor) -> Outputs:
    """x̃_k = Σ_j α_kj x_j after each stage, one α for all channels or for each."""

    def features(task: str, row: Tensor) -> Tensor:
        read = [row] * len(model.tasks)
        for stage, alpha in zip(model.stages, model.units, strict=True):
            given = [module(x) for module, x in zip(stage, read, strict=True)]
            read = [
                add([alpha[k, j] * given[j] for j in range(len(given))]) for k in range(len(read))
            ]
        return read[model.tasks.index(task)]

    return by_example(model, x, features)


def mtan(model: Any, x: Tensor) -> Outputs:
    """â = attention([u; f(â of the stage below)]) ⊙ p, with u and p of the shared network."""

    def features(task: str, row: Tensor) -> Tensor:
        p, before = row, None
        parts = zip(model.first, model.second, model.attention[task], model.onward, strict=True)
        for first, second, attention, onward in parts:
            u = first(p)
            p = second(u)
            mask = attention(u if before is None else torch.cat([u, before], dim=1))
            before = onward(mask * p)
        assert before is not None
        return before

    return by_example(model, x, features)


def ltb(model: Any, x: Tensor) -> Outputs:
    """One draw per node for the whole batch, stages first, then heads in the order of tasks."""
    given = [[node(row) for node in model.stages[0]] for row in x.split(1)]
    for stage, branching in zip(list(model.stages)[1:], model.branchings, strict=True):
        d = gumbel_softmax(model, branching.logits)
        given = [
            [
                node(add([d[j, i] * value for i, value in enumerate(row)]))
                for j, node in enumerate(stage)
            ]
            for row in given
        ]
    found = {}
    for task in model.tasks:
        d = gumbel_softmax(model, model.head_branchings[task].logits)
        rows = [add([d[0, i] * value for i, value in enumerate(row)]) for row in given]
        found[task] = torch.cat([model.heads[task](row) for row in rows])
    return found


def gumbel_softmax(model: Any, logits: Tensor) -> Tensor:
    """The value of the one-hot draw with the gradient of the softmax, or the softmax itself."""
    noise = -torch.empty_like(logits).exponential_().log()
    tau = model.cooling.start / sqrt(int(model.cooling.epoch) + 1)
    soft = torch.stack([torch.stack(softmax(list(row))) for row in (logits + noise) / tau])
    if not model.hard:
        return soft
    one_hot = torch.nn.functional.one_hot(soft.argmax(dim=1), soft.shape[1])
    return (one_hot - soft).detach() + soft


def esmm(model: Any, x: Tensor) -> Outputs:
    """The logit of Π σ(head) over the task and those before it."""
    found: dict[str, Tensor] = {}
    p = torch.ones(len(x), 1, dtype=x.dtype)
    for task, head in model.heads.items():
        p = p * torch.cat([head(model.bottom(row)) for row in x.split(1)]).sigmoid()
        found[task] = (p / (1 - p)).log()
    return found


def aitm(model: Any, x: Tensor) -> Outputs:
    """z_t = Σ over u in {p_{t-1}, q_t} of softmax(⟨h_2(u), h_3(u)⟩ / √k)_u h_1(u)."""

    def features(task: str, row: Tensor) -> Tensor:
        embedded, z = model.bottom(row), None
        for step in model.tasks[: model.tasks.index(task) + 1]:
            q = model.towers[step](embedded)
            z = q if z is None else transferred(model, step, model.transfers[step](z), q)
        assert z is not None
        return z

    return by_example(model, x, features)


def transferred(model: Any, step: str, p: Tensor, q: Tensor) -> Tensor:
    h = model.attentions[step]
    scores = [(h.query(u)[0] @ h.key(u)[0]) / sqrt(model.width) for u in (p, q)]
    w = softmax(scores)
    return w[0] * h.value(p) + w[1] * h.value(q)


def by_example(model: Any, x: Tensor, features: Callable[[str, Tensor], Tensor]) -> Outputs:
    """Each head on the features of each example alone."""
    return {
        task: torch.cat([head(features(task, row)) for row in x.split(1)])
        for task, head in model.heads.items()
    }


def gated(gate: nn.Module, read: Tensor, experts: Sequence[nn.Module], row: Tensor) -> Tensor:
    return weighted(gate, read, [expert(row) for expert in experts])


def weighted(gate: nn.Module, read: Tensor, values: Sequence[Tensor]) -> Tensor:
    w = softmax(list(gate(read)[0]))
    assert len(w) == len(values)
    return add([w[e] * value for e, value in enumerate(values)])


def softmax(logits: Sequence[Tensor]) -> list[Tensor]:
    exponentials = [logit.exp() for logit in logits]
    return [value / add(exponentials) for value in exponentials]


def add(values: Sequence[Tensor]) -> Tensor:
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


TWINS: dict[str, Callable[[Any, Tensor], Outputs]] = {
    "SharedBottom": shared_bottom,
    "MMoE": mmoe,
    "DSelectK": dselect_k,
    "DSelectK-gate": dselect_k,
    "CGC": cgc,
    "PLE": ple,
    "PLE-1": ple,
    "CrossStitch": cross_stitch,
    "CrossStitch-channels": cross_stitch,
    "MTAN": mtan,
    "LTB": ltb,
    "LTB-soft": ltb,
    "ESMM": esmm,
    "AITM": aitm,
}
