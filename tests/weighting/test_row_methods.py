"""Methods that read every task's gradient: golden numbers, slow twins, and what they promise."""

import copy
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradwright.engine.weights.bases import JacobianWeighting
from gradwright.weighting.db_mtl import DBMTL
from gradwright.weighting.excess_mtl import ExcessMTL
from gradwright.weighting.grad_drop import GradDrop
from gradwright.weighting.meta_balance import MetaBalance
from gradwright.weighting.moco import MoCo
from gradwright.weighting.trimmed_mean import TrimmedMean
from tests.reference import row_methods as twins

METHODS: dict[str, Callable[[int], JacobianWeighting]] = {
    "GradDrop": lambda n: GradDrop(leak=[0.25] * n),
    "TrimmedMean": lambda n: TrimmedMean(trim=(n - 1) // 2),
    "MoCo": MoCo,
    "MoCo as in LibMTL": lambda n: MoCo(n, by_loss=True, softmax=True),
    "DBMTL": DBMTL,
    "ExcessMTL": ExcessMTL,
    "MetaBalance": MetaBalance,
}
STATEFUL = [name for name in METHODS if name not in ("GradDrop", "TrimmedMean")]

LOSSES = [torch.tensor(losses) for losses in ([0.8, 2.5, 0.1], [0.6, 2.6, 0.05], [0.5, 2.0, 0.07])]
STEPS = [
    torch.tensor([[3.0, 0.0, 1.0, -2.0], [-1.0, 2.0, 0.5, 1.0], [0.1, 0.1, -0.3, 0.2]]),
    torch.tensor([[2.0, 0.5, 1.0, -1.0], [-1.0, 1.0, -0.5, 2.0], [0.2, 0.1, -0.2, 0.1]]),
    torch.tensor([[1.0, 0.2, -1.0, -1.0], [-2.0, 1.0, -0.5, 0.3], [0.1, 0.3, -0.2, 0.4]]),
]


def parts(matrix: Tensor) -> list[Tensor]:
    """The matrix [task, 4] as the rows of two parameters, of shapes [2, 1] and [2]."""
    return [matrix[:, :2].reshape(-1, 2, 1), matrix[:, 2:]]


def joined(update: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.flatten() for part in update])


def run(
    weighting: JacobianWeighting, steps: Sequence[Tensor], losses: Sequence[Tensor] | None = None
) -> list[Tensor]:
    """The update of each step, as a vector."""
    losses = losses or [torch.ones(len(steps[0]))] * len(steps)
    return [joined(weighting(parts(step), loss)) for step, loss in zip(steps, losses, strict=True)]


def random_steps(n_tasks: int, seed: int, n_steps: int = 4) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(n_tasks, 4, generator=generator, dtype=torch.float64) for _ in range(n_steps)
    ]


GOLDEN = [
    # LibMTL 4336804847ea, MoCo with rho=0.2
    (
        "MoCo",
        lambda: MoCo(3, rho=0.2, by_loss=True, softmax=True),
        [
            [-0.0485765673, 0.3276151420, 0.1039580104, 0.0978909750],
            [-0.0846186699, 0.3423622092, 0.0332526106, 0.2686020285],
            [-0.1906599292, 0.3332876047, -0.0470438001, 0.1922963481],
        ],
    ),
    # LibMTL 4336804847ea, DB_MTL with DB_beta=0.9 and DB_beta_sigma=0.5
    (
        "DBMTL",
        lambda: DBMTL(3, beta=0.9, decay=0.5),
        [
            [0.3086786073, 0.4949271648, -0.1437429849, 0.1786057933],
            [2.5055808758, 2.4178396550, -1.0466976263, 1.7082131057],
            [1.2566907026, 5.5018513170, -4.5147814100, 1.8872139721],
        ],
    ),
    # LibMTL 4336804847ea, ExcessMTL with robust_step_size=0.5
    (
        "ExcessMTL",
        lambda: ExcessMTL(3, step_size=0.5),
        [
            [2.1, 2.1, 1.2, -0.8],
            [0.9977940006, 1.6388930750, 0.2011221754, 1.3073980745],
            [-1.1388808116, 1.5308587973, -1.5077023234, 0.0404520184],
        ],
    ),
    # facebookresearch/MetaBalance, metabalance.py with its defaults
    (
        "MetaBalance",
        lambda: MetaBalance(3),
        [
            [3.2757756899, 3.9932213416, 0.4576352868, 0.6282431421],
            [2.6871233302, 2.7525943512, -0.4762034074, 1.6314110033],
            [-0.3785078824, 3.0507769838, -2.3503774407, 0.8316453928],
        ],
    ),
]


