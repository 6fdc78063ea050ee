"""Labels in the order in which things happened."""

from gradwright.diagnostic import Label, Span


class Story:
    """Collects labels; a second remark on the same span joins the first one's line."""

    def __init__(self) -> None:
        self._told: list[tuple[Span, str, bool]] = []

    def tell(self, span: Span | None, text: str, *, primary: bool = False) -> None:
        """Say `text` about `span`; without a span there is nothing to point at."""
        if span is not None:
            self._told.append((span, text, primary))

    @property
    def labels(self) -> tuple[Label, ...]:
        """What was told, numbered from 1; one label is primary."""
        main = next((i for i, (_, _, primary) in enumerate(self._told) if primary), 0)
        return tuple(
            Label(span, text, order=index + 1, primary=index == main)
            for index, (span, text, _) in enumerate(self._told)
        )
