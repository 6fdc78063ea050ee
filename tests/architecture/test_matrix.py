"""Every architecture trains with every weighting; `python -m benchmarks.matrix` prints it all."""

from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from benchmarks._matrix_training import N_EXAMPLES, Outcome, Run, train
from benchmarks.matrix import causes, line, summary, title
from docs.catalogue import Method, methods
from gradwright.weighting import GramianWeighting
from tests.architecture.models import MODELS

METHODS = {method.name: method for method in methods()}

# What may end where the plain sum does: DualProj where hardly a gradient conflicts with the sum,
# MOML where no other weights lower every validation loss.
AS_THE_SUM = {"Sum", "Mean", "Constant", "DualProj", "MOML"}

# The middle one of three gradients, number by number: 0 where only one task has a gradient, or two
# of unlike sign.
TO_ZERO = {"TrimmedMean": {"CrossStitch", "CrossStitch-channels", "AITM"}}

# One of each way to be called.
ONE_PER_KIND = [
    "UW",  # losses, with parameters of its own
    "DWA",  # losses, with epochs
    "FAMO",  # losses, and those after the step
    "UPGrad",  # the Gramian
    "MGDA",  # the Gramian and losses
    "PerGroup",  # groups of parameters
    "DBMTL",  # rows
    "MoDo",  # two further batches
    "AutoLambda",  # a step of its own, with second derivatives
    "FORUM",  # the same without
]


def check(architecture: str, method: str, steps: int) -> None:
    outcome = train(architecture, METHODS[method], steps)
    assert not outcome.failure
    if not outcome.fits:
        assert method == "BayesAgg" and architecture != "SharedBottom"
        return
    assert not outcome.still or architecture in TO_ZERO.get(method, ())
    assert not outcome.equal or method in AS_THE_SUM
    assert outcome.equal or method not in ("Sum", "Constant")


@pytest.mark.parametrize("method", METHODS)
def test_all_weightings_with_one_architecture(method: str) -> None:
    check("SharedBottom", method, steps=20)


@pytest.mark.parametrize("architecture", MODELS)
def test_all_architectures_with_one_weighting(architecture: str) -> None:
    check(architecture, "UPGrad", steps=20)


@pytest.mark.parametrize("architecture", MODELS)
def test_one_weighting_of_each_kind_with_all_architectures(architecture: str) -> None:
    for method in ONE_PER_KIND:
        assert not train(architecture, METHODS[method], steps=3).failure, method


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("architecture", MODELS)
def test_the_whole_matrix(architecture: str, method: str) -> None:
    check(architecture, method, steps=20)


class Broken(GramianWeighting):
    """Weighs the last task, its head included, by this number; raises without one."""

    paper_heads = "weighted"

    def __init__(self, last: float | None) -> None:
        super().__init__()
        self.last = last

    def forward(self, gramian: Tensor) -> Tensor:
        if self.last is None:
            raise RuntimeError("no idea")
        return torch.tensor([1.0] * (len(gramian) - 1) + [self.last]).to(gramian)


@pytest.mark.parametrize(
    ("last", "mark", "cause"),
    [
        (None, "✗", "RuntimeError: no idea"),
        (torch.nan, "✗", "nan]: they must be finite"),
        (0.0, "0", "0 at model.gates.type_.bias, model.gates.type_.weight, model.heads.type_.bias"),
    ],
    ids=["raises", "NaN", "a task that does not count"],
)
def test_failures_are_seen(last: float | None, mark: str, cause: str) -> None:
    broken = Method("Broken", (), lambda n: Broken(last), "", 0, "", "", "")
    outcome = train("MMoE", broken, steps=2)

    assert outcome.mark == mark
    (written,) = causes("Broken", {"MMoE": outcome})
    assert written.startswith(f"{mark} MMoE × Broken: ")
    assert cause in written


def test_a_parameter_that_is_left_out_is_named() -> None:
    run = Run("MMoE", METHODS["Sum"])
    run.backward()
    run.look()
    run.made.get_parameter("gates.job.bias").grad = None

    with pytest.raises(ValueError, match=r"gates\.job\.bias has no gradient"):
        run.look()


def test_batches_and_steps_of_two_runs_are_the_same() -> None:
    one, other = Run("LTB", METHODS["UPGrad"]), Run("LTB", METHODS["UPGrad"])

    assert len(one.batches[0][0]) == N_EXAMPLES
    for (x, labels), (y, others) in zip(one.batches, other.batches, strict=True):
        assert torch.equal(x, y)
        torch.testing.assert_close(labels, others, rtol=0, atol=0)
    assert _starts(one) == _starts(other)


def _starts(run: Run) -> Sequence[float]:
    return [float(parameter.detach().sum()) for parameter in run.parameters.values()]


def test_the_printed_matrix() -> None:
    row = {
        "MMoE": Outcome(),
        "CGC": Outcome(equal=True),
        "PLE": Outcome(failure="no"),
        "AITM": Outcome(still=("a", "b")),
        "LTB": Outcome(fits=False),
    }
    counts = Counter(outcome.mark for outcome in row.values())

    assert len([*title()]) == len(MODELS)
    assert line("UPGrad", row) == "UPGrad           ✓  =  ✗  0  –"
    assert [*causes("UPGrad", row)] == ["✗ PLE × UPGrad: no", "0 AITM × UPGrad: 0 at a, b"]
    assert summary(counts) == (
        "4 pairs: 3 trained, 1 of them as the plain sum does, 1 with parameters at 0; 1 failed."
    )
