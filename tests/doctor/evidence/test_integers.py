"""Integers asked for gradients: which variable, where they come from, who else needs them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from gradwright.doctor.evidence.integers import AskedIntegers, find_integers
from tests.doctor.evidence.crashes import crash_of
from tests.doctor.evidence.marks import line_marked


def found_in(program: Callable[[], object]) -> AskedIntegers:
    found = find_integers(crash_of(program))
    assert found is not None
    return found


def counted() -> Tensor:
    return torch.arange(4)  # MARK counted


def by_method() -> None:
    x = counted()
    x.requires_grad_()


def by_flag() -> None:
    x = counted()
    x.requires_grad = True


def as_parameter() -> None:
    x = counted()
    nn.Parameter(x)


def of_a_part() -> None:
    x = counted()
    x[1:].clone().requires_grad_()


def by_a_library() -> None:
    x = counted()
    jacobian(lambda v: v * 2.0, x)


ASKING = [by_method, by_flag, as_parameter, of_a_part, by_a_library]


@pytest.mark.parametrize("program", ASKING, ids=lambda program: program.__name__)
def test_the_variable_and_its_origin(program: Callable[[], None]) -> None:
    found = found_in(program)

    assert found.name == "x"
    assert found.made is not None
    assert found.made.site.line == line_marked(__file__, "counted")
    assert not found.needed


def test_the_line_that_leaves_floating_point_is_the_origin() -> None:
    def program() -> None:
        picture = torch.rand(3)
        level = (picture * 255).long()  # MARK rounded
        x = level // 64
        x.requires_grad_()

    found = found_in(program)
    assert found.made is not None
    assert found.made.site.line == line_marked(__file__, "rounded")
    assert found.source is not found.entry  # what was rounded on purpose stays so


def test_two_origins_prove_neither() -> None:
    def program() -> None:
        first, second = torch.arange(3), torch.ones(3).long()
        x = first + second  # MARK added
        x.requires_grad_()

    made = found_in(program).made
    assert made is not None
    assert made.site.line == line_marked(__file__, "added")


def test_integers_from_outside_have_no_origin() -> None:
    with torch._C.DisableTorchFunction():
        x = torch.arange(3)

    def program() -> None:
        x.requires_grad_()

    assert found_in(program).made is None


def test_a_call_that_changes_the_type_is_not_looked_through() -> None:
    def program() -> None:
        x = torch.rand(3)
        x.argsort().requires_grad_()

    found = found_in(program)
    assert (found.name, found.made) == ("", None)


def index(x: Tensor) -> object:
    return torch.rand(4)[x]


def label(x: Tensor) -> object:
    return nn.functional.cross_entropy(torch.rand(4, 4), x)


def number(x: Tensor) -> object:
    return range(int(x[1]))


def bits(x: Tensor) -> object:
    return (x + 1) & 1


def scaled(x: Tensor) -> object:
    return x * 0.5


def compared(x: Tensor) -> object:
    return torch.rand(4)[x > 1]


USES = [(index, True), (label, True), (number, True), (bits, True)]
USES += [(scaled, False), (compared, False)]


@pytest.mark.parametrize(("use", "needs"), USES, ids=lambda one: getattr(one, "__name__", ""))
def test_whether_something_else_needs_integers(
    use: Callable[[Tensor], object], needs: bool
) -> None:
    def program() -> None:
        x = counted()
        use(x)
        x.requires_grad_()

    assert found_in(program).needed is needs


def test_only_parameters_of_integers_are_left_out() -> None:
    def flagged() -> None:
        x = nn.Parameter(torch.arange(3), requires_grad=False)
        x.requires_grad = True

    assert found_in(flagged).is_parameter
    assert not found_in(as_parameter).is_parameter
