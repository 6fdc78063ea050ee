"""Which of the slow tests a quick run takes."""

from collections import defaultdict
from collections.abc import Sequence

STRIDE = 4


def sample(keys: Sequence[str]) -> list[int]:
    """The positions of the first and then every fourth element of each group of equal keys.

    The choice depends on nothing but the tests themselves: what ran before a commit is what
    continuous integration runs after it.
    """
    seen: dict[str, int] = defaultdict(int)
    chosen = []
    for position, key in enumerate(keys):
        if seen[key] % STRIDE == 0:
            chosen.append(position)
        seen[key] += 1
    return chosen
