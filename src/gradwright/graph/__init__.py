"""Reading torch's autograd graph: walking it, what its nodes saved, which leaves it reaches."""

from torch.autograd.graph import Node

from gradwright.graph.names import names_of_tensors
from gradwright.graph.saved import SavedState, saved_state
from gradwright.graph.walk import (
    edges_of,
    engine_order,
    is_accumulator,
    leaves,
    reachable,
    run_order,
)

__all__ = [
    "Node",
    "SavedState",
    "edges_of",
    "engine_order",
    "is_accumulator",
    "leaves",
    "names_of_tensors",
    "reachable",
    "run_order",
    "saved_state",
]
