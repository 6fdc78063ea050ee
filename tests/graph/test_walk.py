"""Walks over the graph agree with what the engine does."""

import torch
from torch import Tensor

from gradwright.graph import (
    Node,
    edges_of,
    engine_order,
    is_accumulator,
    leaves,
    names_of_tensors,
    reachable,
    saved_state,
)


def node_of(tensor: Tensor) -> Node:
    assert tensor.grad_fn is not None
    return tensor.grad_fn


def diamond() -> tuple[Tensor, list[Tensor]]:
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    left, right = (a * b).sin(), a.exp()
    joined = left * right + b
    return joined.cos().sum(), [a, b]


def test_engine_order_is_the_order_of_the_engine() -> None:
    root, _ = diamond()
    ran: list[Node] = []
    expected = [node for node in engine_order([node_of(root)]) if not is_accumulator(node)]
    for node in expected:
        node.register_prehook(lambda *_, node=node: ran.append(node))
    root.backward()

    assert ran == expected


def test_leaves_and_reachable() -> None:
    root, given = diamond()

    assert {id(leaf) for leaf in leaves([node_of(root)])} == {id(leaf) for leaf in given}
    nodes = reachable([node_of(root)])
    assert all(child in nodes for node in nodes for child in edges_of(node))
    assert nodes == set(engine_order([node_of(root)]))


def test_saved_state_before_and_after() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    assert saved_state(node_of(y)).state == "live"
    assert saved_state(node_of(y + 1)).state == "none"

    changed = y.sin()
    y.add_(1)
    state = saved_state(node_of(changed))
    assert state.state == "modified" and state.tensor is not None
    assert state.tensor.data_ptr() == y.data_ptr()

    z = x.exp()
    z.sum().backward()
    assert saved_state(node_of(z)).state == "freed"


def test_unpack_hooks_are_not_run() -> None:
    ran = []

    def unpack(tensor: Tensor) -> Tensor:
        ran.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = torch.ones(2, requires_grad=True).exp()

    assert saved_state(node_of(y)).state == "hooked"
    assert ran == []


def test_tied_weights_keep_their_first_name() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    net[1].weight = net[0].weight
    names = names_of_tensors([("net", net)])

    assert names[id(net[1].weight)] == "net.0.weight"
    assert len(names) == 3
