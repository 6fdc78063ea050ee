"""DistributedDataParallel got a parameter's gradient twice in one backward, or never.

What it does
------------
Names the parameters by the exception's indices, and finds what confuses the reducer: a reentrant
checkpoint around a block that runs several times, or a part of the model that the loss leaves out.

Why it hurts
------------
The reducer counts: each parameter becomes ready once in each backward, then its bucket is sent to
the other processes. A second gradient comes after the bucket has left; a missing one makes it
wait for ever.

Example
-------
    model = DistributedDataParallel(TwoHeads())   # the loss uses one head in the first epochs
    for batch in batches:
        loss(model(batch)).backward()

Use instead
-----------
    model = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)
    for batch in batches:
        loss(model(batch)).backward()

When it is fine
---------------
Parameters that never train should have `requires_grad=False` before the model is wrapped: then
the reducer does not wait for them.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from gradwright.diagnostic import Diagnostic, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.checkpointed import calls_checkpoint
from gradwright.doctor.evidence.distributed import (
    Reducer,
    checkpoints_below,
    common_owner,
    find_reducer,
    reentrant_calls,
)
from gradwright.doctor.evidence.lines import Line
from gradwright.doctor.evidence.naming import said_names
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax import Edits, set_keyword, span_of


def explain(crash: Crash) -> Diagnostic | None:
    """Explain what the reducer of DistributedDataParallel complains about."""
    if "Expected to mark a variable ready only once" in crash.message:
        return _ready_twice(crash)
    if "Expected to have finished reduction in the prior iteration" in crash.message:
        return _never_ready(crash)
    return None


def _ready_twice(crash: Crash) -> Diagnostic:
    reducer, calls = find_reducer(crash), reentrant_calls(crash)
    story = Story()
    if calls:
        count = checkpoints_below(crash)
        said = f"{count} reentrant checkpoints in one forward, each with a backward of its own"
        story.tell(calls[0].span, said, primary=True)
    _tell_wrapper(story, reducer, primary=not calls)
    story.tell(asked_at(crash), "the second gradient for the same parameter arrives")
    who = said_names(list(reducer.names)) or "a parameter"
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{who} got two gradients in one backward",
        why=(
            "A reentrant checkpoint runs a backward inside the backward. Where it wraps the same "
            "parameters twice, each of these reports them as ready, and the bucket is sent once."
        ),
        labels=story.labels,
        fixes=_fixes_for_twice(reducer, calls),
        affected=reducer.names,
    )


def _fixes_for_twice(reducer: Reducer, calls: list[Line]) -> tuple[Fix, ...]:
    static = Fix(
        "tell DDP that the graph is the same in each step:", _wrapped(reducer, "static_graph")
    )
    if not calls:
        return (static,)
    edits = _not_reentrant(calls[0])
    return (Fix("use the checkpoint that runs within the one backward:", edits), static)


def _not_reentrant(line: Line) -> Edits:
    tree, call = line.tree, calls_checkpoint(line.site)
    if tree is None or call is None:
        return ()
    return set_keyword(tree, call, "use_reentrant", "False") or ()


def _wrapped(reducer: Reducer, keyword: str) -> Edits:
    if reducer.made is None:
        return ()
    tree, call = reducer.made
    return set_keyword(tree, call, keyword, "True") or ()


def _never_ready(crash: Crash) -> Diagnostic:
    reducer = find_reducer(crash)
    owner, names = common_owner(reducer), list(reducer.names)
    who = f"`{owner}`" if owner else said_names(names) or "a part of the model"
    story = Story()
    _tell_wrapper(story, reducer, primary=reducer.made is not None)
    said = "the next forward begins, and the reducer still waits"
    story.tell(asked_at(crash), said, primary=reducer.made is None)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{who} got no gradient in the last backward, and DDP waits for it",
        why=(
            f"DDP sends gradients when all of a bucket have arrived. {len(names) or 'Some'} "
            "parameters had no part in the last loss, so their bucket was never complete."
        ),
        labels=story.labels,
        fixes=(
            Fix(
                "let DDP look for such parameters in each step:",
                _wrapped(reducer, "find_unused_parameters"),
            ),
            Fix(f"use {who} in every loss, or freeze it before the model is wrapped"),
        ),
        affected=reducer.names,
        measured={"unused": len(names)},
    )


def _tell_wrapper(story: Story, reducer: Reducer, primary: bool) -> None:
    if reducer.made is not None:
        tree, call = reducer.made
        said = "wrapped here: each parameter is expected once in each backward"
        story.tell(span_of(tree, call), said, primary=primary)


RULE = Rule("GW603", "ddp-reducer", "ddp-reducer", __doc__ or "", explain)
