"""Make a trained tensor a leaf: let `requires_grad` or `nn.Parameter` come last."""

import ast

from gradwright.doctor.evidence.lines import Line
from gradwright.doctor.syntax import (
    Edits,
    SourceTree,
    append_method,
    argument_of,
    dotted,
    imported_names,
    is_named,
    keyword_of,
    remove_keyword,
    replace_expression,
    tree_from_text,
)

_PARAMETER = {"Parameter"}
_COMPOUND = (ast.Call, ast.Attribute, ast.Subscript, ast.Name, ast.Constant)


def leaf_last(line: Line) -> Edits | None:
    """Rewrite the expression so that what marks it as trained is its last step."""
    tree, whole = line.tree, line.expression or _value(line.statement)
    if tree is None or whole is None:
        return None
    inner = _mark(tree, whole)
    if inner is None:
        return append_method(tree, whole, ".detach().requires_grad_()")
    plain = _unmarked(tree, inner)
    if plain is None:
        return None
    start, end = tree.start(inner) - tree.start(whole), tree.end(inner) - tree.start(whole)
    text = tree.source(whole)
    text = text[:start] + plain + text[end:]
    if is_named(tree, inner.func, _PARAMETER):
        return replace_expression(tree, whole, f"{tree.source(inner.func)}({text})")
    return replace_expression(tree, whole, f"{_bracketed(text)}.requires_grad_()")


def base_variable(line: Line) -> Edits | None:
    """Give the variable itself instead of what is computed from it."""
    tree, whole = line.tree, line.expression
    if tree is None or whole is None:
        return None
    base = _base(whole)
    if base is None or (dotted(base) or "").partition(".")[0] in imported_names(tree):
        return None  # `F.normalize(w)`: what stands before the dot is a module
    return replace_expression(tree, whole, tree.source(base))


def _value(statement: ast.stmt | None) -> ast.expr | None:
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return):
        return statement.value
    return None


def _mark(tree: SourceTree, whole: ast.expr) -> ast.Call | None:
    """The one call inside that makes a trained leaf."""
    calls = [one for one in ast.walk(whole) if isinstance(one, ast.Call) and one is not whole]
    found = [one for one in calls if _marks(tree, one)]
    return found[0] if len(found) == 1 else None


def _marks(tree: SourceTree, call: ast.Call) -> bool:
    if is_named(tree, call.func, _PARAMETER):
        return len(call.args) == 1 and not call.keywords
    if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return not call.args and not call.keywords
    keyword = keyword_of(call, "requires_grad")
    value = keyword.value if keyword is not None else None
    return isinstance(value, ast.Constant) and value.value is True


def _unmarked(tree: SourceTree, call: ast.Call) -> str | None:
    """The call's text without what makes it a leaf."""
    if is_named(tree, call.func, _PARAMETER):
        argument = argument_of(call, 0)
        return None if argument is None else _bracketed(tree.source(argument))
    if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return tree.source(call.func.value)
    return _without_keyword(tree.source(call))


def _without_keyword(source: str) -> str | None:
    part = tree_from_text("<part>", f"({source})\n")
    statement = part.root.body[0] if part is not None else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if part is None or not isinstance(call, ast.Call):
        return None
    edits = remove_keyword(part, call, "requires_grad")
    if not edits:
        return None
    lines = list(part.lines)
    for edit in sorted(edits, key=lambda one: -one.line):
        lines[edit.line - 1 : edit.end_line] = [edit.replacement]
    return "".join(lines).strip()[1:-1]


def _bracketed(text: str) -> str:
    """The text with parentheses where a method call or an operator may follow it wrongly."""
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return f"({text})"
    return text if isinstance(parsed, _COMPOUND) else f"({text})"


def _base(expression: ast.expr) -> ast.expr | None:
    """`p` of `p.to(device)`, `table` of `table[ids]`."""
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        expression = expression.func.value
    elif isinstance(expression, ast.Subscript):
        expression = expression.value
    else:
        return None
    if isinstance(expression, ast.Name | ast.Attribute):
        return expression
    return _base(expression)
