"""Methods that read several batches, against one `torch.autograd.grad` per loss and batch."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradwright.engine import CrossGramianWeighting, LossError, SharedError, TaskMismatch, backward
from gradwright.weighting import CRMOGM, MoDo, PCGrad, SDMGrad
from tests.engine.methods import assert_gradients
from tests.engine.models.common import Heads, batch, mlp
from tests.engine.refusal import Step
from tests.engine.test_freed import boxed
from tests.reference.batches import step_of_batches

METHODS: dict[str, Callable[[], CrossGramianWeighting]] = {
    "MoDo": lambda: MoDo(3, gamma=3.0),
    "SDMGrad": lambda: SDMGrad(3),
    "CRMOGM": lambda: CRMOGM(MoDo(3, gamma=3.0), 3),  # type: ignore[dict-item,return-value]
}
methods = pytest.mark.parametrize("name", METHODS)
counts = pytest.mark.parametrize("n", [2, 3], ids=["two batches", "three batches"])


class Training:
    """A model, and a forward per batch."""

    def __init__(self, kind: str = "plain") -> None:
        torch.manual_seed(0)
        self.trunk, self.heads = mlp(nn.BatchNorm1d(4), nn.Tanh()), Heads()
        self.leaves = [*self.trunk.parameters(), *self.heads.parameters()]
        self.kind = kind

    def losses(self, n: int) -> list[dict[str, Tensor]]:
        return [self.heads(self._features(batch())) for _ in range(n)]

    def _features(self, x: Tensor) -> Tensor:
        if self.kind == "plain":
            return self.trunk(x)
        inside = self.trunk[0](x)
        return checkpoint(self.trunk[1:], inside, use_reentrant=self.kind == "reentrant")


def factors(rule: str, n: int) -> Callable[[Tensor], Sequence[Tensor]]:
    """What the heads of each of `n` batches are multiplied by."""
    trained = [0.5, 0.5] if n == 2 else [1.0, 0.0, 0.0]
    shares = {"mean of all": [1 / n] * n, "sum of all": [1.0] * n}.get(rule, trained)
    return lambda weights: [
        share * (weights if rule == "weighted" else torch.ones_like(weights)) for share in shares
    ]


def check(
    method: CrossGramianWeighting,
    twin: CrossGramianWeighting,
    n: int,
    rule: str = "unweighted",
    heads: str = "paper",
    kind: str = "plain",
) -> None:
    training, other = Training(kind), Training("plain")
    for _ in range(3):
        torch.manual_seed(1)
        losses, *others = training.losses(n)
        result = backward(losses, weighting=method, other=others, heads=heads)  # type: ignore[arg-type]
        torch.manual_seed(1)
        batches = [[*each.values()] for each in other.losses(n)]
        weights, expected = step_of_batches(batches, other.leaves, twin, factors(rule, n))

        assert result.weights is not None
        torch.testing.assert_close(result.weights, weights)
        torch.testing.assert_close(result.losses, torch.stack(batches[0]).detach())
        assert_gradients(training.leaves, expected)
        for leaf in training.leaves:
            leaf.grad = None


@pytest.mark.usefixtures("double")
@counts
@methods
def test_step_is_that_of_the_paper(name: str, n: int) -> None:
    check(METHODS[name](), METHODS[name](), n)


@pytest.mark.usefixtures("double")
@counts
@pytest.mark.parametrize(
    ("name", "heads", "rule"),
    [
        ("MoDo", "weighted", "weighted"),
        ("MoDo", "torchjd", "weighted"),
        ("MoDo", "libmtl", "mean of all"),
        ("SDMGrad", "libmtl", "sum of all"),
        ("SDMGrad", "torchjd", "weighted"),
        ("CRMOGM", "libmtl", "mean of all"),
    ],
)
def test_heads(name: str, heads: str, rule: str, n: int) -> None:
    check(METHODS[name](), METHODS[name](), n, rule, heads)


@pytest.mark.usefixtures("double")
@counts
@pytest.mark.parametrize("kind", ["checkpoint", "reentrant"])
def test_checkpoints(kind: str, n: int) -> None:
    check(METHODS["MoDo"](), METHODS["MoDo"](), n, kind=kind)


@pytest.mark.usefixtures("double")
@counts
def test_absent_tasks_are_as_if_never_there(n: int) -> None:
    training, twin = Training(), Training()
    torch.manual_seed(1)
    losses, *others = ({**each, "task1": None} for each in training.losses(n))
    method = MoDo(3, gamma=3.0)
    result = backward(losses, weighting=method, other=others)
    torch.manual_seed(1)
    batches = [[each["task0"], each["task2"]] for each in twin.losses(n)]
    same = MoDo(2, gamma=3.0)
    weights, expected = step_of_batches(batches, twin.leaves, same, factors("unweighted", n))

    assert result.weights is not None
    torch.testing.assert_close(result.weights[[0, 2]], weights)
    assert result.weights[1] == 0
    assert method.weights[1] == pytest.approx(1 / 3)
    assert_gradients(training.leaves, expected)


@counts
def test_scaled_gradients(n: int) -> None:
    training, twin = Training(), Training()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    torch.manual_seed(1)
    losses, *others = training.losses(n)
    scaled = backward(losses, weighting=MoDo(3), other=others, scaler=scaler)
    torch.manual_seed(1)
    losses, *others = twin.losses(n)
    plain = backward(losses, weighting=MoDo(3), other=others)

    torch.testing.assert_close(scaled.weights, plain.weights, rtol=1e-4, atol=1e-6)
    expected = [None if leaf.grad is None else leaf.grad * 2**12 for leaf in twin.leaves]
    assert_gradients(training.leaves, expected, rtol=1e-4, atol=1e-2)


@counts
def test_nothing_outlives_the_call(n: int) -> None:
    training = Training()
    with boxed() as alive:
        losses, *others = training.losses(n)
    assert alive
    backward(losses, weighting=MoDo(3), other=others)

    assert not alive


@counts
def test_kept_graphs_give_the_same_again(n: int) -> None:
    training = Training()
    losses, *others = training.losses(n)
    backward(losses, weighting=MoDo(3), other=others, retain_graph=True)
    first = [None if leaf.grad is None else leaf.grad.clone() for leaf in training.leaves]
    for leaf in training.leaves:
        leaf.grad = None
    backward(losses, weighting=MoDo(3), other=others)

    assert_gradients(training.leaves, first)


def test_route_says_what_is_read() -> None:
    losses, one, two = Training().losses(3)
    route = backward(losses, weighting=MoDo(3), other=[one, two]).route

    assert route.name == "batches"
    assert "MoDo reads 3 rows of two batches; then one backward" in route.why


def another() -> dict[str, Tensor]:
    return Training().losses(1)[0]


REFUSED = [
    pytest.param({"other": []}, ValueError, "Got 0", id="none"),
    pytest.param({"other": [another] * 3}, ValueError, "Got 3", id="three"),
    pytest.param({"other": [another], "weighting": PCGrad()}, ValueError, "PCGrad reads one batch"),
    pytest.param({"other": [another], "weighting": None}, ValueError, "a plain sum reads one"),
    pytest.param({"other": [another], "route": "lean"}, ValueError, "rows (of two batches"),
    pytest.param(
        {"other": [lambda: another() | {"task0": None}]},
        TaskMismatch,
        "at position 0 losses of 'task1', 'task2' (1 absent), but `losses` are of 'task0'",
    ),
    pytest.param(
        {"other": [lambda: another() | {"task0": another()["task0"] * torch.nan}]},
        LossError,
        "'task0' is nan",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "says"), REFUSED)
def test_what_cannot_work_is_refused(
    arguments: dict[str, object], error: type[Exception], says: str
) -> None:
    given = {"weighting": MoDo(3)} | arguments
    given["other"] = [make() for make in given["other"]]  # type: ignore[attr-defined]
    Step().refused(error, [says], **given)


def test_a_gradient_that_is_not_finite_is_named() -> None:
    step = Step()
    one, two = (step.heads(step.trunk(batch())) for _ in range(2))
    one["task1"] = (one["task1"] - one["task1"].detach()).clamp(min=0).sqrt()
    says = ["gradient of loss 'task1' is not finite"]
    step.refused(LossError, says, weighting=MoDo(3), other=[one, two])


def test_batches_of_two_models_are_refused() -> None:
    step = Step()
    says = ["share no parameter", "same model"]
    step.refused(SharedError, says, weighting=MoDo(3), other=[another()])
