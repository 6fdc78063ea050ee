"""A custom autograd Function's `backward` does not return one gradient for each input.

What it does
------------
Names the class and its `backward`, and says what is wrong with what it returns: nothing at all,
too few or too many gradients, a gradient of another shape than the input, something that is no
tensor.

Why it hurts
------------
Autograd passes each returned gradient to the input of `forward` with the same position. What does
not fit cannot be passed on.

Example
-------
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor

Use instead
-----------
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

When it is fine
---------------
`None` is a good answer for an input that is no tensor or needs no gradient; further `None`s at
the end are ignored.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
"""

import re

from gradwright.diagnostic import Diagnostic, Fix, Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.function_class import FunctionClass, classes_in_graph
from gradwright.doctor.evidence.lines import line_of_node
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.returned_gradients import (
    element_returned,
    fit_count,
    fit_shape,
    return_computed,
)
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax import span_of

_COUNT = re.compile(
    r"unction (\w+) returned an incorrect number of gradients \(expected (\d+), got (\d+)\)"
)
_SHAPE = re.compile(
    r"unction (\w+) returned an invalid gradient at index (\d+) - "
    r"got \[([\d, ]*)\] but expected shape compatible with \[([\d, ]*)\]"
)
_KIND = re.compile(r"expected Variable or None \(got (\w+)\)")


def explain(crash: Crash) -> Diagnostic | None:
    """Explain what a custom Function's `backward` returned."""
    for found, tell in ((_COUNT, _wrong_count), (_SHAPE, _wrong_shape), (_KIND, _no_tensor)):
        match = found.search(crash.message)
        if match is not None:
            return tell(crash, match)
    return None


def _wrong_count(crash: Crash, match: re.Match[str]) -> Diagnostic | None:
    function = _function(crash, match[1])
    if function is None:
        return None
    expected, got = int(match[2]), int(match[3])
    if not function.returns():
        said = "ends without a `return`"
        title = "return what it computes, in the order of the inputs:"
        fix = Fix(title, return_computed(function) or ())
    else:
        said = f"returns {got} gradient{'s' * (got != 1)} for {expected} inputs"
        title = "return one gradient for each input, `None` where there is none:"
        fix = Fix(title, fit_count(function) or ())
    inputs = ", ".join(f"`{name}`" for name in function.inputs[:expected])
    why = (
        f"`forward` was called with {expected} inputs ({inputs}); `backward` returns one gradient "
        "for each, in that order."
    )
    summary = f"`{function.name}.backward` {said}"
    return _diagnostic(crash, function, summary, why, fix, _place(function), said)


def _wrong_shape(crash: Crash, match: re.Match[str]) -> Diagnostic | None:
    function = _function(crash, match[1])
    if function is None:
        return None
    index = int(match[2])
    got, expected = _numbers(match[3]), _numbers(match[4])
    names = function.inputs
    name = f"`{names[index]}`" if index < len(names) else f"input {index}"
    said = f"gradient {index + 1} has shape {got}, and {name} has {expected}"
    why = (
        f"A gradient has the shape of what it belongs to, number by number. Autograd sums over "
        f"dimensions in which {name} was broadcast, but it does not turn or reorder."
    )
    edits = fit_shape(function, index, got, expected)
    fix = Fix(f"bring the gradient of {name} into its shape:", edits or ())
    element, tree = element_returned(function, index), function.tree
    place = span_of(tree, element) if tree is not None and element is not None else _place(function)
    summary = f"`{function.name}.backward` returns a gradient of shape {got} for {name}"
    return _diagnostic(crash, function, summary, why, fix, place, said)


def _no_tensor(crash: Crash, match: re.Match[str]) -> Diagnostic | None:
    functions = classes_in_graph(crash)
    if len(functions) != 1:
        return None
    function, kind = functions[0], match[1]
    why = "`backward` returns a tensor or `None` for each input of `forward`."
    fix = Fix(f"return tensors or `None`, not {kind}")
    summary = f"`{function.name}.backward` returns {kind} as a gradient"
    return _diagnostic(
        crash, function, summary, why, fix, _place(function), f"one of these is {kind}"
    )


def _function(crash: Crash, node_name: str) -> FunctionClass | None:
    found = [one for one in classes_in_graph(crash) if one.name + "Backward" == node_name]
    return found[0] if found else None


def _place(function: FunctionClass) -> Span | None:
    """The `return`, else the first line of `backward`."""
    returns, tree = function.returns(), function.tree
    if returns and tree is not None:
        return span_of(tree, returns[-1])
    source = function.source("backward")
    if source is not None and tree is not None:
        last = source.body[-1]
        return Span(tree.file, source.lineno, source.col_offset, last.end_lineno)
    line = function.first_line()
    return line.span if line is not None else None


def _diagnostic(
    crash: Crash,
    function: FunctionClass,
    summary: str,
    why: str,
    fix: Fix,
    place: Span | None,
    said: str,
) -> Diagnostic:
    story = Story()
    node = function.node
    forward = line_of_node(crash.journal, node) if node is not None else None
    if forward is not None:
        story.tell(forward.span, f"`{function.name}` is applied here")
    story.tell(asked_at(crash), "the backward that runs it")
    story.tell(place, said, primary=True)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=summary,
        why=why,
        labels=story.labels,
        fixes=(fix,),
        measured={"function": function.name, "inputs": len(function.differentiable)},
    )


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one.strip()]


RULE = Rule("GW702", "custom-function", "custom-function", __doc__ or "", explain)
