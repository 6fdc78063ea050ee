"""The numbers of the monitor against gradients that are worked out by hand."""

import itertools
from collections.abc import Sequence
from math import nan

import pytest
import torch
from torch import Tensor, nn

from gradwright.monitor import ConflictMonitor
from tests.monitor.models import Shared, losses_of


def assert_close(found: Tensor, expected: Tensor) -> None:
    """To 1e-12; NaN in the same places."""
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12, equal_nan=True)


def hand_cosines(rows: Sequence[Tensor | None]) -> Tensor:
    """Of flat gradients [task], by the formula; NaN where one is None."""
    cosines = torch.full((len(rows), len(rows)), nan, dtype=torch.float64)
    for i, j in itertools.product(range(len(rows)), repeat=2):
        one, other = rows[i], rows[j]
        if one is not None and other is not None:
            cosines[i, j] = one @ other / (one.norm() * other.norm())
    return cosines


def rows_at(losses: dict[str, Tensor | None], layer: nn.Module) -> list[Tensor | None]:
    """One `torch.autograd.grad` per loss, flat."""
    parameters = list(layer.parameters(recurse=False))
    rows: list[Tensor | None] = []
    for loss in losses.values():
        if loss is None:
            rows.append(None)
            continue
        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        flat = [one.flatten() for one in found if one is not None]
        rows.append(torch.cat(flat) if flat else None)
    return rows


def test_two_quadratics_by_hand() -> None:
    """Gradients (2, 0), (0, 4) and (-3, -3) at the one weight."""
    weight = nn.Parameter(torch.ones(2, dtype=torch.float64))
    monitor = ConflictMonitor({"w": [weight]})
    losses = [weight[0] ** 2, 2 * weight[1] ** 2, -1.5 * weight.square().sum()]
    monitor.watch(losses)

    half = 0.5**0.5
    expected = torch.tensor([[1, 0, -half], [0, 1, -half], [-half, -half, 1]], dtype=torch.float64)
    assert_close(monitor.latest.cosines["w"], expected)
    lengths = torch.tensor([2, 4, 3 * 2**0.5], dtype=torch.float64)
    assert_close(monitor.latest.norms["w"], lengths)
    (row,) = monitor.table()
    assert row.least_cosine == pytest.approx(-half, abs=1e-12)
    assert row.mean_cosine == pytest.approx(-2 * half / 3, abs=1e-12)
    assert row.norm_ratio == pytest.approx(3 * 2**0.5 / 2, abs=1e-12)
    assert row.least_tasks in {("0", "2"), ("1", "2")}
    assert row.conflict_share == 1.0
    conflicts = {pair.tasks: pair.conflict_share for pair in monitor.pairs()}
    assert conflicts == {("0", "1"): 0.0, ("0", "2"): 1.0, ("1", "2"): 1.0}  # 90° is no conflict


@pytest.mark.parametrize(
    ("absent", "layers"),
    [
        (None, ["trunk.0", "trunk.2", "experts.0"]),
        ("b", ["trunk.0", "trunk.2"]),
        ("c", ["trunk.0", "trunk.2", "experts.0"]),
    ],
)
def test_each_layer_agrees_with_one_backward_per_loss(
    absent: str | None, layers: list[str]
) -> None:
    model = Shared().double()
    losses = losses_of(model, 0, absent=absent)
    monitor = ConflictMonitor(model)
    monitor.watch(losses)

    assert list(monitor.latest.cosines) == layers
    for name, cosines in monitor.latest.cosines.items():
        assert_close(cosines, hand_cosines(rows_at(losses, model.get_submodule(name))))


def test_losses_in_one_tensor() -> None:
    model = Shared().double()
    losses = losses_of(model, 0)
    monitor = ConflictMonitor(model)
    monitor.watch(torch.stack([loss for loss in losses.values() if loss is not None]))

    assert list(monitor.latest.cosines) == ["trunk.0", "trunk.2", "experts.0"]
    for name, cosines in monitor.latest.cosines.items():
        assert_close(cosines, hand_cosines(rows_at(losses, model.get_submodule(name))))


