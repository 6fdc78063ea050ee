"""What a rule is: a code, a name, a category, its documentation, and a function that looks."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash


@dataclass(frozen=True, slots=True)
class Rule:
    """One cause of trouble.

    `explain` looks at a crash and returns a diagnostic, or None when the crash has another cause.
    `documentation` is the docstring of the rule's file; `gradwright explain CODE` prints it.
    """

    code: str
    name: str
    category: str
    documentation: str
    explain: Callable[[Crash], Diagnostic | None]

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return inspect.cleandoc(self.documentation).partition("\n")[0]
