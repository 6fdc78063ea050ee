"""Ways to build a graph. Each function returns the roots of what it built."""

# mypy: ignore-errors

import asyncio
import contextlib
import functools
import itertools
import linecache
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Scenario = Callable[[], list[Tensor]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def leaf(*shape: int) -> Tensor:
    return torch.ones(shape or (2,), requires_grad=True)


def helper(x: Tensor) -> Tensor:
    y = x * 2
    return y + 1


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(x)
        return torch.relu(hidden)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


@scenario
def loops() -> list[Tensor]:
    x = leaf()
    for turn in range(3):
        x = x * 2
        while turn < 2:
            x = x + 1
            break
    return [x]


@scenario
def helpers_and_modules() -> list[Tensor]:
    block, net = Block(), nn.Sequential(Block(), nn.Tanh(), nn.LSTM(2, 2))
    y = helper(helper(block(leaf(1, 2))))
    out, (h, c) = net(y)
    return [out, h, c]


@scenario
def comprehensions() -> list[Tensor]:
    x = leaf()
    doubled = [x * k for k in range(3)]
    shifted = {k: y + 1 for k, y in enumerate(doubled)}
    return [sum(y.sin() for y in shifted.values()), *map(lambda y: y.exp(), doubled)]


def stream(x: Tensor) -> Iterator[Tensor]:
    y = x * 2
    yield y
    y = y + 1
    yield y.cos()


@scenario
def generators() -> list[Tensor]:
    first, second = stream(leaf()), stream(leaf())
    roots = [next(first)]
    roots.append(next(second))
    roots += [a * b for a, b in zip(first, second, strict=True)]
    roots += itertools.chain.from_iterable([stream(leaf())])
    return roots


@scenario
def delegating_generators() -> list[Tensor]:
    def outer() -> Iterator[Tensor]:
        yield from stream(leaf())
        yield leaf().tan()

    return list(outer())


@scenario
def partials_and_decorators() -> list[Tensor]:
    def twice(function):
        @functools.wraps(function)
        def wrapper(x):
            y = function(x)
            return function(y)

        return wrapper

    @twice
    def grow(x):
        return x.exp()

    return [
        functools.partial(torch.add, leaf())(leaf()),
        grow(leaf()),
        functools.reduce(torch.mul, [leaf(), leaf(), leaf()]),
    ]


@scenario
def custom_function() -> list[Tensor]:
    y = Cube.apply(leaf())
    return [y * 2]


@scenario
def checkpoints() -> list[Tensor]:
    block = Block()
    roots = []
    for reentrant in (True, False):
        y = checkpoint(block, leaf(1, 2), use_reentrant=reentrant)
        roots.append(y * 3)
    return roots


@scenario
def in_place() -> list[Tensor]:
    x = leaf() * 1
    x += 2
    x.mul_(3)
    x[0] = 5.0
    x[1:].add_(1)
    torch.add(torch.ones(2), 1, out=torch.empty(2))
    return [x]


@scenario
def many_lines() -> list[Tensor]:
    x = leaf()
    y = x.sin() + x.cos() * helper(
        x.exp(),
    )
    return [
        y.sum(),
        y.mean(),
    ]


def failing(x: Tensor) -> Tensor:
    y = x * 2
    raise ValueError(str(y.shape))


@scenario
def exceptions() -> list[Tensor]:
    roots = []
    for _ in range(2):
        try:
            failing(leaf())
        except ValueError:
            roots.append(leaf().sin())
        finally:
            roots.append(leaf().cos())
    with contextlib.suppress(ValueError):
        helper(failing(leaf()))
    roots.append(leaf().tan())
    return roots


def recurse(x: Tensor, depth: int) -> Tensor:
    if depth == 0:
        return x.sin()
    y = recurse(x * 2, depth - 1)
    return y + recurse(x, depth - 1)


@scenario
def recursion() -> list[Tensor]:
    return [recurse(leaf(), 3)]


@scenario
def asynchronous() -> list[Tensor]:
    async def part(x: Tensor) -> Tensor:
        y = x * 2
        await asyncio.sleep(0)
        y = y + 1
        await asyncio.sleep(0)
        return y.sin()

    async def whole() -> list[Tensor]:
        return await asyncio.gather(part(leaf()), part(leaf()), part(leaf()))

    return asyncio.run(whole())


@contextlib.contextmanager
def doubling(x: Tensor) -> Iterator[Tensor]:
    before = x * 2
    yield before
    x.sin()


@scenario
def context_managers() -> list[Tensor]:
    with doubling(leaf()) as y:
        z = y + 1
        with torch.enable_grad():
            z = z.exp()
    return [z * 2]


@scenario
def class_bodies() -> list[Tensor]:
    class Constants:
        start = leaf().sin()
        both = tuple(one.cos() for one in (start, leaf()))

    return [Constants.start, *Constants.both]


@scenario
def second_derivatives_of_a_custom_function() -> list[Tensor]:
    x = leaf()
    (gradient,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    return [gradient.cos()]


@scenario
def properties_and_operators() -> list[Tensor]:
    class Box:
        def __init__(self, x: Tensor) -> None:
            self.x = x

        @property
        def doubled(self) -> Tensor:
            return self.x * 2

        def __add__(self, other: "Box") -> Tensor:
            return self.x + other.doubled

        def __call__(self) -> Tensor:
            return self.doubled.sin()

    return [Box(leaf()) + Box(leaf()), Box(leaf())()]


CELL = """
x = torch.ones(2, requires_grad=True)
y = x * 2
def inner(z):
    return z.exp()
z = inner(y + 1)
"""


@scenario
def notebook_cell() -> list[Tensor]:
    name = "<ipython-input-1-0123456789ab>"
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(True), name)
    space: dict[str, object] = {"torch": torch}
    exec(compile(CELL, name, "exec"), space)
    return [space["z"]]


@scenario
def executed_string() -> list[Tensor]:
    space: dict[str, object] = {"torch": torch}
    exec(CELL, space)
    return [space["z"]]
