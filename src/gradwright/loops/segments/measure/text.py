"""The report as text: a table of the lengths, and the lags with bars."""

from collections.abc import Iterator, Sequence

from gradwright.loops.segments.measure.budget import in_words
from gradwright.loops.segments.measure.lags import Lags
from gradwright.loops.segments.measure.tried import Tried

_BAR = 40  # characters of the longest bar
_MOST_ROWS = 16
_LITTLE = 0.001  # lags are not listed where it is less from there on


def lines_of(times: int, budget: int, tried: Sequence[Tried], lags: Lags | None) -> Iterator[str]:
    """All lines."""
    yield f"{times} times; {in_words(budget)} for what one segment saves for backward"
    yield f"{'length':>8} {'saved':>10}  fits  {'lost':>8} {'cosine':>8}"
    yield from map(_row, tried)
    if not all(each.is_measured for each in tried):
        yield "~ not run: at least about so much, going by the two before"
    yield _verdict([each.length for each in tried if each.fits])
    if lags is not None:
        yield ""
        yield from _lag_lines(lags)


def _row(each: Tried) -> str:
    size = ("" if each.is_measured else "~") + in_words(each.saved)
    fits = "yes" if each.fits else "no"
    if each.error is None:
        return f"{each.length:8} {size:>10}  {fits}"
    return f"{each.length:8} {size:>10}  {fits:4}  {each.error:8.4f} {each.cosine:8.4f}"


def _verdict(fitting: Sequence[int]) -> str:
    if not fitting:
        return "no length fits: a shorter batch, fewer rows or checkpoints inside `run` save more"
    return f"longest that fits: {max(fitting)}"


def _lag_lines(lags: Lags) -> Iterator[str]:
    ends = "1 end" if len(lags.ends) == 1 else f"{len(lags.ends)} ends"
    yield f"gradient that reaches back so many times, in units of lag 1 (mean of {ends})"
    pairs = list(zip(lags.lags, lags.relative, strict=True))
    seen = [lag for lag, value in pairs if not value < _LITTLE]
    shown = [(lag, value) for lag, value in pairs if lag <= max(seen)]
    largest = max(value for _, value in shown)
    for lag, value in shown[:: -(-len(shown) // _MOST_ROWS)]:
        bar = "#" * round(_BAR * value / largest) if value == value else ""
        yield f"{lag:8} {value:10.2g}  {bar}".rstrip()
    if len(shown) < len(pairs):
        yield f"below {_LITTLE} from {pairs[len(shown)][0]} to {pairs[-1][0]}"
