"""BayesAgg: the official code's numbers, its closed form against draws, and its state."""

import copy

import pytest
import torch
from torch import Tensor, nn

from gradwright.weighting.bayes import (
    BayesAgg,
    BayesHead,
    BinaryHead,
    ClassHead,
    Moments,
    RegressionHead,
    precision_weighted,
)

H = torch.arange(24, dtype=torch.float64).reshape(8, 3).sin()
NUMBERS = torch.arange(16, dtype=torch.float64).reshape(8, 2).cos()
LABELS = (torch.arange(16).reshape(8, 2) % 3 == 0).double()
CLASSES = torch.arange(8) % 3


def layer(n_outputs: int, start: int) -> nn.Linear:
    made = nn.Linear(3, n_outputs).double()
    counted = torch.arange(3 * n_outputs, dtype=torch.float64) + start
    made.weight.data = counted.sin().reshape(n_outputs, 3)
    made.bias.data = (torch.arange(n_outputs, dtype=torch.float64) + start).cos()
    return made


TASKS: dict[str, tuple[type[BayesHead], int, Tensor, nn.Linear]] = {
    "regression": (RegressionHead, 2, NUMBERS, layer(2, 0)),
    "binary": (BinaryHead, 2, LABELS, layer(2, 1)),
    "classes": (ClassHead, 3, CLASSES, layer(3, 2)),
}

# ssi-research/BayesAgg_MTL with gamma=0.5, sqrt_power=0.5, 512 draws after torch.manual_seed(0),
# the whole of H as training examples and its first four rows as batch
OFFICIAL = {
    "regression": [
        [0.0243878858, 0.0258001784, 0.0035249417],
        [-0.0088698315, -0.0105708500, -0.0026186091],
        [0.0097830331, 0.0339096419, 0.0267468853],
        [-0.0113356758, -0.0736338744, -0.0679397916],
    ],
    "binary": [
        [0.0105164119, -0.0026521114, -0.0077069982],
        [-0.0097412278, 0.0073802934, 0.0105222381],
        [-0.0061822051, -0.0064400212, 0.0007668712],
        [0.0120258205, -0.0257977639, -0.0323203295],
    ],
    "classes": [
        [0.0481424407, -0.0018656226, -0.0365199843],
        [-0.0248754110, 0.0178545800, 0.0404342690],
        [-0.0102774428, -0.0323093112, -0.0260185228],
        [0.1094731052, -0.1249849797, -0.2299588737],
    ],
    "regression binary classes": [
        [0.0205996527, 0.0048013744, -0.0085972100],
        [-0.0153651640, 0.0081674542, 0.0168905322],
        [0.0001331361, 0.0009841492, 0.0050677935],
        [0.0225237576, -0.0503658296, -0.0656409558],
    ],
}


def made(names: str) -> tuple[BayesAgg, list[Tensor], list[nn.Linear]]:
    tasks = [TASKS[name] for name in names.split()]
    heads: list[BayesHead] = []
    for kind, n_outputs, _, _ in tasks:
        assert kind in (RegressionHead, BinaryHead, ClassHead)
        heads.append(kind(3, n_outputs, prior_variance=0.5))
    aggregate = BayesAgg(heads, power=0.5).double()
    targets, layers = [task[2] for task in tasks], [task[3] for task in tasks]
    aggregate.fit(H, targets, layers)
    return aggregate, targets, layers


@pytest.mark.parametrize("names", OFFICIAL)
def test_the_official_code_gives_these_gradients(names: str) -> None:
    aggregate, targets, layers = made(names)
    torch.manual_seed(0)
    found = aggregate(H[:4], [target[:4] for target in targets], layers)
    expected = torch.tensor(OFFICIAL[names], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-9)


def test_regression_moments_are_those_of_many_draws() -> None:
    aggregate, (targets,), (linear,) = made("regression")
    head = aggregate.heads[0]
    assert isinstance(head, RegressionHead)
    found = head.moments(H[:2], targets[:2], linear)

    after = head.precision + H[:2].T @ H[:2]
    sigma = after.inverse()
    means = (head.mean @ head.precision + targets[:2].T @ H[:2]) @ sigma
    torch.manual_seed(0)
    for output, mean in enumerate(means):
        w = torch.distributions.MultivariateNormal(mean, sigma).sample((400_000,))
        gradient = 2 * (w @ H[:2].T - targets[:2, output])[:, :, None] * w[:, None]
        torch.testing.assert_close(found.mean[:, output], gradient.mean(0), rtol=0.01, atol=0.005)
        torch.testing.assert_close(
            found.variance[:, output], gradient.var(0), rtol=0.02, atol=0.005
        )


def test_an_unsure_task_counts_less() -> None:
    sure, unsure = torch.ones(1, 1, 2), torch.full((1, 1, 2), 9.0)
    moments = [Moments(torch.ones(1, 1, 2), sure), Moments(torch.zeros(1, 1, 2), unsure)]
    torch.testing.assert_close(precision_weighted(moments), torch.full((1, 2), 0.9))


@pytest.mark.parametrize("names", OFFICIAL)
def test_a_saved_state_goes_on_to_the_bit(names: str) -> None:
    aggregate, targets, layers = made(names)
    fresh, _, _ = made(names)
    for head in fresh.heads:
        head.get_buffer("precision").mul_(2)
    fresh.load_state_dict(copy.deepcopy(aggregate.state_dict()))

    found = []
    for each in (aggregate, fresh):
        torch.manual_seed(0)
        found.append(each(H[:4], [target[:4] for target in targets], layers))
    assert torch.equal(*found)


def test_the_gradient_has_the_type_of_the_features() -> None:
    head = RegressionHead(3, 2)
    found = BayesAgg([head])(H[:4].float(), [NUMBERS[:4].float()], [layer(2, 0).float()])
    assert found.dtype == torch.float32
    assert found.shape == (4, 3)
