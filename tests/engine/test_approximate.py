"""Approximate Gramians: the weights are a little off, the combined gradient is exact for them."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from gradwright.engine import (
    Approximation,
    Features,
    LastBlock,
    LossError,
    SharedError,
    Sketch,
    backward,
)
from gradwright.weighting import Every, GradVac, MoCo, MoDo, NashMTL, PCGrad
from tests.engine.methods import Counting, InverseNorms, assert_gradients, inverse_norms
from tests.engine.models import layers, wide, wirings
from tests.engine.models.common import Build, Heads, batch, mlp
from tests.engine.refusal import Step
from tests.engine.test_freed import boxed
from tests.reference.task_gradients import TaskGradients, task_gradients, trainable


class Wide:
    """A trunk of linear layers (or convolutions) with more channels than a sketch keeps."""

    def __init__(self, kind: str = "linear") -> None:
        torch.manual_seed(0)
        self.first: nn.Module
        self.last: nn.Module
        if kind == "linear":
            self.first = mlp(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 4))
            self.last, self.x = nn.Linear(4, 8), batch()
        else:
            convolutions = nn.Conv2d(2, 9, 3, bias=False), nn.Tanh(), nn.Conv2d(9, 6, 3, 2)
            self.first = nn.Sequential(*convolutions)
            self.last = nn.Sequential(nn.Flatten(), nn.Linear(24, 8))
            self.x = torch.randn(4, 2, 8, 8)
        self.heads = Heads(8)
        parts = (self.first, self.last, self.heads)
        self.leaves = [leaf for part in parts for leaf in part.parameters()]
        self.trunk = [*self.first.parameters(), *self.last.parameters()]

    def forward(self) -> tuple[Tensor, dict[str, Tensor]]:
        features = self.last(self.first(self.x))
        return features, self.heads(features)


Make = Callable[[Wide, Tensor], Approximation]
KINDS: dict[str, Make] = {
    "last block": lambda wide, features: LastBlock(wide.last.parameters()),
    "features": lambda wide, features: Features([features]),
    "sketch": lambda wide, features: Sketch(4, torch.Generator().manual_seed(0)),
}
kinds = pytest.mark.parametrize("name", KINDS)
trunks = pytest.mark.parametrize("trunk", ["linear", "convolution"])


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("heads", ["unweighted", "weighted"])
@trunks
@kinds
def test_combined_gradient_is_exact_for_the_weights(name: str, trunk: str, heads: str) -> None:
    wide, twin = Wide(trunk), Wide(trunk)
    features, losses = wide.forward()
    route = KINDS[name](wide, features)
    result = backward(losses, weighting=InverseNorms(), route=route, heads=heads)  # type: ignore[arg-type]
    expected = task_gradients([*twin.forward()[1].values()], twin.leaves)

    assert result.weights is not None and result.gramian is not None
    torch.testing.assert_close(result.weights, inverse_norms(result.gramian))
    factors = result.weights if heads == "weighted" else torch.ones(3)
    assert_gradients(wide.leaves, expected.combined(result.weights, factors))
    assert (result.route.name, result.route.exact, result.route.error) == (name, False, None)
    assert str(result.route).startswith(f"{name} (approximate): InverseNorms reads")


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("heads", ["unweighted", "weighted"])
@kinds
def test_an_update_is_no_longer_than_the_method_allows(name: str, heads: str) -> None:
    """Although the Gramian that the method reads does not say how long it is."""
    wide, free = Wide("linear"), Wide("linear")
    for model, method in ((wide, NashMTL(max_norm=0.5)), (free, NashMTL())):
        features, losses = model.forward()
        route = KINDS[name](model, features)
        backward(losses, weighting=method, route=route, heads=heads)  # type: ignore[arg-type]
    shared = wide.trunk
    lengths = [
        float(torch.cat([leaf.grad.flatten() for leaf in leaves]).norm())  # type: ignore[union-attr]
        for leaves in (shared, free.trunk)
    ]

    assert lengths[1] > 0.5 and lengths[0] == pytest.approx(0.5)
    for leaf, longer in zip(wide.leaves, free.leaves, strict=True):
        common = heads == "weighted" or any(leaf is one for one in shared)
        factor = lengths[0] / lengths[1] if common else 1.0
        torch.testing.assert_close(leaf.grad, longer.grad * factor)  # type: ignore[operator]


@pytest.mark.usefixtures("double")
@trunks
def test_last_block_is_the_gramian_of_its_parameters(trunk: str) -> None:
    wide, twin = Wide(trunk), Wide(trunk)
    _, losses = wide.forward()
    found = backward(losses, weighting=PCGrad(), route=LastBlock(wide.last.parameters())).gramian
    expected = task_gradients([*twin.forward()[1].values()], [*twin.last.parameters()])

    torch.testing.assert_close(found, expected.gramian())


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("build", [pytest.param(b, id=name) for name, b in wide.MODELS.items()])
def test_last_block_of_wide_layers(build: Build) -> None:
    """Their weights are larger than what they return: the rows are made a part at a time."""
    torch.manual_seed(0)
    model = build()
    losses = model.losses()
    torch.manual_seed(0)
    twin = build()
    expected = task_gradients([*twin.losses().values()], trainable(twin.module))
    pairs = zip(trainable(model.module), expected.shared, strict=True)
    route = LastBlock([leaf for leaf, shared in pairs if shared])
    found = backward(losses, weighting=InverseNorms(), route=route).gramian

    torch.testing.assert_close(found, expected.gramian(), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("double")
def test_features_are_the_gramian_there() -> None:
    wide, twin = Wide(), Wide()
    features, losses = wide.forward()
    found = backward(losses, weighting=PCGrad(), route=Features(features)).gramian
    twin_features, twin_losses = twin.forward()
    each = twin_losses.values()
    rows = [torch.autograd.grad(loss, twin_features, retain_graph=True) for loss in each]
    flat = torch.stack([row.flatten() for (row,) in rows])

    torch.testing.assert_close(found, flat @ flat.T)


def sketched(trunk: str, size: int, seed: int) -> Tensor:
    route = Sketch(size, torch.Generator().manual_seed(seed))
    found = backward(Wide(trunk).forward()[1], weighting=PCGrad(), route=route).gramian
    assert found is not None
    return found


def exact(trunk: str) -> Tensor:
    wide = Wide(trunk)
    return task_gradients([*wide.forward()[1].values()], wide.leaves).gramian()


@pytest.mark.usefixtures("double")
@trunks
def test_sketch_is_right_on_average_and_nearer_with_size(trunk: str) -> None:
    G = exact(trunk)
    found = {
        size: torch.stack([sketched(trunk, size, seed) for seed in range(60)]) for size in (2, 6)
    }
    off = {
        size: (each - G).flatten(1).norm(dim=1).square().mean().sqrt()
        for size, each in found.items()
    }

    for size, each in found.items():
        assert (each.mean(0) - G).norm() <= 4 * off[size] / 60**0.5
    assert 0.01 * G.norm() < off[6] < off[2] < G.norm()


@pytest.mark.usefixtures("double")
@trunks
def test_sketch_of_all_channels_is_exact(trunk: str) -> None:
    torch.testing.assert_close(sketched(trunk, 100, 0), exact(trunk))


def test_sketch_draws_from_its_generator_alone() -> None:
    losses = [Wide().forward()[1] for _ in range(3)]
    state = torch.get_rng_state()
    generators = [torch.Generator().manual_seed(seed) for seed in (0, 0, 1)]
    first, second, other = (
        backward(each, weighting=InverseNorms(), route=Sketch(4, generator)).gramian
        for each, generator in zip(losses, generators, strict=True)
    )

    assert first is not None and second is not None and other is not None
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


MODELS: dict[str, Build] = layers.MODELS | wirings.MODELS | wide.MODELS


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("size", [1, 1000], ids=["one mixture", "more than there are channels"])
@pytest.mark.parametrize("build", [pytest.param(b, id=name) for name, b in MODELS.items()])
def test_sketch_of_every_model(build: Build, size: int) -> None:
    """Tied weights, checkpoints and modules called twice: what cannot be sketched is exact."""
    torch.manual_seed(0)
    model = build()
    losses = model.losses()
    result = backward(losses, weighting=InverseNorms(), route=Sketch(size))
    torch.manual_seed(0)
    twin = build()
    expected = task_gradients([*twin.losses().values()], trainable(twin.module))

    assert result.gramian is not None and result.weights is not None
    torch.testing.assert_close(result.weights, inverse_norms(result.gramian))
    if size == 1000:
        torch.testing.assert_close(result.gramian, expected.gramian(), rtol=1e-9, atol=1e-12)
    combined = expected.combined(result.weights, torch.ones(len(result.weights)))
    assert_gradients(trainable(model.module), combined, rtol=1e-8, atol=1e-11)


def trunk_gradient(gradients: TaskGradients, weights: Tensor) -> Tensor:
    """Σ weight × row of all shared leaves: [parameter]."""
    combined = gradients.combined(weights, torch.ones(len(weights)))
    shared = [g for g, keep in zip(combined, gradients.shared, strict=True) if keep]
    return torch.cat([g.flatten() for g in shared if g is not None])


@pytest.mark.usefixtures("double")
@kinds
def test_error_is_measured(name: str) -> None:
    wide, twin = Wide(), Wide()
    features, losses = wide.forward()
    route = KINDS[name](wide, features)
    route.measure_error = True
    result = backward(losses, weighting=InverseNorms(), route=route)
    expected = task_gradients([*twin.forward()[1].values()], twin.leaves)
    G, found = expected.gramian(), result.gramian
    assert found is not None and result.weights is not None and result.route.error is not None
    exact, ours = (trunk_gradient(expected, w) for w in (inverse_norms(G), result.weights))
    best = (found * G).sum() / (found * found).sum()
    error, cosine = (ours - exact).norm() / exact.norm(), torch.cosine_similarity(ours, exact, 0)

    assert result.route.error.gramian == pytest.approx(float((best * found - G).norm() / G.norm()))
    assert result.route.error.update == pytest.approx(float(error))
    assert result.route.error.cosine == pytest.approx(float(cosine))
    assert 1e-3 < (result.route.error.gramian or 0.0) < 1
    assert str(result.route).endswith(
        f"; off are the Gramian by {result.route.error.gramian:.2g}, the update by "
        f"{float(error):.2g} (cosine {float(cosine):.4f})"
    )


def test_measuring_moves_no_state_and_no_random_numbers() -> None:
    found = []
    for measure in (False, True):
        wide, method = Wide(), GradVac(3)
        torch.manual_seed(5)
        route = LastBlock(wide.last.parameters(), measure_error=measure)
        backward(wide.forward()[1], weighting=method, route=route)
        found.append((method.targets, torch.get_rng_state(), [leaf.grad for leaf in wide.leaves]))

    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert_gradients([*map(_with_grad, found[0][2])], found[1][2])


def _with_grad(grad: Tensor | None) -> Tensor:
    leaf = torch.empty(0)
    leaf = torch.zeros_like(grad) if grad is not None else leaf
    leaf.grad = grad
    return leaf


def flops(work: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def test_costs() -> None:
    """In plain backwards: features one, a sketch half of the exact route."""
    torch.manual_seed(0)
    trunk, heads = nn.Sequential(*(nn.Linear(64, 64) for _ in range(4))), Heads(64, n_tasks=8)
    x = torch.randn(8, 64)
    plain = flops(lambda: backward(heads(trunk(x))))
    cost = {}
    for name in ("exact", "features", "sketch"):
        features = trunk(x)
        step = partial(backward, heads(features), weighting=InverseNorms())
        route = {"features": Features(features), "sketch": Sketch(8)}.get(name, "rows")
        cost[name] = flops(partial(step, route=route)) / plain

    assert cost["features"] < 1.05
    assert cost["sketch"] < 0.75 * cost["exact"]


@kinds
def test_nothing_outlives_the_call(name: str) -> None:
    wide = Wide()
    with boxed() as alive:
        features, losses = wide.forward()
    route = KINDS[name](wide, features)
    route.measure_error = True
    assert alive
    backward(losses, weighting=PCGrad(), route=route)

    assert not alive


@pytest.mark.parametrize(
    "build", [pytest.param(b, id=name) for name, b in MODELS.items() if "checkpoint" not in name]
)
def test_nothing_of_any_model_outlives_the_call(build: Build) -> None:
    torch.manual_seed(0)
    model = build()
    with boxed() as alive:
        losses = model.losses()
    assert alive
    backward(losses, weighting=InverseNorms(), route=Sketch(1))

    assert not alive


@kinds
def test_kept_graph_gives_the_same_again(name: str) -> None:
    wide = Wide()
    features, losses = wide.forward()
    first: list[Tensor | None] = []
    for keep in (True, False):
        route = KINDS[name](wide, features)
        backward(losses, weighting=InverseNorms(), route=route, retain_graph=keep)
        first = first or [None if leaf.grad is None else leaf.grad.clone() for leaf in wide.leaves]
        if keep:
            for leaf in wide.leaves:
                leaf.grad = None

    assert_gradients(wide.leaves, first)


def test_scaled_gradients() -> None:
    grads = []
    for scaler in (None, torch.amp.GradScaler("cpu", init_scale=2.0**12)):
        wide = Wide()
        route = LastBlock(wide.last.parameters(), measure_error=True)
        result = backward(wide.forward()[1], weighting=InverseNorms(), route=route, scaler=scaler)
        assert result.route.error is not None
        grads.append(([leaf.grad for leaf in wide.leaves], result.route.error.update))
    assert grads[0][1] == pytest.approx(grads[1][1], rel=1e-3)
    expected = [None if grad is None else grad * 2**12 for grad in grads[0][0]]
    assert_gradients([*map(_with_grad, grads[1][0])], expected, rtol=1e-4, atol=1e-2)


@pytest.mark.usefixtures("double")
def test_absent_tasks_are_as_if_never_there() -> None:
    wide, twin = Wide(), Wide()
    _, losses = wide.forward()
    route = LastBlock(wide.last.parameters())
    result = backward(losses | {"task1": None}, weighting=InverseNorms(), route=route)
    _, all_losses = twin.forward()
    kept = [all_losses["task0"], all_losses["task2"]]
    weights = inverse_norms(task_gradients(kept, [*twin.last.parameters()]).gramian())
    expected = task_gradients(kept, twin.leaves)

    assert_gradients(wide.leaves, expected.combined(weights, torch.ones(2)))
    assert result.weights is not None
    assert result.weights[1] == 0


def test_goes_with_weights_used_for_several_steps() -> None:
    wide, every = Wide(), Every(PCGrad(), 3, 2)
    names = []
    for _ in range(4):
        features, losses = wide.forward()
        names.append(backward(losses, weighting=every, route=Features(features)).route.name)

    assert names == ["features", "known"] * 2


def test_exact_routes_say_that_they_are() -> None:
    assert backward(Wide().forward()[1], weighting=PCGrad()).route.exact
    assert backward(Wide().forward()[1]).route.exact


REFUSED = [
    pytest.param(lambda s: LastBlock(s.heads.parameters()), SharedError, "no shared parameter"),
    pytest.param(lambda s: LastBlock([s.features]), SharedError, "`Features`"),
    pytest.param(lambda s: LastBlock([]), SharedError, "`LastBlock` holds no tensor"),
    pytest.param(lambda s: Features([]), SharedError, "`Features` holds no tensor"),
    pytest.param(lambda s: Features([s.features * 2]), SharedError, "that no loss reaches"),
    pytest.param(lambda s: Features([s.features.detach()]), SharedError, "that no loss reaches"),
    pytest.param(
        lambda s: Features([*s.heads.heads[0].parameters()]),
        SharedError,
        "loss 'task1' reaches none",
    ),
]


@pytest.mark.parametrize(("make", "error", "says"), REFUSED)
def test_tensors_that_do_not_fit_are_refused(
    make: Callable[[Step], Approximation], error: type[Exception], says: str
) -> None:
    step = Step()
    step.refused(error, [says], weighting=PCGrad(), route=make(step))


@pytest.mark.parametrize("weighting", [None, Counting(), MoCo(3)], ids=["sum", "losses", "rows"])
def test_methods_that_read_no_gramian_are_refused(weighting: object) -> None:
    says = ["`route` is Sketch, which approximates the Gramian", "does not read that"]
    Step().refused(ValueError, says, weighting=weighting, route=Sketch())


def test_a_method_of_two_batches_is_refused() -> None:
    step = Step()
    other = step.heads(step.trunk(batch()))
    step.refused(
        ValueError, ["MoDo does not read that"], weighting=MoDo(3), route=Sketch(), other=[other]
    )


def test_a_reentrant_checkpoint_is_refused() -> None:
    step = Step()
    losses = step.heads(checkpoint(step.trunk, batch().requires_grad_(), use_reentrant=True))
    step.refused(
        LossError, ["use_reentrant=False"], losses=losses, weighting=PCGrad(), route=Sketch()
    )


def test_a_sketch_has_a_size() -> None:
    with pytest.raises(ValueError, match="`size` needs to be 1 or more: got 0"):
        Sketch(0)