@pytest.mark.parametrize(("name", "make", "expected"), GOLDEN, ids=[name for name, *_ in GOLDEN])
def test_the_official_code_gives_these_updates(
    name: str, make: Callable[[], JacobianWeighting], expected: list[list[float]]
) -> None:
    updates = run(make(), STEPS, LOSSES)
    torch.testing.assert_close(torch.stack(updates), torch.tensor(expected), rtol=1e-5, atol=1e-6)


@given(st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=25)
def test_slow_twins(n_tasks: int, seed: int) -> None:
    steps = random_steps(n_tasks, seed)
    losses = torch.rand(n_tasks, dtype=torch.float64) + 0.5
    pairs = [
        (run(MoCo(n_tasks, rho=0.1), steps), twins.moco(steps, 0.5, 0.1, 0.1, 0.5)),
        (run(DBMTL(n_tasks), steps, [losses] * 4), twins.db_mtl(steps, losses, 0.9)),
        (run(ExcessMTL(n_tasks, 0.3), steps), twins.excess_mtl(steps, 0.3)),
        (run(MetaBalance(n_tasks), steps), twins.meta_balance(steps, [2, 2], 0.7, 0.9)),
    ]
    for updates, expected in pairs:
        # the weights are kept in float32 between the steps
        torch.testing.assert_close(updates, expected, rtol=1e-5, atol=1e-6, check_dtype=False)


@given(st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=25)
def test_grad_drop_and_trimmed_mean_are_their_slow_twins(n_tasks: int, seed: int) -> None:
    J = random_steps(n_tasks, seed)[0]
    J[:, 2] = 0
    leak = torch.linspace(0, 1, n_tasks, dtype=torch.float64)

    torch.manual_seed(seed)
    found = GradDrop(leak=leak)([J], torch.ones(n_tasks))
    torch.manual_seed(seed)
    expected = twins.grad_drop(J, torch.rand(4, dtype=torch.float64), leak)
    torch.testing.assert_close(found[0], expected, rtol=1e-6, atol=1e-8)

    trim = (n_tasks - 1) // 2
    (mean,) = TrimmedMean(trim)([J], torch.ones(n_tasks))
    torch.testing.assert_close(mean, twins.trimmed_mean(J, trim))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "MetaBalance"])
