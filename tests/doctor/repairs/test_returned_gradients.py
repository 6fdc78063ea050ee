from __future__ import annotations

import pytest

from gradwright.doctor.repairs.returned_gradients import fitted, matched, reshaping

FITTED = [
    (["a", "b"], (True, True, False), ["a", "b", "None"]),
    (["a", "b"], (True, False, True), ["a", "None", "b"]),
    (["a"], (True, True), None),
    (["a", "b", "None"], (True, True), ["a", "b"]),
    (["a", "None", "b"], (True, True), ["a", "b"]),
    (["*rest"], (True, False), None),
]


@pytest.mark.parametrize(("given", "needs", "wanted"), FITTED)
def test_one_gradient_for_each_input(
    given: list[str], needs: tuple[bool, ...], wanted: list[str] | None
) -> None:
    assert fitted(given, needs) == wanted


MATCHED = [
    (["grad_x", "grad_w"], ["weight", "x"], (True, True), ["grad_w", "grad_x"]),
    (["grad_x", "grad_w"], ["weight", "x"], (True, False), ["grad_w", "grad_x"]),
    (["first", "second"], ["a", "b"], (True, True), ["first", "second"]),
    (["dx"], ["x", "limit"], (True, False), ["dx", "None"]),
    (["one"], ["a", "b"], (True, True), None),
]


@pytest.mark.parametrize(("stored", "inputs", "needs", "wanted"), MATCHED)
def test_variables_find_their_inputs(
    stored: list[str], inputs: list[str], needs: tuple[bool, ...], wanted: list[str] | None
) -> None:
    assert matched(stored, inputs, needs) == wanted


SHAPES = [
    ([3, 5], [5, 3], ".T"),
    ([3, 1], [3], ".reshape(3)"),
    ([3], [1, 3], ".reshape(1, 3)"),
    ([8, 3], [4], None),
    ([3, 5, 2], [5, 3, 2], None),
]


@pytest.mark.parametrize(("got", "expected", "method"), SHAPES)
def test_gradient_is_brought_into_shape(
    got: list[int], expected: list[int], method: str | None
) -> None:
    assert reshaping(got, expected) == method
