"""A checkpointed block computed something else when it was run again in backward.

What it does
------------
Finds the `checkpoint` call and the block, compares the lines that ran in the forward with those
of the recomputation, and looks for what the block changes or leaves to chance: a cache that
grows, a counter, a branch on Python's or NumPy's random numbers.

Why it hurts
------------
Checkpointing throws the block's tensors away and computes them again in backward. The second run
has to be the first one once more; torch restores its own random state, and nothing else.

Example
-------
    def forward(self, h):
        if random.random() < 0.1:
            return h
        return h + self.body(h)

    h = checkpoint(block, h, use_reentrant=False)

Use instead
-----------
    def forward(self, h):
        if torch.rand(()).item() < 0.1:
            return h
        return h + self.body(h)

    h = checkpoint(block, h, use_reentrant=False)

When it is fine
---------------
A block may count its calls or keep a copy for logging, as long as nothing that it computes
depends on it.

References
----------
https://docs.pytorch.org/docs/stable/checkpoint.html
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.checkpointed import Recomputation, find_recomputation
from gradwright.doctor.evidence.divergence import Branch, StateWrite, find_branch, find_write
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.checkpointing import fixes_for_recomputation
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax import span_of


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a recomputation that differs from the forward."""
    if type(crash.exception).__name__ != "CheckpointError":
        return None
    facts = find_recomputation(crash)
    if facts is None:
        return None
    branch = find_branch(facts)
    write = find_write(facts) if branch is None or branch.chance is None else None
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"`{facts.name}` is checkpointed, and its second run is not like the first",
        why=_why(branch, write),
        labels=_story(crash, facts, branch, write).labels,
        fixes=fixes_for_recomputation(facts, branch, write),
        avoid='`determinism_check="none"`: the check goes away, and the gradients are those of '
        "another computation.",
    )


def _story(
    crash: Crash, facts: Recomputation, branch: Branch | None, write: StateWrite | None
) -> Story:
    story = Story()
    cause = False
    if facts.call is not None:
        story.tell(facts.call.span, "checkpointed here", primary=branch is None and write is None)
    if write is not None:
        said = f"each run changes `{write.target}`, which outlives it"
        story.tell(span_of(write.tree, write.statement), said, primary=True)
        cause = True
    if branch is not None:
        by_chance = "this is decided by chance, anew in each run"
        said = by_chance if branch.chance is not None else "this went one way, then the other"
        story.tell(span_of(branch.tree, branch.test), said, primary=not cause)
        cause = True
    blank = facts.call is None and not cause
    story.tell(asked_at(crash), "run again here, to recompute what it saves", primary=blank)
    return story


def _why(branch: Branch | None, write: StateWrite | None) -> str:
    start = "Checkpointing runs the block a second time in backward, and both runs must be alike. "
    if branch is not None and branch.chance is not None:
        return start + "torch restores its own random state for that, but not Python's or NumPy's."
    if write is not None:
        return start + f"The first left `{write.target}` changed, so the second began differently."
    if branch is not None:
        return start + "Something that the branch depends on has changed in between."
    return start + "It probably depends on something that has changed in between."


RULE = Rule("GW602", "recomputed-differently", "checkpoint", __doc__ or "", explain)