def test_a_layer_that_some_tasks_do_not_reach() -> None:
    """`experts.0` serves tasks a and b, `experts.1` serves c alone, as a head does."""
    monitor = ConflictMonitor(model := Shared().double())
    monitor.watch(losses_of(model, 0))

    cosines = monitor.latest.cosines["experts.0"]
    assert cosines[:2, :2].isfinite().all()
    assert cosines[2].isnan().all() and cosines[:, 2].isnan().all()
    missing = monitor.latest.gramians["experts.0"].isnan()
    assert missing.tolist() == [[False, False, True], [False, False, True], [True, True, True]]
    assert "experts.1" not in monitor.latest.cosines
    assert not any(name.startswith("heads") for name in monitor.latest.cosines)


def test_a_gradient_of_zero_has_no_cosine_and_no_part_in_the_norm_ratio() -> None:
    weight = nn.Parameter(torch.ones(2, dtype=torch.float64))
    monitor = ConflictMonitor({"w": [weight]})
    monitor.watch([weight.sum(), 3 * weight.sum(), 0 * weight.sum()])

    assert monitor.latest.cosines["w"][2].isnan().all()
    assert monitor.latest.norms["w"][2] == 0
    assert monitor.table()[0].norm_ratio == pytest.approx(3)
    assert [row.tasks for row in monitor.pairs()] == [("0", "1")]


def test_a_gradient_that_is_not_finite_is_left_out() -> None:
    weight = nn.Parameter(torch.ones(2, dtype=torch.float64))
    monitor = ConflictMonitor({"w": [weight]})
    monitor.watch([weight.sum(), -3 * weight.sum(), (weight[0] - 1).sqrt()])

    assert monitor.latest.norms["w"].isnan().tolist() == [False, False, True]
    (row,) = monitor.table()
    assert row.norm_ratio == pytest.approx(3)
    assert row.least_cosine == pytest.approx(-1)


def test_one_loss_alone_meets_nobody_until_the_other_comes() -> None:
    weight = nn.Parameter(torch.ones(2))
    monitor = ConflictMonitor({"w": [weight]}, every=1)
    monitor.watch({"a": weight.sum(), "b": None})
    assert monitor.latest.cosines == {} and monitor.table() == [] and monitor.scalars() == {}

    monitor.watch({"a": weight.sum(), "b": -weight.sum()})
    monitor.watch({"a": weight.sum(), "b": None})

    assert monitor.latest.norms["w"][0] == pytest.approx(2**0.5)
    (row,) = monitor.table()
    assert (row.steps, row.conflict_share) == (1, 1.0)
    assert row.least_cosine == pytest.approx(-1)


def test_summaries_cover_all_steps_and_snapshots_the_last() -> None:
    model = Shared().double()
    monitor = ConflictMonitor(model, every=2, keep=3)
    seen = [found for step in range(20) if (found := monitor.watch(losses_of(model, step)))]

    assert [one.step for one in seen] == list(range(0, 20, 2))
    assert [one.step for one in monitor.snapshots] == [14, 16, 18]
    row = next(row for row in monitor.table() if row.layer == "trunk.0")
    cosines = torch.stack([one.cosines["trunk.0"] for one in seen])
    pairs = cosines[:, [0, 0, 1], [1, 2, 2]]
    assert row.steps == 10
    assert row.least_cosine == pytest.approx(float(pairs.min()), abs=1e-12)
    assert row.mean_cosine == pytest.approx(float(pairs.mean()), abs=1e-12)
    assert row.conflict_share == float((pairs < 0).any(1).double().mean())
    norms = torch.stack([one.norms["trunk.0"] for one in seen])
    ratio = (norms.amax(1) / norms.amin(1)).log().mean().exp()
    assert row.norm_ratio == pytest.approx(float(ratio), abs=1e-12)
    (pair,) = (p for p in monitor.pairs() if p.layer == "trunk.0" and p.tasks == ("a", "c"))
    assert pair.mean_cosine == pytest.approx(float(pairs[:, 1].mean()), abs=1e-12)
    assert pair.least_cosine == pytest.approx(float(pairs[:, 1].min()), abs=1e-12)
    first_by_second = (norms[:, 0] / norms[:, 2]).log().mean().exp()
    assert pair.norm_ratio == pytest.approx(float(first_by_second), abs=1e-12)
    assert pair.conflict_share == float((pairs[:, 1] < 0).double().mean())


