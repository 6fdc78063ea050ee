"""Reading and rewriting the user's source by syntax tree.

Questions find a place; rewrites turn a cause into edits that keep all other text as it is. A
rewrite returns None where it would have to guess.
"""

from gradwright.doctor.syntax.caches import guard_cache_test, reset_methods
from gradwright.doctor.syntax.calls import (
    argument_of,
    keyword_of,
    remove_keyword,
    replace_argument,
    set_keyword,
)
from gradwright.doctor.syntax.changes import Edits, combine
from gradwright.doctor.syntax.contexts import (
    grad_switch_to_block,
    swap_with_and_loop,
    unwrap_with,
    wrap_in_with,
)
from gradwright.doctor.syntax.decorators import (
    context_name,
    insert_decorator,
    remove_decorator,
    rename_context,
    replace_decorator,
)
from gradwright.doctor.syntax.delay import delay_method
from gradwright.doctor.syntax.expressions import (
    append_method,
    replace_expression,
    strip_method,
    wrap_expression,
    wrap_value,
)
from gradwright.doctor.syntax.functions import add_return, dead_stores
from gradwright.doctor.syntax.imports import imported_names, qualified_name, torch_name
from gradwright.doctor.syntax.inplace import out_of_place
from gradwright.doctor.syntax.loops import inline_into_use, move_into_loop
from gradwright.doctor.syntax.losses import join_backwards, sum_losses
from gradwright.doctor.syntax.names import (
    Access,
    accesses,
    assigned_names,
    assignments_to,
    binds_in,
    dotted,
    reads_in,
    reads_of,
)
from gradwright.doctor.syntax.slices import recompute_after, slice_of
from gradwright.doctor.syntax.state import (
    detach_after_store,
    detach_at_function_end,
    detach_reads,
    insert_at_function_end,
    returns_of,
)
from gradwright.doctor.syntax.statements import (
    delete_statement,
    insert_after,
    insert_before,
    replace_statement,
)
from gradwright.doctor.syntax.tree import Positioned, SourceTree, tree_from_text, tree_of
from gradwright.doctor.syntax.undetach import use_history
from gradwright.doctor.syntax.where import (
    Function,
    Loop,
    With,
    ancestors,
    block_of,
    call_at,
    class_at,
    decorators_of,
    enclosing,
    expression_at,
    function_at,
    is_named,
    loop_at,
    loops_around,
    scope_of,
    span_of,
    span_of_bytes,
    statement_at,
    statement_of,
    with_statements_around,
)

__all__ = [
    "Access",
    "Edits",
    "Function",
    "Loop",
    "Positioned",
    "SourceTree",
    "With",
    "accesses",
    "add_return",
    "ancestors",
    "append_method",
    "argument_of",
    "assigned_names",
    "assignments_to",
    "binds_in",
    "block_of",
    "call_at",
    "class_at",
    "combine",
    "context_name",
    "dead_stores",
    "decorators_of",
    "delay_method",
    "delete_statement",
    "detach_after_store",
    "detach_at_function_end",
    "detach_reads",
    "dotted",
    "enclosing",
    "expression_at",
    "function_at",
    "grad_switch_to_block",
    "guard_cache_test",
    "imported_names",
    "inline_into_use",
    "insert_after",
    "insert_at_function_end",
    "insert_before",
    "insert_decorator",
    "is_named",
    "join_backwards",
    "keyword_of",
    "loop_at",
    "loops_around",
    "move_into_loop",
    "out_of_place",
    "qualified_name",
    "reads_in",
    "reads_of",
    "recompute_after",
    "remove_decorator",
    "remove_keyword",
    "rename_context",
    "replace_argument",
    "replace_decorator",
    "replace_expression",
    "replace_statement",
    "reset_methods",
    "returns_of",
    "scope_of",
    "set_keyword",
    "slice_of",
    "span_of",
    "span_of_bytes",
    "statement_at",
    "statement_of",
    "strip_method",
    "sum_losses",
    "swap_with_and_loop",
    "torch_name",
    "tree_from_text",
    "tree_of",
    "unwrap_with",
    "use_history",
    "with_statements_around",
    "wrap_expression",
    "wrap_in_with",
    "wrap_value",
]
