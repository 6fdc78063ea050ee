"""Weights per group of parameters, against one `torch.autograd.grad` per loss."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradwright.engine import LossError, SharedError, Weighting, backward
from gradwright.weighting import MGDA, GradVac, MoDo, PCGrad, PerGroup, Sum, UPGrad
from tests.engine.methods import InverseNorms, assert_gradients, inverse_norms
from tests.engine.models.common import Heads, batch, mlp
from tests.engine.refusal import Step
from tests.engine.test_freed import boxed
from tests.reference.batches import flat
from tests.reference.row_methods import grad_vac
from tests.reference.task_gradients import TaskGradients, task_gradients


class Grouped:
    """A trunk of two groups and a layer norm that is in none."""

    def __init__(self, n_tasks: int = 3) -> None:
        torch.manual_seed(0)
        self.trunk = mlp(nn.Tanh(), nn.LayerNorm(4))
        self.heads, self.x = Heads(n_tasks=n_tasks), batch()
        self.leaves = [*self.trunk.parameters(), *self.heads.parameters()]
        self.groups = {
            "layer.first": list(self.trunk[0].parameters()),
            "layer.last": list(self.trunk[-1].parameters()),
        }

    def losses(self) -> dict[str, Tensor]:
        return self.heads(self.trunk(self.x))

    def of_group(self, gradients: TaskGradients, name: str) -> list[bool]:
        """For each leaf, whether it is in the group."""
        ids = {id(leaf) for leaf in self.groups[name]}
        return [id(leaf) in ids for leaf in self.leaves]


def per_group(make: Callable[[], Weighting] = InverseNorms) -> PerGroup:
    return PerGroup({name: make() for name in ("layer.first", "layer.last")})


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("heads", ["unweighted", "mean"])
@pytest.mark.parametrize("present", [(0, 1, 2), (0, 2)], ids=str)
def test_each_group_has_its_own_weights(present: tuple[int, ...], heads: str) -> None:
    model, twin = Grouped(), Grouped()
    losses = {
        name: loss if k in present else None
        for k, (name, loss) in enumerate(model.losses().items())
    }
    result = backward(losses, weighting=per_group(), shared=model.groups, heads=heads)  # type: ignore[arg-type]
    all_losses = [*twin.losses().values()]
    gradients = task_gradients([all_losses[k] for k in present], twin.leaves)
    factors = torch.ones(len(present)) / (len(present) if heads == "mean" else 1)
    expected = gradients.combined(factors, factors)
    index = torch.tensor(present)

    assert result.weights is not None and result.gramian is not None
    assert result.weights.shape == (2, 3) and result.gramian.shape == (2, 3, 3)
    for position, name in enumerate(twin.groups):
        inside = twin.of_group(gradients, name)
        gramian = gradients.gramian(inside)
        weights = inverse_norms(gramian)
        torch.testing.assert_close(result.gramian[position][index[:, None], index], gramian)
        torch.testing.assert_close(result.weights[position][index], weights)
        mine = gradients.combined(weights, weights, inside)
        expected = [m if keep else e for m, e, keep in zip(mine, expected, inside, strict=True)]
    assert_gradients(model.leaves, expected)
    assert result.cosines is not None
    diagonal = result.cosines.diagonal(dim1=1, dim2=2)[:, index]
    torch.testing.assert_close(diagonal, torch.ones(2, len(present)))


@pytest.mark.usefixtures("double")
def test_groups_of_gradvac_are_libmtls() -> None:
    """Three steps of two tasks; LibMTL takes each matrix or layer as a group."""
    model, twin = Grouped(2), Grouped(2)
    weighting = per_group(lambda: GradVac(2, beta=0.5))
    found, jacobians = [], []
    for seed in range(3):
        for each in (model, twin):
            torch.manual_seed(seed)
            each.x = batch()
        backward(model.losses(), weighting=weighting, shared=model.groups)
        inside = [leaf.grad for group in model.groups.values() for leaf in group]
        found.append(torch.cat([grad.flatten() for grad in inside if grad is not None]))
        for leaf in model.leaves:
            leaf.grad = None
        leaves = [leaf for group in twin.groups.values() for leaf in group]
        jacobians.append(flat(task_gradients([*twin.losses().values()], leaves), [True] * 4))
    sizes = [sum(leaf.numel() for leaf in group) for group in twin.groups.values()]

    torch.testing.assert_close(found, grad_vac(jacobians, sizes, 0.5))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("make", [UPGrad, lambda: MGDA("loss"), lambda: GradVac(3)])
def test_one_group_is_the_method_itself(make: Callable[[], Weighting]) -> None:
    model, twin = Grouped(), Grouped()
    torch.manual_seed(0)
    positive = {name: loss.exp() for name, loss in model.losses().items()}
    whole = list(model.trunk.parameters())
    weighting = PerGroup({"all": make()})
    one = backward(positive, weighting=weighting, shared={"all": whole}, heads="unweighted")
    torch.manual_seed(0)
    positive = {name: loss.exp() for name, loss in twin.losses().items()}
    other = backward(positive, weighting=make(), heads="unweighted")

    assert one.weights is not None
    torch.testing.assert_close(one.weights[0], other.weights)
    assert_gradients(model.leaves, [leaf.grad for leaf in twin.leaves])


@pytest.mark.usefixtures("double")
def test_reentrant_checkpoint() -> None:
    model, twin = Grouped(), Grouped()
    inside = checkpoint(model.trunk[1:], model.trunk[0](model.x), use_reentrant=True)
    result = backward(model.heads(inside), weighting=per_group(), shared=model.groups)
    backward(twin.losses(), weighting=per_group(), shared=twin.groups)

    assert result.route.name == "groups"
    assert_gradients(model.leaves, [leaf.grad for leaf in twin.leaves])


def test_scaled_gradients() -> None:
    model, twin = Grouped(), Grouped()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    one = backward(model.losses(), weighting=per_group(), shared=model.groups, scaler=scaler)
    other = backward(twin.losses(), weighting=per_group(), shared=twin.groups)

    torch.testing.assert_close(one.weights, other.weights, rtol=1e-4, atol=1e-6)
    expected = [None if leaf.grad is None else leaf.grad * 2**12 for leaf in twin.leaves]
    assert_gradients(model.leaves, expected, rtol=1e-4, atol=1e-2)


def test_nothing_outlives_the_call() -> None:
    model = Grouped()
    with boxed() as alive:
        losses = model.losses()
    assert alive
    backward(losses, weighting=per_group(), shared=model.groups)

    assert not alive


def test_a_saved_state_goes_on_to_the_bit() -> None:
    method, fresh = per_group(lambda: GradVac(3)), per_group(lambda: GradVac(3))
    model = Grouped()
    backward(model.losses(), weighting=method, shared=model.groups)
    fresh.load_state_dict(method.state_dict())
    found = []
    for each in (method, fresh):
        model = Grouped()
        torch.manual_seed(3)
        found.append(backward(model.losses(), weighting=each, shared=model.groups).weights)
    assert found[0] is not None and found[1] is not None
    assert torch.equal(found[0], found[1])
    assert "weightings.layer/first.targets" in method.state_dict()


def halves(step: Step) -> dict[str, list[nn.Parameter]]:
    return {name: list(step.trunk[k].parameters()) for name, k in (("a", 0), ("b", 2))}


def two(make: Callable[[], Weighting] = PCGrad) -> PerGroup:
    return PerGroup({"a": make(), "b": make()})


REFUSED = [
    pytest.param({"shared": None}, SharedError, "groups 'a', 'b', so `shared` needs", id="none"),
    pytest.param({"shared": lambda s: [*s.trunk.parameters()]}, SharedError, "got no groups"),
    pytest.param({"shared": lambda s: {"a": halves(s)["a"]}}, SharedError, "got 'a'"),
    pytest.param(
        {"shared": lambda s: {"a": halves(s)["a"], "b": halves(s)["a"]}},
        SharedError,
        "in two groups, 'a' and 'b'",
    ),
    pytest.param(
        {"shared": lambda s: {"a": halves(s)["a"], "b": s.unused.parameters()}},
        SharedError,
        "that no loss reaches",
    ),
    pytest.param({"weighting": PCGrad()}, SharedError, "has 2 groups, but PCGrad takes all"),
    pytest.param({"weighting": None}, SharedError, "but a plain sum takes all"),
    pytest.param({"route": "lean"}, ValueError, "PerGroup needs the rows"),
    pytest.param({"heads": "weighted"}, ValueError, "weights per group of parameters"),
    pytest.param({"weighting": two(MGDA)}, ValueError, "'paper', the rule 'weighted'"),
]


@pytest.mark.parametrize(("arguments", "error", "says"), REFUSED)
def test_what_cannot_work_is_refused(
    arguments: dict[str, object], error: type[Exception], says: str
) -> None:
    step = Step()
    given = {"weighting": two(), "shared": halves} | arguments
    if callable(given["shared"]):
        given["shared"] = given["shared"](step)
    step.refused(error, [says], **given)


def test_a_gradient_that_is_not_finite_is_named() -> None:
    step = Step()
    at_zero = (step.losses["task1"] - step.losses["task1"].detach()).clamp(min=0).sqrt()
    losses = step.losses | {"task1": at_zero}
    says = ["gradient of loss 'task1' is not finite"]
    step.refused(LossError, says, losses=losses, weighting=two(), shared=halves(step))


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: PerGroup({}), "one method per group of parameters: got none"),
    (lambda: PerGroup({"a": Sum()}), "'a' has Sum"),
    (lambda: PerGroup({"a": MoDo(2)}), "'a' has MoDo"),
    (lambda: PerGroup(dict.fromkeys("ab", PCGrad())), "a method of its own for each group"),
    (lambda: PerGroup({"a.b": PCGrad(), "a/b": PCGrad()}), "a name and a method of its own"),
    (lambda: two()(torch.eye(3), torch.ones(3)), r"shape \[group, task, task\] with 2 groups"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_it_is_made_with_is_checked(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