def test_tasks_in_another_order_give_the_same_update(name: str) -> None:
    steps, order = random_steps(4, 0), torch.tensor([2, 0, 3, 1])
    losses = [torch.tensor([0.5, 1.0, 2.0, 3.0])] * 4

    updates = []
    for turn in (torch.arange(4), order):
        torch.manual_seed(0)
        updates.append(run(METHODS[name](4), [s[turn] for s in steps], [x[turn] for x in losses]))

    torch.testing.assert_close(updates[1], updates[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", METHODS)
def test_the_update_has_the_shapes_and_types_of_the_parameters(
    name: str, dtype: torch.dtype
) -> None:
    jacobian = parts(STEPS[0].to(dtype))
    update = METHODS[name](3)(jacobian, LOSSES[0])
    assert [(part.shape, part.dtype) for part in update] == [((2, 1), dtype), ((2,), dtype)]


@pytest.mark.parametrize("name", METHODS)
def test_one_task_moves_along_its_gradient(name: str) -> None:
    gradient = torch.tensor([[3.0, 1.0, -2.0, 0.5]])
    for update in run(METHODS[name](1), [gradient] * 2):
        kept = update != 0
        assert bool((update.sign() == gradient[0].sign())[kept].all())
        assert bool(update.any()) or name == "GradDrop"


@pytest.mark.parametrize("name", METHODS)
def test_tasks_without_gradient_and_all_zeros_give_finite_updates(name: str) -> None:
    weighting = METHODS[name](3)
    zero_row = STEPS[0].clone()
    zero_row[1] = 0
    for step in (torch.zeros(3, 4), zero_row, torch.zeros(3, 4), STEPS[1], zero_row):
        assert bool(run(weighting, [step])[0].isfinite().all())


@pytest.mark.parametrize("scale", [1e-20, 1e20])
@pytest.mark.parametrize("name", METHODS)
def test_extreme_scales_give_finite_updates(name: str, scale: float) -> None:
    steps = [step.double() * scale * torch.tensor([[1.0], [1e4], [1e-4]]) for step in STEPS]
    for update in run(METHODS[name](3), steps, [x.double() for x in LOSSES]):
        assert bool(update.isfinite().all())


@pytest.mark.parametrize("name", [*STATEFUL, "GradDrop"])
def test_a_missing_task_leaves_the_update_of_the_others_alone(name: str) -> None:
    """Steps of tasks 0 and 2 out of three are those of a method made for two tasks."""
    if name.startswith("MoCo"):
        losses = [torch.tensor([0.5, 2.0])] * 4
    else:
        losses = [torch.tensor([1.0, 3.0])] * 4
    three, two, steps = METHODS[name](3), METHODS[name](2), random_steps(2, 5)

    torch.manual_seed(0)
    with three.only(torch.tensor([0, 2])):
        updates = run(three, steps, losses)
    torch.manual_seed(0)
    torch.testing.assert_close(updates, run(two, steps, losses), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", STATEFUL)
def test_missing_tasks_keep_their_state(name: str) -> None:
    weighting = METHODS[name](3)
    run(weighting, STEPS, LOSSES)
    before = {key: value.clone() for key, value in weighting.state_dict().items()}

    with weighting.only(torch.tensor([0, 2])):
        weighting(parts(STEPS[0][[0, 2]]), LOSSES[0][[0, 2]])

    after = weighting.state_dict()
    per_task = [key for key, value in after.items() if value.dim() > 0]
    assert per_task
    for key in per_task:
        assert torch.equal(after[key][1], before[key][1]), key
        assert not torch.equal(after[key], before[key]) or key in ("baseline", "seen"), key


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_state_goes_on_to_the_bit(name: str) -> None:
    """A fresh object has no buffers of the parameters' shapes yet; a used one has other values."""
    weighting, fresh, used = METHODS[name](3), METHODS[name](3), METHODS[name](3)
    run(weighting, STEPS[:2], LOSSES[:2])
    run(used, STEPS[1:], LOSSES[1:])
    state = copy.deepcopy(weighting.state_dict())

    updates = []
    for each in (weighting, fresh, used):
        if each is not weighting:
            each.load_state_dict(state)
        torch.manual_seed(0)
        updates.append(run(each, STEPS, LOSSES))

    assert all(torch.equal(a, b) for a, b in zip(updates[0], updates[1], strict=True))
    assert all(torch.equal(a, b) for a, b in zip(updates[0], updates[2], strict=True))


@pytest.mark.parametrize("name", STATEFUL)
def test_a_state_from_before_the_first_step_loads_into_a_used_object(name: str) -> None:
    used, fresh = METHODS[name](3), METHODS[name](3)
    run(used, STEPS, LOSSES)
    used.load_state_dict(METHODS[name](3).state_dict())
    assert all(
        torch.equal(a, b)
        for a, b in zip(run(used, STEPS, LOSSES), run(fresh, STEPS, LOSSES), strict=True)
    )


def test_other_shared_parameters_than_before_are_refused() -> None:
    weighting = MoCo(3)
    weighting([torch.ones(3, 2)], torch.ones(3))
    with pytest.raises(ValueError, match=r"gradients of 1 shared parameters of shapes \(2,\), but"):
        weighting([torch.ones(3, 5)], torch.ones(3))


def test_excess_waits_for_a_tasks_first_gradient() -> None:
    """A task that starts without a gradient has no measure to divide by until it has one."""
    weighting = ExcessMTL(2, step_size=1.0)
    jacobian = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    weighting([jacobian], torch.ones(2))
    assert weighting.seen.tolist() == [1.0, 0.0]
    weighting([torch.eye(2)], torch.ones(2))
    assert weighting.seen.tolist() == [1.0, 1.0]
    assert weighting.baseline.tolist() == pytest.approx([1.0, 1.0])


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: GradDrop(leak=1.5), "`leak` needs numbers from 0 to 1: got 1.5"),
    (lambda: TrimmedMean(-1), "`trim` needs to be 0 or more: got -1"),
    (lambda: MoCo(0), "`n_tasks` needs to be 1 or more: got 0"),
    (lambda: DBMTL(2, beta=1.0), "`beta` needs to be 0 or more and below 1: got 1.0"),
    (lambda: ExcessMTL(2, warm_up=0), "`warm_up` needs to be above 0: got 0"),
    (lambda: MetaBalance(2, target=2), "`target` needs to be from 0 to 1: got 2"),
    (
        lambda: TrimmedMean(1)([torch.ones(2, 3)], torch.ones(2)),
        "needs 3 or more tasks: got 2. Use a smaller `trim`",
    ),
    (
        lambda: DBMTL(2)([torch.ones(2, 3)], torch.tensor([1.0, 0.0])),
        "`DBMTL` takes logarithms, so it needs losses above 0: the loss of task 1 is 0",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_work_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
