"""Weights that are used for several steps."""

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    Weighting,
    backward,
)
from gradwright.weighting import MGDA, UPGrad
from gradwright.weighting.every import Every
from gradwright.weighting.imtlg import IMTLG
from gradwright.weighting.log import Log
from gradwright.weighting.modo import MoDo
from gradwright.weighting.nash_mtl import NashMTL

G = torch.tensor([[4.0, 1.0, 0.5], [1.0, 2.0, -0.5], [0.5, -0.5, 1.0]]).double()
OTHER = torch.diag(torch.tensor([1.0, 4.0, 9.0])).double()


def test_the_method_is_asked_in_one_of_so_many_steps() -> None:
    every = Every(IMTLG(), 3, steps=3)
    found = [every(gramian) for gramian in (G, OTHER, OTHER, OTHER, G)]

    assert torch.equal(found[0], IMTLG()(G))
    assert torch.equal(found[1], found[0]) and torch.equal(found[2], found[0])
    assert torch.equal(found[3], IMTLG()(OTHER))
    assert torch.equal(found[4], found[3])


def test_known_weights_take_the_place_of_a_call() -> None:
    every, twin = Every(IMTLG(), 3, steps=2), Every(IMTLG(), 3, steps=2)
    for gramian in (G, OTHER, OTHER, G):
        expected = twin(gramian)
        known = every.known_weights(torch.ones(3))
        assert torch.equal(every(gramian) if known is None else known, expected)
        assert torch.equal(every.kept.steps, twin.kept.steps)


def test_asking_what_is_known_changes_nothing_where_nothing_is() -> None:
    every = Every(IMTLG(), 3, steps=2)
    before = copy.deepcopy(every.state_dict())

    assert every.known_weights(torch.ones(3)) is None
    assert every.due
    assert all(torch.equal(before[name], value) for name, value in every.state_dict().items())


def test_a_task_without_weights_is_asked_for_at_once() -> None:
    every = Every(IMTLG(), 3, steps=100)
    with every.only(torch.tensor([0, 1])):
        every(G[:2, :2])
        assert not every.due

    assert every.due
    torch.testing.assert_close(every(G), IMTLG()(G))


def test_an_absent_task_keeps_its_weight() -> None:
    every = Every(IMTLG(), 3, steps=2)
    first = every(G)
    with every.only(torch.tensor([0, 2])):
        assert torch.equal(every(OTHER[:2, :2]), first[[0, 2]])
        renewed = every(OTHER[[0, 2]][:, [0, 2]])

    assert every.kept.weights[1] == first[1]
    torch.testing.assert_close(every.kept.weights[[0, 2]], renewed)


KINDS = [
    (IMTLG(), GramianWeighting),
    (MGDA(), GramianLossWeighting),
    (Log(UPGrad()), GramianLossWeighting),
    (MoDo(3), CrossGramianWeighting),
]


@pytest.mark.parametrize(("inner", "kind"), KINDS, ids=["G", "G, losses", "log", "cross"])
def test_reads_what_its_method_reads(inner: Weighting, kind: type) -> None:
    every = Every(inner, 3, steps=2)
    read: tuple[Tensor, ...] = (G, torch.ones(3) * 2) if kind is GramianLossWeighting else (G,)

    assert isinstance(every, Every) and isinstance(every, kind)
    expected = copy.deepcopy(inner)(*read)
    torch.testing.assert_close(every(*read), expected)
    for twin in (copy.deepcopy(every), pickle.loads(pickle.dumps(every))):
        assert type(twin) is type(every)
        assert twin.torchjd_heads == inner.torchjd_heads == every.torchjd_heads


@pytest.mark.parametrize(
    ("method", "fresh"),
    [
        (Every(MoDo(3), 3, 3), Every(MoDo(3), 3, 3)),
        (NashMTL(3, 1.0, 3), NashMTL(3, 1.0, 3)),
    ],
    ids=["Every", "NashMTL"],
)
def test_a_saved_state_goes_on_to_the_bit(method: Weighting, fresh: Weighting) -> None:
    """Saved between two turns, and with a task that was never seen."""
    with method.only(torch.tensor([0, 1])):
        method(G[:2, :2])
    fresh.load_state_dict(copy.deepcopy(method.state_dict()))
    for gramian in (G, OTHER, OTHER, G):
        assert torch.equal(fresh(gramian), method(gramian))
    assert all(
        torch.equal(value, method.state_dict()[name]) for name, value in fresh.state_dict().items()
    )


def test_nash_mtl_clips_each_update_that_it_is_shown() -> None:
    nash = NashMTL(3, max_norm=1.0, update_every=2)
    for gramian in (G, 9 * G):
        weights = nash(gramian)
        assert float(weights @ gramian @ weights) == pytest.approx(1.0)


def test_the_longest_update_of_the_method_inside_is_kept() -> None:
    assert Every(NashMTL(max_norm=0.5), 3, 2).max_norm == 0.5
    assert Every(Log(NashMTL(max_norm=0.5)), 3, 2).max_norm == 0.5
    assert Every(UPGrad(), 3, 2).max_norm is None


def test_no_error_is_measured_without_the_batches() -> None:
    with pytest.raises(ValueError, match="`measure_error` asks MoDo in every step"):
        Every(MoDo(3), 3, 2, measure_error=True)


def test_its_name_is_the_one_that_users_wrote() -> None:
    for wrapper, name in ((Every(UPGrad(), 3, 2), "Every"), (Log(UPGrad()), "Log")):
        assert repr(wrapper).startswith(f"{name}(\n")
    model, losses = nn.Linear(3, 3), []
    losses = [row.square().sum() for row in model(torch.ones(1, 3))[0]]

    assert str(backward(losses, weighting=Every(UPGrad(), 3, 2)).route).startswith("rows: Every")
