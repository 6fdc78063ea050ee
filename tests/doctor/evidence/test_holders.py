from collections import deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from gradwright.doctor.evidence.holders import Holder, find_holders
from tests.doctor.evidence.crashes import crash_of

State = namedtuple("State", ["hidden", "cell"])


@dataclass(slots=True)
class Slotted:
    value: object


class Inherited(Slotted):
    __slots__ = ("more",)


@dataclass
class Plain:
    value: object


def module_with(tensor: Tensor) -> nn.Module:
    module = nn.Module()
    module.register_buffer("mean", tensor)
    return module


def nested(tensor: Tensor) -> nn.Module:
    return nn.ModuleList([nn.Linear(1, 1), module_with(tensor)])


def cyclic(tensor: Tensor) -> SimpleNamespace:
    first, second = SimpleNamespace(), SimpleNamespace()
    first.other, second.other = second, first
    second.value = tensor
    return first


def closure(tensor: Tensor) -> Callable[[], Tensor]:
    return lambda: tensor


def generator(tensor: Tensor) -> Iterator[Tensor]:
    yield tensor
    yield tensor


def started(tensor: Tensor) -> Iterator[Tensor]:
    running = generator(tensor)
    next(running)
    return running


def holders_in(keep: Callable[[Tensor], object]) -> list[Holder]:
    wanted = torch.ones(2)

    def program() -> None:
        kept = keep(wanted)
        raise RuntimeError(id(kept))

    found = find_holders(crash_of(program), lambda tensor: tensor is wanted)
    return [holder for holder in found if holder.path != "wanted"]


PATHS: list[tuple[Callable[[Tensor], object], str, str]] = [
    (lambda t: t, "kept", "local"),
    (lambda t: [0, t], "kept[1]", "item"),
    (lambda t: deque([t]), "kept[0]", "item"),
    (lambda t: {"h": t}, "kept['h']", "item"),
    (lambda t: State(None, t), "kept.cell", "attribute"),
    (lambda t: Plain([t]), "kept.value[0]", "item"),
    (lambda t: Slotted(t), "kept.value", "attribute"),
    (lambda t: Inherited(t), "kept.value", "attribute"),
    (lambda t: SimpleNamespace(a={"b": (t,)}), "kept.a['b'][0]", "item"),
    (module_with, "kept.mean", "attribute"),
    (nested, "kept[1].mean", "attribute"),
    (cyclic, "kept.other.value", "attribute"),
    (closure, "tensor", "local"),
    (started, "kept.tensor", "attribute"),
]


@pytest.mark.parametrize(("keep", "path", "kind"), PATHS, ids=[path for _, path, _ in PATHS])
def test_the_shortest_way_to_a_tensor(
    keep: Callable[[Tensor], object], path: str, kind: str
) -> None:
    found = holders_in(keep)

    assert [(holder.path, holder.kind) for holder in found] == [(path, kind)]


def test_an_attribute_knows_its_owner() -> None:
    (holder,) = holders_in(lambda t: [Plain(t)])

    assert isinstance(holder.owner, Plain)
    assert (holder.attribute, holder.attribute_path) == ("value", "kept[0].value")
    assert holder.variable == "kept[0].value"


def test_an_item_knows_its_container() -> None:
    (holder,) = holders_in(lambda t: Plain([t]))

    assert isinstance(holder.container, list)
    assert (holder.container_path, holder.attribute) == ("kept.value", "value")


def test_it_runs_no_code_of_the_user() -> None:
    class Touchy:
        @property
        def value(self) -> Tensor:
            raise AssertionError("read")

        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    assert holders_in(lambda _: Touchy()) == []


def test_what_nobody_holds() -> None:
    assert holders_in(lambda _: torch.zeros(2)) == []


def test_it_gives_up_in_a_sea_of_objects() -> None:
    sea = [[[number] for number in range(1500)] for _ in range(20)]

    assert holders_in(lambda t: [sea, {"deep": {"deeper": [[t]]}}]) == []
