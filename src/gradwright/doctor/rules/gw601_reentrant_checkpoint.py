"""A reentrant checkpoint got only inputs that do not require grad, so nothing inside it trains.

What it does
------------
Finds a loss that was cut off inside `checkpoint(..., use_reentrant=True)`: the block has trainable
parameters, but none of the tensors given to it requires grad.

Why it hurts
------------
The reentrant form runs the block with recording off and hangs the whole of it on the inputs that
require grad. Where none does, as behind a frozen embedding, the output has no graph at all.

Example
-------
    x = frozen_embedding(ids)
    x = checkpoint(block, x, use_reentrant=True)

Use instead
-----------
    x = frozen_embedding(ids)
    x = checkpoint(block, x, use_reentrant=False)

When it is fine
---------------
The reentrant form works where an input requires grad. torch recommends the other form anyway.

References
----------
https://docs.pytorch.org/docs/stable/checkpoint.html
https://github.com/huggingface/peft/issues/137
"""

import ast

from gradwright.diagnostic import Diagnostic, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at, said_loss
from gradwright.doctor.evidence.severed import find_severance
from gradwright.doctor.evidence.spans import span_of_operation
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.switches import region_of
from gradwright.doctor.journal import Operation, Site
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax.calls import set_keyword
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import call_at, span_of

_CHECKPOINTS = ("checkpoint", "checkpoint_sequential")


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a loss that was cut off inside a reentrant checkpoint."""
    severance = crash.once(find_severance)
    found = None
    if severance is not None and severance.cut is not None:
        found = _checkpoint_around(crash, severance.cut)
    if severance is None or severance.cut is None or found is None:
        return None
    tree, call = found
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{said_loss(crash)} has no graph: the checkpoint got no input that requires grad",
        why=(
            "With `use_reentrant=True` the block runs with recording off, and its output requires "
            "grad only if an input does. Trainable parameters inside the block do not count."
        ),
        labels=_story(crash, tree, call, severance.cut).labels,
        fixes=_fixes(tree, call),
        avoid="`requires_grad_(True)` on the loss: backward then runs, and nothing trains.",
        measured={"cuts": len(severance.cuts)},
    )


def _checkpoint_around(crash: Crash, cut: Operation) -> tuple[SourceTree, ast.Call] | None:
    """The checkpoint call that ran the cut operation with recording off."""
    stack = crash.journal.places.stack(cut.place)
    if cut.cut != "recording-off":
        return None
    region = region_of(crash, stack, cut)
    if region is None or region.kind != "library":
        return None
    return _call(region.site)


def _call(site: Site) -> tuple[SourceTree, ast.Call] | None:
    tree = tree_of(site.file)
    call = call_at(tree, site.line, _CHECKPOINTS) if tree is not None else None
    return (tree, call) if tree is not None and call is not None else None


def _story(crash: Crash, tree: SourceTree, call: ast.Call, cut: Operation) -> Story:
    story = Story()
    text = "reentrant checkpoint: runs the block with recording off, no input requires grad"
    story.tell(span_of(tree, call), text, primary=True)
    story.tell(span_of_operation(crash.journal, cut), "trainable tensors are read, unrecorded")
    story.tell(asked_at(crash), f"backward starts from {said_loss(crash)}, which has no graph")
    return story


def _fixes(tree: SourceTree, call: ast.Call) -> tuple[Fix, ...]:
    edits = set_keyword(tree, call, "use_reentrant", "False")
    return (Fix("use the form that needs no such input", edits or ()),)


RULE = Rule("GW601", "reentrant-checkpoint", "no-grad", __doc__ or "", explain)
