"""Asking the weighting inside another one."""

from torch import Tensor

from gradwright.engine.weighting import Weighting


def weights_inside(outer: Weighting, inner: Weighting, *read: Tensor) -> Tensor:
    """The weights [task] of `inner` for the tasks that `outer` speaks of in this step."""
    if outer._present is None:
        return inner(*read)  # type: ignore[no-any-return]
    with inner.only(outer._present):
        return inner(*read)  # type: ignore[no-any-return]


def take_head_rules(outer: Weighting, inner: Weighting) -> None:
    """Heads are treated as `inner` treats them."""
    for name in ("paper_heads", "libmtl_heads", "torchjd_heads"):
        setattr(outer, name, getattr(inner, name))
