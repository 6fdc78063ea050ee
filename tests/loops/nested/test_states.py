"""States of every kind come back in their own type, with other tensors, the original unchanged."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from gradwright.loops import NestedError, register
from gradwright.loops.nested import map_tensors, outline, tensors_of
from gradwright.loops.nested import registered as registry
from gradwright.loops.segments.state.between import as_leaves, detached

Pair = namedtuple("Pair", "h c")


@dataclass
class Plain:
    h: Tensor
    step: int = 3


@dataclass(frozen=True, slots=True)
class Frozen:
    h: Tensor
    more: Any = None
    tag: str = "a"


@dataclass
class Strict:
    """Its `__init__` takes no `h`, and does work."""

    size: int
    h: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.h = torch.zeros(self.size)


def strict(h: Tensor) -> Strict:
    made = Strict(2)
    made.h = h
    return made


class Named(dict):
    """A dictionary with an attribute."""

    label = "none"


STATES: dict[str, Callable[[Tensor], Any]] = {
    "tensor": lambda h: h,
    "tuple": lambda h: (h, h * 2),
    "list": lambda h: [h, h * 2],
    "namedtuple": lambda h: Pair(h, h * 2),
    "dict": lambda h: {"h": h, 1: h * 2},
    "OrderedDict": lambda h: OrderedDict(h=h),
    "defaultdict": lambda h: defaultdict(list, h=[h]),
    "dict of one's own": lambda h: Named(h=h),
    "deque": lambda h: deque([h, h * 2], maxlen=2),
    "nested": lambda h: {"layers": [(h, None), Pair(h * 2, {"deep": [h * 3]})]},
    "dataclass": Plain,
    "frozen dataclass with slots": lambda h: Frozen(h, more=[h * 2]),
    "dataclass with an __init__ that works": strict,
    "None, numbers and words inside": lambda h: (None, h, 3, 2.5, True, "word", torch.float32),
    "PackedSequence": lambda h: pack_sequence([h, h[:1]]),
    "torch.return_types": lambda h: h.view(1, -1).max(dim=1),
    "one tensor twice": lambda h: [h, h],
}


@pytest.fixture(params=STATES)
def state(request: pytest.FixtureRequest) -> Any:
    """A state with a graph."""
    h = torch.tensor([1.0, 2.0], requires_grad=True) * 1
    return STATES[request.param](h)


def test_detached_states_keep_type_and_values(state: Any) -> None:
    before = outline(state)

    found = detached(state)

    assert outline(found) == before
    assert type(found) is type(state)
    assert not any(tensor.requires_grad for tensor in tensors_of(found).values())
    for one, other in zip(tensors_of(found).values(), tensors_of(state).values(), strict=True):
        assert torch.equal(one, other)


def test_the_original_is_not_changed(state: Any) -> None:
    before, outlined = tensors_of(state), outline(state)

    map_tensors(state, lambda _, tensor: tensor.detach() + 1)

    assert outline(state) == outlined
    assert all(now is before[name] for name, now in tensors_of(state).items())
    assert all(tensor.requires_grad for tensor in before.values() if tensor.is_floating_point())


def test_leaves_ask_for_their_gradient(state: Any) -> None:
    tensors = tensors_of(as_leaves(state)).values()

    assert all(tensor.is_leaf for tensor in tensors)
    assert all(tensor.requires_grad == tensor.is_floating_point() for tensor in tensors)


def test_what_a_container_knows_beside_its_parts_stays() -> None:
    ring, lists, named = deque([torch.ones(1)], maxlen=2), defaultdict(int, h=3), Named(h=3)
    named.label = "mine"

    found = map_tensors((ring, lists, named), lambda _, tensor: tensor)

    assert (found[0].maxlen, found[1].default_factory, found[2].label) == (2, int, "mine")


def test_packed_sequences_keep_their_order() -> None:
    packed = pack_sequence([torch.ones(1), torch.ones(3)], enforce_sorted=False)

    found = map_tensors(packed, lambda _, data: data * 2)

    assert isinstance(found, PackedSequence)
    assert found.sorted_indices is packed.sorted_indices
    assert found.batch_sizes is packed.batch_sizes


@pytest.mark.parametrize(
    ("value", "name"),
    [
        pytest.param(
            {"layers": [Frozen(torch.ones(1), nn.Linear(1, 1))]},
            "state['layers'][0].more",
            id="module",
        ),
        pytest.param((torch.ones(1), {1, 2}), "state[1]", id="set"),
        pytest.param(Pair(torch.ones(1), torch.ones(1).numpy()), "state.c", id="numpy"),
        pytest.param(iter([torch.ones(1)]), "state", id="iterator"),
    ],
)
def test_unknown_types_are_named_with_their_place(value: Any, name: str) -> None:
    with pytest.raises(NestedError) as error:
        detached(value)

    message = str(error.value)
    assert f"`{name}` is a " in message
    assert "gradwright.loops.register" in message


def test_a_registered_type_is_one_more_container(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ring:
        def __init__(self, slots: list[Tensor], head: int) -> None:
            self.slots, self.head = slots, head

    class Bigger(Ring):
        """Another type: it may have other parts."""

    monkeypatch.setattr(registry, "_KNOWN", {})
    register(Ring, lambda ring: ring.slots, lambda ring, slots: Ring(slots, ring.head))
    ring = Ring([torch.ones(1, requires_grad=True)], head=4)

    (found,) = detached([ring])

    assert isinstance(found, Ring) and found.head == 4
    assert list(tensors_of([ring])) == ["value[0].parts[0]"]
    assert ring.slots[0].requires_grad and not found.slots[0].requires_grad
    with pytest.raises(NestedError, match="Bigger"):
        detached(Bigger([], head=0))
