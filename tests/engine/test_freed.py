"""What autograd saved is released as early as can be, and nothing of it outlives the call."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from gradwright.engine import Weighting, backward
from gradwright.graph import reachable, saved_state
from tests.engine.methods import Counting, InverseNorms, Squashed, assert_gradients
from tests.engine.models import hooked, layers, wide, wirings
from tests.engine.models.common import Build, Heads, batch, mlp
from tests.engine.test_unstack import JOINS, Join
from tests.reference.task_gradients import trainable

ROUTES = [
    pytest.param(None, 2**30, id="sum"),
    pytest.param(Counting(), 2**30, id="losses"),
    pytest.param(InverseNorms(), 2**30, id="Gramian, rows kept"),
    pytest.param(InverseNorms(), 0, id="Gramian, rows dropped"),
    pytest.param(Squashed(), 2**30, id="Jacobian"),
]
every_route = pytest.mark.parametrize(("weighting", "memory"), ROUTES)
# Checkpoints bring saved-tensor hooks of their own.
MODELS: dict[str, Build] = {
    name: build
    for name, build in (
        layers.MODELS | hooked.LINEAR | hooked.NOT_LINEAR | wirings.MODELS | wide.MODELS
    ).items()
    if "checkpoint" not in name and name != "node hooks"  # which may be refused
}


class Box:
    """Holds one saved tensor, and can be seen to die."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


@contextmanager
def boxed() -> Iterator[weakref.WeakSet[Box]]:
    """The boxes of all tensors saved within the block that are still alive."""
    alive: weakref.WeakSet[Box] = weakref.WeakSet()

    def pack(tensor: Tensor) -> Box:
        box = Box(tensor)
        alive.add(box)
        return box

    with saved_tensors_hooks(pack, lambda box: box.tensor):
        yield alive


@every_route
@pytest.mark.parametrize("build", [pytest.param(b, id=name) for name, b in MODELS.items()])
def test_nothing_outlives_the_call(build: Build, weighting: Weighting | None, memory: int) -> None:
    torch.manual_seed(0)
    model = build()
    with boxed() as alive:
        losses = model.losses()
    assert alive
    backward(losses, weighting=weighting, memory=memory)

    assert not alive


@every_route
@pytest.mark.parametrize(("join", "factors"), JOINS)
def test_nothing_of_joined_losses_outlives_the_call(
    join: Join, factors: tuple[float, ...], weighting: Weighting | None, memory: int
) -> None:
    torch.manual_seed(0)
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()
    with boxed() as alive:
        losses = join([*heads(trunk(x)).values()])
    backward(losses, weighting=weighting, memory=memory)

    assert not alive


@every_route
def test_a_layer_says_that_it_is_freed(weighting: Weighting | None, memory: int) -> None:
    """Without hooks on saved tensors, which some routes avoid."""
    torch.manual_seed(0)
    losses = wide.MODELS["linear"]().losses()
    nodes = reachable(loss.grad_fn for loss in losses.values() if loss.grad_fn is not None)
    held = [node for node in nodes if saved_state(node).state == "live"]
    assert held
    backward(losses, weighting=weighting, memory=memory)

    assert {saved_state(node).state for node in held} == {"freed"}


@every_route
@pytest.mark.parametrize("name", ["checkpoint", "checkpointed heads", "one checkpoint per task"])
def test_recomputed_tensors_are_freed(name: str, weighting: Weighting | None, memory: int) -> None:
    """What a checkpoint keeps is its input; what it computes again goes with the call."""
    torch.manual_seed(0)
    model = wirings.MODELS[name]()
    losses = model.losses()
    made: list[weakref.ref[Tensor]] = []

    def remember(module: nn.Module, into: object, out: Tensor) -> None:
        made.append(weakref.ref(out))

    for part in model.module.modules():
        if isinstance(part, nn.Linear | nn.Tanh):
            part.register_forward_hook(remember)
    backward(losses, weighting=weighting, memory=memory)

    assert made
    assert not [tensor for tensor in made if tensor() is not None]


@every_route
def test_kept_graph_gives_the_same_again(weighting: Weighting | None, memory: int) -> None:
    torch.manual_seed(0)
    model = layers.MODELS["MMoE"]()
    leaves = trainable(model.module)
    with boxed() as alive:
        losses = model.losses()
    saved = len(alive)
    backward(losses, weighting=weighting, memory=memory, retain_graph=True)
    assert len(alive) == saved
    first = [leaf.grad.clone() for leaf in leaves if leaf.grad is not None]
    model.module.zero_grad()
    backward(losses, weighting=weighting, memory=memory)

    assert not alive
    assert_gradients(leaves, first, rtol=1e-4, atol=1e-6)


class Watch(torch.autograd.Function):
    """The same values; its backward calls `seen`."""

    @staticmethod
    def forward(ctx, x: Tensor, seen: Callable[[], None]) -> Tensor:
        ctx.seen = seen
        return x.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.seen()
        return gradient, None


@pytest.mark.parametrize("weighting", [InverseNorms(), Squashed()], ids=["Gramian", "Jacobian"])
def test_each_head_is_freed_before_the_next_part_runs(weighting: Weighting) -> None:
    torch.manual_seed(0)
    first, trunk, heads = nn.Linear(5, 5), mlp(nn.Tanh()), Heads()
    alive: list[weakref.WeakSet[Box]] = []
    reports: list[tuple[object, list[int]]] = []

    def watch(x: Tensor, part: object) -> Tensor:
        report = lambda: reports.append((part, [len(boxes) for boxes in alive]))  # noqa: E731
        return Watch.apply(x, report)

    features = watch(trunk(watch(first(batch()), "input")), "trunk")
    losses = []
    for task in range(3):
        with boxed() as boxes:
            loss = heads.loss(task, features)
        alive.append(boxes)
        losses.append(watch(loss, task))
    backward(losses, weighting=weighting, shared=trunk.parameters())

    task = -1
    for part, counts in reports:
        task = part if isinstance(part, int) else task
        done = task if isinstance(part, int) else task + 1
        assert not any(counts[:done])
        assert all(counts[task + 1 :])
    assert [part for part, _ in reports] == [
        0,
        "trunk",
        "input",
        1,
        "trunk",
        "input",
        2,
        "trunk",
        "input",
    ]