def test_groups_join_the_parameters_given() -> None:
    model = Shared().double()
    losses = losses_of(model, 0)
    monitor = ConflictMonitor(
        {"trunk": model.trunk.parameters(), "last": [*model.trunk[2].parameters()]}
    )
    monitor.watch(losses)

    layers = [rows_at(losses, model.trunk[place]) for place in (0, 2)]
    rows = [torch.cat([a, b]) for a, b in zip(*layers, strict=True)]
    assert_close(monitor.latest.cosines["trunk"], hand_cosines(rows))
    assert list(monitor.latest.cosines) == ["trunk", "last"]


def test_tied_and_frozen_parameters() -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    first.bias.requires_grad_(False)
    model = nn.Sequential(first, second)
    monitor = ConflictMonitor(model)
    out = model(torch.ones(2, 3))
    losses = {"a": out.sum(), "b": out.square().sum()}
    monitor.watch(losses)

    for name, parameter in (("0", first.weight), ("1", second.bias)):
        rows = [torch.autograd.grad(x, parameter, retain_graph=True)[0] for x in losses.values()]
        expected = torch.cosine_similarity(rows[0].flatten(), rows[1].flatten(), dim=0)
        assert monitor.latest.cosines[name][0, 1] == pytest.approx(float(expected), abs=1e-6)


def test_scalars_are_flat_numbers() -> None:
    model = Shared().double()
    monitor = ConflictMonitor(model)
    monitor.watch(losses_of(model, 0))
    scalars = monitor.scalars()

    assert len(scalars) == 9
    cosines = monitor.latest.cosines["trunk.0"][[0, 0, 1], [1, 2, 2]]
    assert scalars["conflict/trunk.0/least_cosine"] == float(cosines.min())
    assert scalars["conflict/trunk.0/mean_cosine"] == float(cosines.mean())
    norms = monitor.latest.norms["trunk.0"]
    assert scalars["conflict/trunk.0/norm_ratio"] == float(norms.max() / norms.min())
    assert all(type(value) is float for value in scalars.values())


def test_printed_table() -> None:
    weight = nn.Parameter(torch.ones(2))
    monitor = ConflictMonitor({"trunk": [weight]})
    assert "call `watch(losses)`" in str(monitor)
    monitor.watch({"price": weight.sum(), "age": -2 * weight.sum()})

    assert str(monitor).splitlines() == [
        "2 tasks, 1 of 1 layers shared, last recorded at step 0",
        "layer                   steps  least   mean  norm ratio  conflict  least between",
        "trunk                       1  -1.00  -1.00           2      100%  price and age",
        "pairs most in conflict",
        "trunk                       1  -1.00  -1.00         0.5      100%  price and age",
    ]


def test_a_long_table_shows_the_layers_that_disagree_most() -> None:
    layers = {f"layer {place}": [nn.Parameter(torch.ones(2))] for place in range(50)}
    monitor = ConflictMonitor(layers)
    tilt = [torch.tensor([1.0, place / 10]) for place in range(50)]
    ones = torch.tensor([1.0, 0.0])
    parameters = [one for (one,) in layers.values()]
    monitor.watch(
        [
            sum(((w * t).sum() for w, t in zip(parameters, tilt, strict=True)), torch.zeros(())),
            sum(((w * ones).sum() for w in parameters), torch.zeros(())),
        ]
    )

    lines = str(monitor).splitlines()
    assert len(monitor.table()) == 50
    assert lines[-1] == "(10 more)"
    assert [line.split("  ")[0] for line in lines[2:-1]] == [f"layer {i}" for i in range(10, 50)]
