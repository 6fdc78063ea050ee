"""Errors of the engine: raised before any gradient changes."""


class LossError(ValueError):
    """The losses cannot be used: none at all, not scalar, not finite, no graph, repeated."""


class TaskMismatch(ValueError):
    """The weighting speaks of another number of tasks than there are losses."""


class SharedError(ValueError):
    """The tensors given as shared are not what the losses share."""
