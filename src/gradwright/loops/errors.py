"""Errors of the loops: raised before any gradient changes."""


class SegmentError(ValueError):
    """A sequence cannot be cut into segments, or a segment's loss cannot be used."""


class StateError(ValueError):
    """A recurrent state cannot be carried, or its rows cannot be reset."""


class WindowError(ValueError):
    """A window of micro-batches cannot be accumulated or closed."""


class CutError(ValueError):
    """A graph cannot be cut at a value, or no gradient can go back through the cut."""


class NestedError(TypeError):
    """A nested value holds an object of a type whose tensors nobody knows how to find."""
