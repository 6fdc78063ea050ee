"""Methods that learn from validation losses: their derivatives against differences, and a step."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from gradwright.weighting.bilevel import FORUM, MOML, AutoLambda, BilevelWeighting, Losses
from gradwright.weighting.solver import min_norm
from tests.reference.bilevel import forum_mix, forum_value, slope_by_differences

N_TASKS = 3


class Problem:
    """A small network with one output per task, and two batches, in float64."""

    def __init__(self, seed: int = 0, norm: bool = False) -> None:
        torch.manual_seed(seed)
        layers: list[nn.Module] = [nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, N_TASKS)]
        if norm:
            layers.insert(1, nn.BatchNorm1d(5))
        self.model = nn.Sequential(*layers).double()
        self.batches = [
            (torch.randn(6, 4).double(), torch.randn(6, N_TASKS).double()) for _ in range(2)
        ]

    def losses(self, batch: int, parameters: dict[str, Tensor] | None = None) -> Tensor:
        x, y = self.batches[batch]
        return (functional_call(self.model, parameters or {}, (x,)) - y).square().mean(0)

    @property
    def train(self) -> Losses:
        x, y = self.batches[0]
        return lambda: (self.model(x) - y).square().mean(0)

    @property
    def validation(self) -> Losses:
        x, y = self.batches[1]
        return lambda: list((self.model(x) - y).square().mean(0))

    def after(self, weights: Tensor, lr: float, steps: int) -> dict[str, Tensor]:
        """The parameters after steps of gradient descent on the weighted training losses."""
        values = {k: p.detach().clone() for k, p in self.model.named_parameters()}
        for _ in range(steps):
            leaves = {k: v.clone().requires_grad_() for k, v in values.items()}
            grads = torch.autograd.grad(weights @ self.losses(0, leaves), list(leaves.values()))
            values = {k: v - lr * g for (k, v), g in zip(values.items(), grads, strict=True)}
        return values


METHODS: dict[str, Callable[[], BilevelWeighting]] = {
    "AutoLambda": lambda: AutoLambda(N_TASKS, inner_lr=0.1, lr=1e-2),
    "AutoLambda as in LibMTL": lambda: AutoLambda(
        N_TASKS, inner_lr=0.1, lr=1e-2, start=1 / 3, softmax=True, exact=False
    ),
    "MOML": lambda: MOML(N_TASKS, lr=1e-2),
    "FORUM": lambda: FORUM(N_TASKS, lr=1e-2),
}


@pytest.mark.parametrize("steps", [1, 3])
def test_auto_lambda_differentiates_through_the_steps(steps: int) -> None:
    problem = Problem()
    weighting = AutoLambda(N_TASKS, inner_lr=0.3, primary=[0, 2], inner_steps=steps)
    weights = torch.tensor([0.4, 0.1, 0.7], dtype=torch.float64)

    found = weighting._exact_slope(problem.model, problem.train, problem.validation, weights)

    def value(w: Tensor) -> Tensor:
        losses = problem.losses(1, problem.after(w, 0.3, steps))
        return (losses[0] + losses[2]).detach()

    torch.testing.assert_close(found, slope_by_differences(value, weights), rtol=1e-5, atol=1e-8)


def test_auto_lambdas_differences_are_near_the_exact_derivative() -> None:
    problem = Problem()
    weighting = AutoLambda(N_TASKS, inner_lr=0.3)
    weights = torch.tensor([0.4, 0.1, 0.7], dtype=torch.float64)
    batches = (problem.train, problem.validation)

    exact = weighting._exact_slope(problem.model, *batches, weights)

    differences = weighting._difference_slope(problem.model, *batches, weights)
    torch.testing.assert_close(differences, exact, rtol=1e-3, atol=1e-5)


def test_auto_lambdas_slope_is_what_the_official_finite_differences_give() -> None:
    """-η (train(θ + εv) - train(θ - εv)) / 2ε, ε = 0.01 / ||v||, v = ∇validation(θ')."""
    problem = Problem()
    weights = torch.tensor([0.4, 0.1, 0.7], dtype=torch.float64)
    theta = {k: p.detach() for k, p in problem.model.named_parameters()}
    after = {k: v.requires_grad_() for k, v in problem.after(weights, 0.3, 1).items()}
    v = torch.autograd.grad(problem.losses(1, after).sum(), list(after.values()))
    eps = 0.01 / torch.cat([part.flatten() for part in v]).norm()
    ends = [
        problem.losses(
            0, {k: p + sign * eps * d for (k, p), d in zip(theta.items(), v, strict=True)}
        )
        for sign in (1, -1)
    ]

    found = AutoLambda(N_TASKS, 0.3, exact=False)._difference_slope(
        problem.model, problem.train, problem.validation, weights
    )

    torch.testing.assert_close(found, -0.3 * (ends[0] - ends[1]) / (2 * eps))


@pytest.mark.parametrize("steps", [1, 3])
def test_moml_goes_along_the_shortest_mean_of_the_exact_gradients(steps: int) -> None:
    problem = Problem()
    scores = torch.tensor([0.1, -0.5, 0.3], dtype=torch.float64)

    def value(a: Tensor) -> Tensor:
        return problem.losses(1, problem.after(torch.softmax(a, 0), 0.3, steps)).detach()

    rows = slope_by_differences(value, scores)
    rows = rows / rows.norm(dim=1, keepdim=True)
    expected = min_norm(rows @ rows.T) @ rows

    weighting = MOML(N_TASKS, inner_lr=0.3, inner_steps=steps)
    found = weighting._slope(
        problem.model, problem.train, problem.validation, scores.clone().requires_grad_()
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_forums_distance_is_the_gradient_of_q() -> None:
    problem = Problem()
    weighting = FORUM(N_TASKS, inner_lr=0.2, inner_steps=4)
    scores = torch.tensor([0.1, -0.5, 0.3])
    weighting.scores.copy_(scores)
    best = problem.losses(0, problem.after(torch.softmax(scores.double(), 0), 0.2, 4)).detach()

    with torch.enable_grad():
        q_scores, q_model, weights = weighting._distance(problem.model, problem.train)

    def value(a: Tensor) -> Tensor:
        return torch.softmax(a, 0) @ (problem.losses(0).detach() - best)

    torch.testing.assert_close(q_scores, slope_by_differences(value, scores.double()))
    expected = torch.autograd.grad(weights @ problem.losses(0), list(problem.model.parameters()))
    torch.testing.assert_close(q_model, expected)


@pytest.mark.parametrize("phi", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("length", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("n_tasks", [1, 2, 3])
def test_forums_problem_has_no_better_mix(n_tasks: int, length: float, phi: float) -> None:
    generator = torch.Generator().manual_seed(n_tasks)
    for _ in range(6):
        rows = torch.randn(n_tasks, 3, generator=generator, dtype=torch.float64)
        rows = rows / rows.norm(dim=1, keepdim=True)
        q = torch.randn(3, generator=generator, dtype=torch.float64)
        q = length * q / q.norm()
        problem = (rows @ rows.T, rows @ q, float(q @ q))

        mix = FORUM(n_tasks, phi=phi)._solve(*problem)

        assert float(mix.sum()) == pytest.approx(1)
        assert bool((mix >= 0).all())
        least = forum_mix(*problem, phi, pieces=60)
        assert forum_value(*problem, phi, mix) <= least + 1e-8 * (1 + length**2)


@pytest.mark.parametrize("name", METHODS)
def test_a_step_adds_to_the_gradients_and_leaves_the_model_as_it_was(name: str) -> None:
    problem = Problem(norm=True)
    before = {k: v.clone() for k, v in problem.model.named_parameters()}
    for parameter in problem.model.parameters():
        parameter.grad = torch.ones_like(parameter)

    weights = METHODS[name]().backward(problem.model, problem.train, problem.validation)

    assert weights.shape == (N_TASKS,)
    assert not weights.requires_grad
    for key, parameter in problem.model.named_parameters():
        assert torch.equal(parameter, before[key])
        assert parameter.grad is not None
        assert bool(parameter.grad.isfinite().all())
    gradients = [p.grad for p in problem.model.parameters() if p.grad is not None]
    assert any(not torch.equal(g, torch.ones_like(g)) for g in gradients)
    assert int(problem.model.get_buffer("1.num_batches_tracked")) == (
        2 if name == "FORUM" else 1
    ), "forwards that try other parameters count"


@pytest.mark.parametrize("name", ["AutoLambda", "MOML"])
def test_the_gradient_is_that_of_the_weighted_training_losses(name: str) -> None:
    problem = Problem()

    weights = METHODS[name]().backward(problem.model, problem.train, problem.validation)

    parameters = list(problem.model.parameters())
    expected = torch.autograd.grad(weights @ problem.losses(0), parameters)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.mark.parametrize("name", METHODS)
def test_training_lowers_the_validation_losses(name: str) -> None:
    problem = Problem()
    weighting = METHODS[name]()
    optimizer = torch.optim.SGD(problem.model.parameters(), lr=0.05)
    problem.batches[1] = problem.batches[0]  # where one batch speaks for the other
    start = problem.losses(1).detach().sum()
    for _ in range(40):
        optimizer.zero_grad()
        weighting.backward(problem.model, problem.train, problem.validation)
        optimizer.step()
    assert float(problem.losses(1).detach().sum()) < 0.95 * float(start)


@pytest.mark.parametrize("name", METHODS)
def test_a_task_that_hurts_the_others_loses_weight(name: str) -> None:
    """Task 2 trains against what the validation losses want."""
    problem = Problem()
    x, y = problem.batches[0]
    problem.batches[1] = (x, y)
    weighting = METHODS[name]()

    def train() -> Tensor:
        out = problem.model(x)
        hurts = (out[:, :2] - y[:, :2] - 10).square().mean()
        return torch.stack([*(out - y).square().mean(0)[:2], hurts])

    for _ in range(20):
        problem.model.zero_grad()
        weights = weighting.backward(problem.model, train, problem.validation)
    if name != "FORUM":  # it moves its weights for q, not for the validation losses
        assert float(weights[2]) < float(weights[:2].min())


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_state_goes_on_to_the_bit(name: str) -> None:
    weighting, fresh = METHODS[name](), METHODS[name]()
    problem = Problem()
    weighting.backward(problem.model, problem.train, problem.validation)
    fresh.load_state_dict(copy.deepcopy(weighting.state_dict()))

    found = []
    for each in (weighting, fresh):
        problem.model.zero_grad()
        for _ in range(2):
            weights = each.backward(problem.model, problem.train, problem.validation)
        found.append([weights, *(p.grad for p in problem.model.parameters() if p.grad is not None)])

    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_missing_tasks_keep_their_state(name: str) -> None:
    problem, weighting = Problem(), METHODS[name]()
    x, y = problem.batches[0]
    some = torch.tensor([0, 2])

    def losses() -> Tensor:
        return (problem.model(x) - y).square().mean(0)[some]

    with weighting.only(some):
        weights = weighting.backward(problem.model, losses, losses)

    assert weights.shape == (2,)
    assert weighting.get_buffer("scores")[1] == METHODS[name]().get_buffer("scores")[1]


@pytest.mark.parametrize("name", METHODS)
def test_one_task_and_no_gradient_at_all(name: str) -> None:
    model = nn.Linear(2, 1)
    makers: dict[str, BilevelWeighting] = {
        "MOML": MOML(1),
        "FORUM": FORUM(1),
        "AutoLambda": AutoLambda(1, 0.1),
    }
    weighting = makers.get(name, AutoLambda(1, 0.1, softmax=True, exact=False))
    for factor in (1.0, 0.0):
        model.zero_grad()
        losses = lambda factor=factor: factor * model(torch.ones(3, 2)).square().mean(0)  # noqa: E731
        assert bool(weighting.backward(model, losses, losses).isfinite().all())
        assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


def test_frozen_parameters_get_no_gradient() -> None:
    problem = Problem()
    problem.model[0].requires_grad_(False)
    for name in METHODS:
        METHODS[name]().backward(problem.model, problem.train, problem.validation)
        assert all(p.grad is None for p in problem.model[0].parameters())


def test_differences_know_one_step_only() -> None:
    with pytest.raises(ValueError, match="`inner_steps` above 1 needs `exact=True`"):
        AutoLambda(2, inner_lr=0.1, inner_steps=2, exact=False)
