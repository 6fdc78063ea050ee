from __future__ import annotations

from torch import nn

from gradwright.doctor.repairs.frozen_parts import covering


def test_covering_takes_the_largest_modules_that_are_frozen_whole() -> None:
    judge, tail = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Linear(2, 1)
    frozen = {id(one) for one in judge.parameters()}
    modules = [("judge.0", judge[0]), ("judge", judge), ("tail", tail)]

    assert covering(modules, frozen) == ["judge"]
    assert covering(modules, {id(one) for one in judge[0].parameters()}) == ["judge.0"]
    assert covering(modules, set()) == []
