"""Fixes for a loss whose parameters an optimizer changed before its backward."""

from collections.abc import Iterator

from gradwright.diagnostic import Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.stale import StaleLoss, find_stale_loss, loop_of_steps
from gradwright.doctor.evidence.writes import SavedChange, shared_lines
from gradwright.doctor.repairs.saved import moved_behind_backward
from gradwright.doctor.syntax.changes import Edits
from gradwright.doctor.syntax.reorder import clears_gradients, move_out_of_loop, step_after_all
from gradwright.doctor.syntax.slices import recompute_after
from gradwright.doctor.syntax.tree import tree_of
from gradwright.doctor.syntax.where import statement_calling
from gradwright.graph import leaves


def fixes_for_stale_loss(crash: Crash, facts: SavedChange, stale: StaleLoss) -> tuple[Fix, ...]:
    """Build the loss after the step, or step after the last backward."""
    found = [Fix(title, edits) for title, edits in _ways(crash, facts, stale) if edits]
    return tuple(found[:2])


def fixes_for_step_between(crash: Crash, facts: SavedChange) -> tuple[Fix, ...]:
    """Run both backwards first, then step."""
    edits = _stepped_last(crash, facts)
    if not edits:
        stale = find_stale_loss(crash, facts)
        return fixes_for_stale_loss(crash, facts, stale) if stale is not None else ()
    return (Fix("run both backwards before any step", edits),)


def _stepped_last(crash: Crash, facts: SavedChange) -> Edits | None:
    places = crash.journal.places
    if facts.change is None or facts.earlier is None:
        return None
    every = [facts.earlier.place, facts.change.place, facts.call.place]
    lines = shared_lines([places.stack(place) for place in every])
    tree = tree_of(lines[0].file) if lines is not None else None
    if tree is None or lines is None:
        return None
    first, last = (statement_calling(tree, site.line, {"backward"}) for site in lines[::2])
    step = statement_calling(tree, lines[1].line, {"step"})
    if first is None or step is None or last is None:
        return None
    return step_after_all(tree, first, step, last)


def _ways(crash: Crash, facts: SavedChange, stale: StaleLoss) -> Iterator[tuple[str, Edits | None]]:
    loss = f"`{stale.name}`" if stale.name else "the loss"
    if facts.by_step:
        yield "step once, after all backwards", _stepped_after_loop(stale)
        yield f"build {loss} after the step", _built_after(stale)
        if not _loss_trains_stepped(crash, facts):
            yield "step after the last backward", moved_behind_backward(crash, facts)
    else:
        yield "change the parameters after the backward", moved_behind_backward(crash, facts)
        yield f"build {loss} after the change", _built_after(stale)


def _loss_trains_stepped(crash: Crash, facts: SavedChange) -> bool:
    """Whether the failing backward adds gradients to what the optimizer steps.

    Then a later step would follow this loss too, which a generator's loss must not do to its
    discriminator.
    """
    step = facts.change.step if facts.change is not None else None
    optimizer = step.optimizer() if step is not None else None
    if optimizer is None:
        return True
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    reached = crash.engine_inputs() or leaves(crash.root_nodes())
    return any(id(leaf) in stepped for leaf in reached)


def _built_after(stale: StaleLoss) -> Edits | None:
    if stale.anchor is None or not stale.parts or stale.anchor is stale.backward:
        return None
    return recompute_after(stale.tree, stale.parts, stale.anchor)


def _stepped_after_loop(stale: StaleLoss) -> Edits | None:
    loop = loop_of_steps(stale)
    if loop is None:
        return None
    cleared = [one for one in loop.body if clears_gradients(one)]
    return move_out_of_loop(stale.tree, loop, cleared, [stale.changed])
