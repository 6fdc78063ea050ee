"""A tensor that carries a graph was copied, pickled or turned into a numpy array.

What it does
------------
Finds the tensor, who holds it, and the line that put it there: a hidden activation kept on a
module that is deep-copied, a loss in a list that is averaged with numpy.

Why it hurts
------------
A result is tied to the graph that computed it. A copy could not say to which graph it belongs, and
numpy and other processes know no graphs, so torch refuses.

Example
-------
    self.hidden = layer(x)
    teacher = copy.deepcopy(self)

Use instead
-----------
    self.hidden = layer(x).detach()
    teacher = copy.deepcopy(self)

When it is fine
---------------
Parameters and other leaves can be copied. A result can be copied once it is detached.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
https://github.com/lucidrains/byol-pytorch/issues/95
"""

from gradwright.diagnostic import Diagnostic, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.copies import (
    GraphCopy,
    Store,
    array_source,
    find_graph_copy,
    stores_of,
)
from gradwright.doctor.evidence.spans import span_of_frame
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.copies import fixes_for_numpy, fixes_for_store
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax.where import span_of

_DONE = {"copy": "copied", "numpy": "given to numpy", "pickle": "sent to another process"}


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a copy of a tensor with a graph."""
    copy = find_graph_copy(crash)
    if copy is None:
        return None
    path = copy.holder.path if copy.holder is not None else array_source(crash)
    name = f"`{path}`" if path else "a tensor"
    store = _store(crash, copy)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{name} carries a graph and cannot be {_DONE[copy.kind]}",
        why=_why(copy, name),
        labels=_story(crash, copy, store, name).labels,
        fixes=_fixes(crash, copy, store),
        avoid=(
            "`.data` or `torch.no_grad()` around the training forward: the model stops learning."
        ),
    )


def _store(crash: Crash, copy: GraphCopy) -> Store | None:
    """The line that put the tensor into an attribute or a list; none for a plain variable."""
    if copy.holder is None or copy.holder.kind not in ("attribute", "item"):
        return None
    return next(iter(stores_of(crash, copy.holder)), None)


def _why(copy: GraphCopy, name: str) -> str:
    subject = f"{name[0].upper()}{name[1:]}"
    if copy.kind == "numpy":
        return (
            f"{subject} requires grad. numpy does not know about gradients, so torch asks you to "
            "say that you\nwant the values only: `detach()`."
        )
    return (
        f"{subject} is the result of a recorded computation and is tied to its graph.\n"
        "Only leaves, such as parameters, can be copied."
    )


def _story(crash: Crash, copy: GraphCopy, store: Store | None, name: str) -> Story:
    story = Story()
    if store is not None:
        span = span_of(store.tree, store.statement)
        story.tell(span, "a result is stored here together with its graph", primary=True)
    if crash.raised_at is not None:
        here = span_of_frame(crash.raised_at)
        story.tell(here, f"{name} is {_DONE[copy.kind]} here", primary=store is None)
    return story


def _fixes(crash: Crash, copy: GraphCopy, store: Store | None) -> tuple[Fix, ...]:
    if copy.kind == "numpy" and store is None:
        return fixes_for_numpy(crash, copy)
    return fixes_for_store(crash, copy, store)


RULE = Rule("GW116", "graph-copied", "other", __doc__ or "", explain)
