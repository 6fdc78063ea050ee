"""Several losses in one window: the weights are those of the whole window in one piece."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import gradwright as gw
from gradwright.engine import Weighting
from gradwright.loops import Window
from gradwright.weighting import (
    DWA,
    IMTLL,
    MGDA,
    UW,
    Constant,
    Every,
    GradDrop,
    GradVac,
    NashMTL,
    PCGrad,
    PerGroup,
    Sum,
    UPGrad,
)
from tests.loops.accumulation.small import difference, gradients

TASKS = ("a", "b", "c")
ROWS = (4, 9, 1, 6)


@pytest.fixture(autouse=True)
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@dataclass
class Part:
    """A micro-batch: each task has labels for some rows only."""

    x: Tensor
    y: dict[str, Tensor]
    labelled: dict[str, Tensor]


class Net(nn.Module):
    def __init__(self, *, checkpointed: bool = False, sparse: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(7, 5, sparse=sparse)
        self.trunk = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh())
        self.heads = nn.ModuleDict({task: nn.Linear(6, 1) for task in TASKS})
        self.checkpointed = checkpointed

    def losses(self, part: Part, *, mean: bool = False) -> dict[str, Tensor | None]:
        embedded = self.embed(part.x)
        features = (
            checkpoint(self.trunk, embedded, use_reentrant=True)
            if self.checkpointed
            else self.trunk(embedded)
        )
        found: dict[str, Tensor | None] = {}
        for task, head in self.heads.items():
            rows = part.labelled[task]
            each = F.mse_loss(head(features[rows])[:, 0], part.y[task][rows], reduction="none")
            found[task] = None if not rows.any() else each.mean() if mean else each.sum()
        return found


def parts(absent: str = "") -> list[Part]:
    torch.manual_seed(1)
    found = []
    for n in ROWS:
        labelled = {task: torch.rand(n) < 0.7 for task in TASKS}
        if absent:
            labelled[absent][:] = False
        found.append(Part(torch.randint(7, (n,)), {t: torch.randn(n) for t in TASKS}, labelled))
    assert any(not part.labelled[task].any() for part in found for task in TASKS)
    return found


def weight(net: Net) -> Tensor:
    layer = net.trunk[0]
    assert isinstance(layer, nn.Linear)
    return layer.weight


def joined(several: list[Part]) -> Part:
    return Part(
        torch.cat([part.x for part in several]),
        {task: torch.cat([part.y[task] for part in several]) for task in TASKS},
        {task: torch.cat([part.labelled[task] for part in several]) for task in TASKS},
    )


def counts(part: Part) -> dict[str, int]:
    return {task: int(part.labelled[task].sum()) for task in TASKS}


def groups(net: Net) -> dict[str, list[nn.Parameter]]:
    return {
        "low": [*net.embed.parameters(), *net.trunk[0].parameters()],
        "high": [*net.trunk[2].parameters()],
    }


METHODS: dict[str, Callable[[], Weighting | None]] = {
    "none": lambda: None,
    "Sum": Sum,
    "Constant": lambda: Constant([0.2, 1.0, 3.0]),
    "PCGrad": PCGrad,
    "UPGrad": UPGrad,
    "MGDA": MGDA,
    "UW": lambda: UW(n_tasks=3),
    "IMTLL": lambda: IMTLL(n_tasks=3),
    "DWA": lambda: DWA(n_tasks=3),
    "GradVac": lambda: GradVac(n_tasks=3),
    "GradDrop": lambda: GradDrop(purity=lambda purity: (purity > 0.4).to(purity)),
    "NashMTL": lambda: NashMTL(n_tasks=3, update_every=2),
    "Every": lambda: Every(UPGrad(), n_tasks=3, steps=2),
    "PerGroup": lambda: PerGroup({name: GradVac(n_tasks=3) for name in ("low", "high")}),
}


@pytest.mark.parametrize("make", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("kind", ["plain", "sparse", "reentrant"])
def test_as_in_one_piece(make: Callable[[], Weighting | None], kind: str) -> None:
    """Two windows one after the other: a method's state goes on, too."""
    options = {"checkpointed": kind == "reentrant", "sparse": kind == "sparse"}
    net, twin, method, other = Net(**options), Net(**options), make(), make()
    shared = groups(net) if isinstance(method, PerGroup) else None
    window = Window(net, weighting=method, shared=shared)
    for _ in range(2):
        for part in parts():
            window.backward(net.losses(part), count=counts(part))
        mean = window.close()
        step = gw.backward(
            twin.losses(joined(parts()), mean=True),
            weighting=other,
            shared=groups(twin) if isinstance(other, PerGroup) else None,
        )

        assert difference(gradients(net), gradients(twin)) <= 1e-12
        torch.testing.assert_close(mean.loss, step.losses, rtol=1e-12, atol=0)
        assert (mean.weights is None) == (step.weights is None)
        if mean.weights is not None and step.weights is not None:
            torch.testing.assert_close(mean.weights, step.weights, rtol=1e-10, atol=1e-12)
    if method is not None and other is not None:
        own, others = list(method.parameters()), list(other.parameters())
        for parameter, same in zip(own, others, strict=True):
            torch.testing.assert_close(parameter.grad, same.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("heads", ["weighted", "unweighted", "mean", "log"])
def test_rules_for_the_heads(heads: str) -> None:
    net, twin = Net(), Net()
    window = Window(net, weighting=MGDA(), heads=heads)  # type: ignore[arg-type]
    for part in parts():
        window.backward(net.losses(part), count=counts(part))
    window.close()
    whole = twin.losses(joined(parts()), mean=True)
    gw.backward(whole, weighting=MGDA(), heads=heads)  # type: ignore[arg-type]

    assert difference(gradients(net), gradients(twin)) <= 1e-12


def test_a_task_without_a_label_in_the_window() -> None:
    net, twin = Net(), Net()
    window = Window(net, weighting=UPGrad())
    for part in parts(absent="b"):
        window.backward(net.losses(part), count=counts(part))
    mean = window.close()
    gw.backward(twin.losses(joined(parts(absent="b")), mean=True), weighting=UPGrad())

    assert difference(gradients(net), gradients(twin)) <= 1e-12
    assert mean.weights is not None and mean.weights[1] == 0 and mean.loss[1].isnan()
    assert isinstance(mean.count, dict) and mean.count["b"] == 0


def test_a_micro_batch_without_any_label() -> None:
    net, twin = Net(), Net()
    window = Window(net, weighting=UPGrad())
    for part in parts():
        window.backward(net.losses(part), count=counts(part))
        window.backward(dict.fromkeys(TASKS), count={})
    assert window.close().micro_batches == 2 * len(ROWS)
    gw.backward(twin.losses(joined(parts()), mean=True), weighting=UPGrad())

    assert difference(gradients(net), gradients(twin)) <= 1e-12


def test_gradients_from_before_are_added() -> None:
    net, twin = Net(), Net()
    for one in (net, twin):
        sum(loss for loss in one.losses(parts()[0]).values() if loss is not None).backward()  # type: ignore[union-attr]
    window = Window(net, weighting=UPGrad())
    for part in parts():
        window.backward(net.losses(part), count=counts(part))
    before = gradients(net)
    assert difference(before, gradients(twin)) == 0  # nothing is written before `close`
    window.close()
    gw.backward(twin.losses(joined(parts()), mean=True), weighting=UPGrad())

    assert difference(gradients(net), gradients(twin)) <= 1e-12


def test_hooks_of_parameters_run_once_per_gradient() -> None:
    net, twin = Net(), Net()
    for one in (net, twin):
        weight(one).register_hook(lambda gradient: 2 * gradient)
    window = Window(net, weighting=UPGrad())
    for part in parts():
        window.backward(net.losses(part), count=counts(part))
    window.close()
    gw.backward(twin.losses(joined(parts()), mean=True), weighting=UPGrad())

    assert difference(gradients(net), gradients(twin)) <= 1e-12
    assert len(weight(net)._backward_hooks or ()) == 1


def test_with_a_grad_scaler() -> None:
    net, twin = Net().float(), Net().float()
    torch.set_default_dtype(torch.float32)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    window = Window(net, weighting=UPGrad(), scaler=scaler)
    for part in parts():
        window.backward(net.losses(part), count=counts(part))
    window.close()
    scaler.unscale_(optimizer)
    gw.backward(twin.losses(joined(parts()), mean=True), weighting=UPGrad())

    assert difference(gradients(net), gradients(twin)) <= 1e-5


def test_a_scaler_leaves_out_a_step_that_overflowed() -> None:
    net = Net().float()
    torch.set_default_dtype(torch.float32)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = weight(net).detach().clone()
    window = Window(net, weighting=UPGrad(), scaler=scaler)
    for part in parts():
        losses = {t: None if loss is None else loss * 1e34 for t, loss in net.losses(part).items()}
        window.backward(losses, count=counts(part))
    window.close()
    scaler.step(optimizer)
    scaler.update()

    assert torch.equal(weight(net), before) and scaler.get_scale() == 2.0**19


def test_gradients_that_are_not_finite_are_refused() -> None:
    net = Net()
    window = Window(net, weighting=UPGrad())
    for part in parts():
        losses = {t: None if loss is None else loss * 1e308 for t, loss in net.losses(part).items()}
        window.backward(losses, count=counts(part))
    with pytest.raises(ValueError, match="finite"):
        window.close()

    assert all(gradient is None for gradient in gradients(net))
    window.discard()
    assert len(window) == 0


def test_the_loss_is_a_mean_per_task() -> None:
    net = Net()
    window = Window(net)
    for part in parts():
        window.backward(net.losses(part), count=counts(part))
    mean = window.close()
    whole = net.losses(joined(parts()), mean=True)

    for task, found in zip(TASKS, mean.loss, strict=True):
        assert float(found) == pytest.approx(whole[task].item(), rel=1e-14)  # type: ignore[union-attr]
    assert mean.count == counts(joined(parts()))
