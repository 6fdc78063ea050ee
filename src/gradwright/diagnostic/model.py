"""The facts a diagnostic is made of: places in a program, what to say about them, what to write.

File names are absolute paths, or the names Python gives to code without a file
(``<string>``, ``<ipython-input-3-...>``). Renderers shorten them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "note"]
Outcome = Literal["finished", "raised", "stopped"]
Measurement = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text.

    Lines count from 1, columns from 0 in characters. ``end_line=None`` is the same line,
    ``end_column=None`` is the end of that line's text. ``end_column`` is exclusive.
    """

    file: str
    line: int
    column: int = 0
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A remark about a span; ``order`` counts from 1 in the order things happened."""

    span: Span
    text: str
    order: int
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines ``line..end_line`` of ``file`` become ``replacement``.

    The replacement ends with a newline; an empty one deletes the lines. To insert after line n,
    replace line n by itself followed by the new lines.
    """

    file: str
    line: int
    end_line: int
    replacement: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One way out, in words and as edits of the user's files."""

    title: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem of a training program, with its places, its reason and its fixes.

    ``fixes[0]`` is the fix, the others serve another intent. ``avoid`` is the popular wrong fix.
    ``context`` says where in the run it happened, e.g. ``in Model.training_step, batch 0``.
    """

    code: str
    name: str
    category: str
    severity: Severity
    summary: str
    why: str
    labels: tuple[Label, ...]
    fixes: tuple[Fix, ...] = ()
    avoid: str = ""
    affected: tuple[str, ...] = ()
    measured: Mapping[str, Measurement] = field(default_factory=dict, hash=False)
    context: str = ""

    @property
    def primary(self) -> Label | None:
        """The label a user must look at: the primary one, else the first, else none."""
        ordered = sorted(self.labels, key=lambda label: (not label.primary, label.order))
        return ordered[0] if ordered else None

    def __str__(self) -> str:
        from gradwright.diagnostic.text import render

        return render(self)

    def _repr_html_(self) -> str:
        from gradwright.diagnostic.html import render

        return render(self)


@dataclass(frozen=True, slots=True)
class ExceptionFacts:
    """The exception that ended a run, and the user's line it left from."""

    type: str
    message: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a watched run came to: how it ended and what was found."""

    script: str
    outcome: Outcome
    exception: ExceptionFacts | None
    steps: int
    diagnostics: tuple[Diagnostic, ...]

    def __str__(self) -> str:
        from gradwright.diagnostic.text import render_report

        return render_report(self)

    def _repr_html_(self) -> str:
        from gradwright.diagnostic.html import render_report

        return render_report(self)
