"""Why an input of `grad` is not in the graph: only what the journal can prove."""

import torch
from torch import Tensor, nn

from gradwright.doctor.evidence.unused import Unused, find_unused
from tests.doctor.evidence.crashes import crash_of
from tests.doctor.evidence.marks import line_marked


def found_in(program: object) -> Unused:
    assert callable(program)
    found = find_unused(crash_of(program))
    assert found is not None
    return found


def vector() -> Tensor:
    return torch.ones(3, requires_grad=True)


def test_a_leaf_made_of_a_result() -> None:
    def program() -> None:
        start = vector()
        leaf = nn.Parameter(start * 2)  # MARK wrapped
        torch.autograd.grad(leaf.sum(), start)

    broken = found_in(program).broken
    assert broken is not None
    assert (broken.line.site.line, broken.kind) == (line_marked(__file__, "wrapped"), "parameter")


def test_the_last_of_several_leaves_is_named() -> None:
    def program() -> None:
        start = vector()
        first = nn.Parameter(start * 2)
        computed = first.exp()  # MARK last
        second = nn.Parameter(computed)
        torch.autograd.grad(second.sum(), start)

    broken = found_in(program).broken
    assert broken is not None
    assert (broken.line.site.line, broken.kind) == (line_marked(__file__, "last"), "leaf")


def test_a_leaf_of_memory_that_was_written_in_place() -> None:
    def program() -> None:
        start, room = vector(), torch.zeros(3)
        room += start  # MARK written
        torch.autograd.grad(nn.Parameter(room).sum(), start)

    broken = found_in(program).broken
    assert broken is not None
    assert broken.line.site.line == line_marked(__file__, "written")


def test_a_leaf_of_a_value_computed_without_recording() -> None:
    def program() -> None:
        start = vector()
        with torch.no_grad():
            value = start * 2  # MARK unrecorded
        torch.autograd.grad(nn.Parameter(value).sum(), start)

    broken = found_in(program).broken
    assert broken is not None
    assert (broken.line.site.line, broken.kind) == (
        line_marked(__file__, "unrecorded"),
        "recording-off",
    )


def test_memory_that_was_given_away_again_proves_nothing() -> None:
    reused: list[Tensor] = []

    def program() -> None:
        start = vector()
        dead = [start * 2 for _ in range(100)]
        addresses = {one.data_ptr() for one in dead}
        del dead
        with torch._C.DisableTorchFunction():  # as in later steps, when the recorder rests
            fresh = [torch.ones(3) for _ in range(1000)]
            reused.extend(one for one in fresh if one.data_ptr() in addresses)
        torch.autograd.grad(nn.Parameter(reused[0]).sum(), start)

    assert found_in(program).broken is None


def test_an_operation_on_lists_connects_only_what_shares_a_place() -> None:
    def program() -> None:
        body, head = vector(), vector()
        with torch.no_grad():
            doubled = torch._foreach_mul([body, head], 2.0)
        torch.autograd.grad(nn.Parameter(doubled[0]).sum(), head)

    assert found_in(program).broken is None


def test_an_input_made_after_what_the_outputs_used() -> None:
    def program() -> None:
        start = vector()
        loss = start.exp().sum()
        later = start.view(3)  # MARK later
        torch.autograd.grad(loss, later)

    found = found_in(program)
    assert found.broken is None
    assert found.renewed is not None
    assert found.renewed.site.line == line_marked(__file__, "later")


def test_a_detached_copy_of_what_the_outputs_used() -> None:
    def program() -> None:
        start = vector()
        loss = start.exp().sum()
        copy = start.detach().requires_grad_()  # MARK copied
        torch.autograd.grad(loss, copy)

    found = found_in(program)
    assert found.broken is None
    assert found.renewed is not None
    assert found.renewed.site.line == line_marked(__file__, "copied")
