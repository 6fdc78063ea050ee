"""Values with tensors inside: tuples, dictionaries, dataclasses, caches, nested at will."""

from gradwright.loops.nested.registered import register
from gradwright.loops.nested.tree import map_tensors, outline, tensors_of

__all__ = ["map_tensors", "outline", "register", "tensors_of"]
