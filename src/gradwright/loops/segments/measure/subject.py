"""What is measured: a `run`, and the batch that it runs over."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from torch import Tensor

from gradwright.loops.segments.arguments import Length
from gradwright.loops.segments.counts import Reduction
from gradwright.loops.segments.data.layout import Dims, Layout, layout_of
from gradwright.loops.segments.run import Run
from gradwright.loops.segments.tbptt import tbptt

Data = TypeVar("Data")

Count = Callable[[Data], float | Tensor] | None


@dataclass(frozen=True)
class Subject(Generic[Data]):
    """The arguments of `tbptt` that do not change from length to length."""

    run: Run[Data]
    batch: Data
    dim: Dims
    reduction: Reduction
    count: Count[Data]
    initial: Any
    rows: int | None

    @cached_property
    def layout(self) -> Layout:
        """Where time lies in the batch."""
        return layout_of(self.batch, self.dim)

    @property
    def times(self) -> int:
        """How long the batch is."""
        return self.layout.length

    def bptt(
        self, run: Run[Data], length: Length, exact: bool, count: Count[Data] = None
    ) -> tbptt[Data]:
        """Segments of a length, one step per window; `run` and `count` in the place of its own."""
        return tbptt(
            run,
            length,
            dim=self.dim,
            exact=exact,
            step="window",
            reduction=self.reduction,
            count=count or self.count,
            initial=self.initial,
            rows=self.rows,
        )
