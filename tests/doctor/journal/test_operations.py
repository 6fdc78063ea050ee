"""The record of operations: cuts, writes, escapes, freezes, switches; arming and resting."""

import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from gradwright.doctor.journal import Journal, UserCode, modes
from gradwright.doctor.journal.operations import storage_of


@pytest.fixture
def journal() -> Iterator[Journal]:
    failures: list[BaseException] = []
    journal = Journal(UserCode(), failures.append)
    journal.start(sys._getframe())
    yield journal
    journal.stop()
    assert failures == []


def leaf() -> Tensor:
    return torch.ones(2, requires_grad=True)


def without_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x * 2


def in_inference(x: Tensor) -> Tensor:
    with torch.inference_mode():
        return x * 2


@pytest.mark.parametrize(
    ("cut", "make"),
    [
        ("detach", lambda x: x.detach()),
        ("detach", lambda x: (x * 1).detach_()),
        ("data", lambda x: x.data),
        ("copy", lambda x: torch.tensor(x)),
        ("integer", lambda x: x.argmax()),
        ("integer", lambda x: x > 0),
        ("recording-off", without_grad),
        ("inference", in_inference),
        ("no-derivative", lambda x: torch.zeros_like(x)),
        ("", lambda x: x * 2),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_cuts(journal: Journal, cut: str, make: Callable[[Tensor], Tensor]) -> None:
    made = make(leaf() * 1)

    operation = journal.operations.of(made)
    assert operation is not None
    assert operation.cut == cut


def _write_by_index(x: Tensor) -> None:
    x[0] = 3


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: torch.add(torch.ones(2), 1, out=x),
        lambda x: x.view(2, 1).mul_(2),
        lambda x: torch._foreach_add_([torch.ones(1), x], 1),
        lambda x: nn.init.uniform_(x),
        lambda x: nn.functional.relu(x, inplace=True),
        _write_by_index,
    ],
)
def test_in_place_writes(journal: Journal, write: Callable[[Tensor], object]) -> None:
    x = torch.ones(2)
    version = x._version
    write(x)

    found = [one for one in journal.operations.writes if one.storage == storage_of(x)]
    assert found and found[-1].version == x._version > version
    assert journal.places.stack(found[-1].place)[0].file == __file__


def test_escapes_freezes_and_switches(journal: Journal) -> None:
    x = leaf()
    x.sum().item()
    x.detach().numpy()
    x.requires_grad_(False)
    x.requires_grad = True
    nn.Linear(1, 1).requires_grad_(False)

    @torch.no_grad()
    def decorated() -> None:
        return None

    decorated()
    assert [escape.name for escape in journal.operations.escapes] == ["item", "numpy"]
    assert [escape.required_grad for escape in journal.operations.escapes] == [True, False]
    assert [freeze.value for freeze in journal.operations.freezes[:2]] == [False, True]
    assert len(journal.operations.freezes) == 4
    assert [switch.recording for switch in journal.operations.switches] == [False, True]


def step(weight: Tensor, optimizer: torch.optim.Optimizer, turn: int) -> Tensor | None:
    loss = (weight * 2).sum()
    loss.backward()
    optimizer.step()
    if turn == 8:
        return torch.ones(3)  # a new line
    return None


def test_the_record_rests_after_quiet_steps_and_starts_again(journal: Journal) -> None:
    weight = leaf()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    armed = []
    for turn in range(16):
        step(weight, optimizer, turn)
        armed.append(modes.holds(journal._recorder_here()))  # type: ignore[arg-type]

    assert armed[:3] == [True] * 3
    assert armed[5:8] == [False] * 3
    assert armed[8:11] == [True] * 3
    assert armed[14:] == [False] * 2


def test_what_runs_for_long_without_steps_rests(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.ones(1)
    for _ in range(10):
        x = x + 1
        journal.operations.rest_at = min(journal.operations.rest_at, 20)
        x = x * 1
        x = x - 1

    assert journal.operations.count < 25


@pytest.mark.filterwarnings("ignore")
def test_other_tensors_go_through(journal: Journal) -> None:
    class Named(torch.Tensor):
        pass

    @torch.jit.script
    def scripted(x: Tensor) -> Tensor:
        return x * 2

    parameter = nn.Parameter(torch.ones(2))
    made = parameter * torch.ones(2).as_subclass(Named)
    nn.LazyLinear(2)(torch.ones(1, 2))
    scripted(torch.ones(2))
    torch.vmap(torch.func.grad(lambda x: (x**2).sum()))(torch.ones(2, 2))
    attention = torch.jit.script(nn.MultiheadAttention(4, 2))  # asks for overrides in TorchScript

    operation = journal.operations.of(made)
    assert operation is not None and operation.name == "mul"
    sources = [journal.operations[index] for index in operation.parents]
    assert next(one.source for one in sources if one is not None) == "parameter"
    assert attention is not None
