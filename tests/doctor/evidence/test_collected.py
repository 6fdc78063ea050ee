from collections import deque

import pytest
import torch

from gradwright.doctor.evidence.collected import Collected, find_collected, tensors_in
from tests.doctor.conftest import Programs


def collected_in(programs: Programs, start: str, add: str, read: str) -> Collected | None:
    return find_collected(
        programs.crash(f"""
            from collections import deque
            weight = torch.ones(2, requires_grad=True)
            kept = {start}
            for step in range(3):
                for part in range(2):
                    {add}
                loss = torch.stack([*{read}]).sum()
                loss.backward()
        """)
    )


KEPT = [
    ("[]", "kept.append((weight * part).exp())", "kept", (2, 4)),
    ("deque(maxlen=3)", "kept.append((weight * part).exp())", "kept", (1, 3)),
    ("{}", "kept[step, part] = (weight * part).exp()", "kept.values()", (2, 4)),
]


@pytest.mark.parametrize(("start", "add", "read", "counts"), KEPT)
def test_old_and_new_in_one_collection(
    programs: Programs, start: str, add: str, read: str, counts: tuple[int, int]
) -> None:
    found = collected_in(programs, start, add, read)
    assert found is not None and found.added is not None and found.read is not None

    assert (found.name, found.old, found.total) == ("kept", *counts)
    assert (found.added.line, found.read.line) == (9, 10)


def test_a_collection_of_old_tensors_only_was_built_once(programs: Programs) -> None:
    start = "[weight.exp(), weight.exp()]"

    assert collected_in(programs, start, "pass", "kept") is None


def test_a_pair_is_no_collection(programs: Programs) -> None:
    add = "kept = (*kept, (weight * part).exp())"

    assert collected_in(programs, "()", add, "kept") is None


def test_tensors_one_level_deep() -> None:
    one, two = torch.zeros(1), torch.ones(1)

    assert list(tensors_in({"a": [one, 3], "b": two})) == [one, two]
    assert list(tensors_in(deque([(one,), [[two]]]))) == [one]
    assert list(tensors_in("text")) == []
