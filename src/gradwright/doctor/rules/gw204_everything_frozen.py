"""Every parameter that feeds the loss is frozen.

What it does
------------
Lists the parameters in the loss. If none requires grad, it names the line that froze the last of
them.

Why it hurts
------------
Autograd records an operation only if one of its inputs requires grad. With everything frozen the
loss is a constant, and backward has nothing to do.

Example
-------
    for param in net.parameters():
        param.requires_grad = False

Use instead
-----------
    for param in net.backbone.parameters():
        param.requires_grad = False

When it is fine
---------------
For a teacher, a critic, a reward model: frozen networks that some trainable tensor runs through.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad
"""

from collections.abc import Sequence

from gradwright.diagnostic import Diagnostic, Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at, said_loss
from gradwright.doctor.evidence.frozen import Feed, frozen_feeds
from gradwright.doctor.evidence.made_frozen import made_frozen
from gradwright.doctor.evidence.severed import Severance, find_severance
from gradwright.doctor.evidence.spans import span_of_operation, span_of_site
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.journal import Site
from gradwright.doctor.repairs.frozen import fixes_for_frozen, freezing_statement
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax.tree import tree_of
from gradwright.doctor.syntax.where import span_of, statement_at


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a loss that was computed from frozen parameters only."""
    severance = crash.once(find_severance)
    feeds = crash.once(frozen_feeds)
    if severance is None or not feeds or severance.passage is not None:
        return None
    if severance.cut is not None and severance.trains:
        return None
    meant = [feed for feed in feeds if feed.wanted] or list(feeds)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{said_loss(crash)} has no graph: all {len(feeds)} parameters in it are frozen",
        why=_why(meant),
        labels=_story(crash, severance, meant).labels,
        fixes=fixes_for_frozen(crash, severance, meant),
        avoid="`requires_grad_(True)` on the loss: backward then runs, and nothing trains.",
        affected=tuple(feed.name for feed in meant if feed.name),
        measured={"frozen": len(feeds), "in_optimizer": sum(feed.wanted for feed in feeds)},
    )


def _why(feeds: Sequence[Feed]) -> str:
    text = "An operation is recorded only if one of its inputs requires grad. Here none did."
    if any(feed.wanted for feed in feeds):
        text += f" The optimizer holds {sum(feed.wanted for feed in feeds)} of these parameters."
    return text


def _story(crash: Crash, severance: Severance, feeds: Sequence[Feed]) -> Story:
    story = Story()
    freeze = feeds[-1].freeze
    stack = crash.journal.places.stack(freeze.place) if freeze is not None else ()
    if stack:
        count = sum(1 for f in feeds if f.freeze is not None and _line(crash, f) == _key(stack[0]))
        noun = "parameter" if count == 1 else "parameters"
        story.tell(_span(stack[0]), f"{count} {noun} in the loss frozen here, last", primary=True)
    if freeze is None:
        found = made_frozen(crash, feeds[-1].tensor)
        text = f"{_said(feeds[-1])} is made here, frozen from the start"
        story.tell(span_of(found.tree, found.call) if found else None, text, primary=True)
    if severance.made is not None:
        made = span_of_operation(crash.journal, severance.made)
        story.tell(made if made != asked_at(crash) else None, "the loss is computed from them")
    story.tell(asked_at(crash), f"backward starts from {said_loss(crash)}, which has no graph")
    return story


def _said(feed: Feed) -> str:
    return f"`{feed.name}`" if feed.name else "the parameter"


def _line(crash: Crash, feed: Feed) -> tuple[str, int]:
    stack = crash.journal.places.stack(feed.freeze.place) if feed.freeze is not None else ()
    return _key(stack[0]) if stack else ("", 0)


def _key(site: Site) -> tuple[str, int]:
    return (site.file, site.line)


def _span(site: Site) -> Span:
    """The statement that froze, or the body line of a loop that did."""
    tree = tree_of(site.file)
    statement = statement_at(tree, site.line) if tree is not None else None
    if tree is None or statement is None or freezing_statement(tree, site) is None:
        return span_of_site(site)
    short = statement.end_lineno is None or statement.end_lineno - statement.lineno < 4
    return span_of(tree, statement) if short else span_of_site(site)


RULE = Rule("GW204", "everything-frozen", "no-grad", __doc__ or "", explain)
