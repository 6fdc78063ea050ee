"""An optimizer was given a tensor that is computed from another one, so nobody can train it.

What it does
------------
Finds the tensor among those given to the optimizer, and the operation that made it: a `.to()`, a
product, a reshape after `requires_grad=True` or outside `nn.Parameter(...)`.

Why it hurts
------------
Only a leaf, a tensor that nothing computes, gets a `.grad` and keeps what a step writes. Every
operation returns a new tensor; the leaf that was marked is then in nobody's hands.

Example
-------
    scale = torch.ones(3, requires_grad=True) * 0.1
    optimizer = torch.optim.Adam([scale])

Use instead
-----------
    scale = (torch.ones(3) * 0.1).requires_grad_()
    optimizer = torch.optim.Adam([scale])

When it is fine
---------------
Never with the optimizers of torch, unless they are made with `differentiable=True`.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html
"""

from gradwright.diagnostic import Diagnostic, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.lines import Line
from gradwright.doctor.evidence.naming import parameter_names, said_names
from gradwright.doctor.evidence.optimized import Refused, find_refused
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.trained import names_in_sight
from gradwright.doctor.repairs.leaf import base_variable, leaf_last
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain an optimizer that refuses a computed tensor."""
    if "non-leaf" not in crash.message:
        return None
    refused = find_refused(crash)
    if refused is None:
        return None
    name = _name(crash, refused)
    modules = crash.once(names_in_sight)
    known = [modules[id(leaf)] for leaf in refused.leaves if id(leaf) in modules]
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{name} is the result of {_operation(refused)}, not a tensor of its own",
        why=_why(refused, known),
        labels=_story(crash, refused, name).labels,
        fixes=_fixes(refused, known),
        avoid="`.retain_grad()` on it: the optimizer then takes it, but steps change a copy that "
        "the next forward computes anew.",
        affected=tuple(known),
        measured={"refused": len(refused.tensors), "given": refused.total},
    )


def _name(crash: Crash, refused: Refused) -> str:
    names = parameter_names(crash, refused.tensors[:1])
    return f"`{names[0]}`" if names else "a tensor given to the optimizer"


def _operation(refused: Refused) -> str:
    grad_fn = refused.tensors[0].grad_fn
    assert grad_fn is not None
    kind = grad_fn.name().rpartition("Backward")[0]
    return {"ToCopy": "`.to()`", "Clone": "`.clone()`", "Mul": "a product"}.get(kind, f"`{kind}`")


def _story(crash: Crash, refused: Refused, name: str) -> Story:
    story = Story()
    many = len(refused.tensors)
    if refused.made is not None:
        text = "this operation returns a new tensor; the leaf is its input"
        story.tell(refused.made.span, text, primary=True)
    if refused.last is not None and refused.made is not None and _differ(refused):
        story.tell(refused.last.span, "and this one again")
    count = f"{many} of the {refused.total} tensors given here are no leaves"
    given = count if many > 1 else f"{name} is not a leaf"
    story.tell(asked_at(crash), given, primary=refused.made is None)
    return story


def _differ(refused: Refused) -> bool:
    assert refused.made is not None and refused.last is not None
    return refused.made.site != refused.last.site


def _why(refused: Refused, known: list[str]) -> str:
    below = f"the leaf is {said_names(known)}" if known else "the optimizer never sees the leaf"
    return (
        "Gradients arrive at leaves, and a step writes into leaves. An operation after "
        f"`requires_grad` returns a new tensor with a history; {below}."
    )


def _fixes(refused: Refused, known: list[str]) -> tuple[Fix, ...]:
    line = refused.last
    if line is None:
        return ()
    own = Fix("let `requires_grad` come last:", leaf_last(line) or ())
    parameter = _of_module(refused, line, known)
    return (parameter, own) if parameter is not None else (own,)


def _of_module(refused: Refused, line: Line, known: list[str]) -> Fix | None:
    """Where the leaf is a module's parameter, the module is what should train."""
    if len(refused.leaves) != 1 or not known:
        return None
    edits = base_variable(line)
    return Fix(f"train `{known[0]}` itself:", edits) if edits else None


RULE = Rule("GW301", "non-leaf-in-optimizer", "non-leaf-optimizer", __doc__ or "", explain)
