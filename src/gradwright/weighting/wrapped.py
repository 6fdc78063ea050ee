"""Asking the weighting inside another one."""

from torch import Tensor

from gradwright.engine.weights.bases import CrossGramianWeighting, HeadRule, Weighting


def weights_inside(outer: Weighting, inner: Weighting, *read: Tensor) -> Tensor:
    """The weights [task] of `inner` for the tasks that `outer` speaks of in this step."""
    if outer._present is None:
        return inner(*read)  # type: ignore[no-any-return]
    with inner.only(outer._present):
        return inner(*read)  # type: ignore[no-any-return]


def take_head_rules(
    outer: Weighting, inner: Weighting, unweighted: HeadRule = "unweighted"
) -> None:
    """Heads are treated as `inner` treats them; the rule "unweighted" becomes `unweighted`."""
    for name in ("paper_heads", "libmtl_heads", "torchjd_heads"):
        rule = getattr(inner, name)
        setattr(outer, name, unweighted if rule == "unweighted" else rule)
    if isinstance(inner, CrossGramianWeighting):
        setattr(outer, "libmtl_head_batches", inner.libmtl_head_batches)  # noqa: B010
