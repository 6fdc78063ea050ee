"""What is under way at each moment of a backward, and how large it is."""

from collections.abc import Iterable

from torch.autograd.graph import GradientEdge, Node


class Frontier:
    """The edges that gradients have reached while the nodes behind them have not run."""

    def __init__(self, edges: Iterable[GradientEdge]) -> None:
        self._numbers: dict[Node, set[int]] = {}
        self.size = 0
        for edge in edges:
            self._add(edge.node, edge.output_nr)

    @property
    def n_nodes(self) -> int:
        """How many nodes wait."""
        return len(self._numbers)

    @property
    def edges(self) -> list[GradientEdge]:
        """Where gradients wait."""
        return [GradientEdge(node, n) for node, numbers in self._numbers.items() for n in numbers]

    def run(self, node: Node) -> None:
        """`node` takes its gradients and hands on its own."""
        for number in self._numbers.pop(node, ()):
            self.size -= size_of(GradientEdge(node, number))
        for child, number in node.next_functions:
            if child is not None:
                self._add(child, number)

    def _add(self, node: Node, number: int) -> None:
        numbers = self._numbers.setdefault(node, set())
        if number not in numbers:
            numbers.add(number)
            self.size += size_of(GradientEdge(node, number))


def size_of(edge: GradientEdge) -> int:
    """How many bytes a gradient has there."""
    described = edge.node._input_metadata[edge.output_nr]
    size: int = described.dtype.itemsize
    for length in described.shape:
        size *= int(length)
    return size
