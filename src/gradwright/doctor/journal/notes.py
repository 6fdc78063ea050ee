"""What a journal writes on graph nodes: `Node.metadata` lives as long as the node."""

from typing import cast

from torch.autograd.graph import Node


def notes_of(node: Node) -> dict[object, object]:
    """`Node.metadata`, which torch's stub declares as a method."""
    return cast("dict[object, object]", node.metadata)
