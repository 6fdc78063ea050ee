"""Models in stages: a graph that ends at a value, and goes on behind it later."""

from gradwright.loops.stages.cut import Cut, cut

__all__ = ["Cut", "cut"]
