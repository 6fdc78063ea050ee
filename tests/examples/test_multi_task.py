"""Multi-task training as whole programs: they learn, go on where they stopped, and draw curves."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from tests.data import shared

for package in ("lightning", "sklearn", "tensorboard", "torchmetrics", "tqdm"):
    pytest.importorskip(package)
pytestmark = [
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty"),
]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = ("multi_task", "multi_task_lightning")
STEPS = 22  # in an epoch: 1400 images, 64 at a time
Points = dict[str, list[tuple[int, float]]]


@pytest.fixture(scope="module")
def example() -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module of the example as its programs import it."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(EXAMPLES))
        for name in (*PROGRAMS, "multi_task_problem"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def problem(example):
    return example("multi_task_problem").digits()


@pytest.mark.parametrize("program", PROGRAMS)
def test_two_epochs_and_two_more_are_four(example, problem, program, tmp_path) -> None:
    """Parameters, the optimizer's and the weighting's state, and curves, all bit by bit."""
    train = example(program).train
    whole, parts = tmp_path / "whole", tmp_path / "parts"

    expected = train(problem, whole, epochs=4)
    train(problem, parts, epochs=2)
    found = train(problem, parts, epochs=4, resume=True)

    assert_same(states(found), states(expected))
    assert_same(optimizer_state(parts), optimizer_state(whole))
    assert points_of(parts) == points_of(whole)
    assert int(states(found)["weighting.kept.steps"]) == 4 * STEPS


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_weighting_is_a_part_of_the_checkpoint(example, problem, program, tmp_path) -> None:
    """Without its state training goes on differently, from the first step on."""
    train = example(program).train
    train(problem, tmp_path, epochs=1)
    expected = states(train(problem, tmp_path / "whole", epochs=2))
    forget_weights(tmp_path)

    found = states(train(problem, tmp_path, epochs=2, resume=True))

    assert found.keys() == expected.keys()
    assert any(not torch.equal(found[name], expected[name]) for name in found if "model" in name)


def test_lightning_trains_as_the_plain_loop_does(example, problem, tmp_path) -> None:
    plain = example("multi_task").train(problem, tmp_path / "plain", epochs=2)
    lightning = example("multi_task_lightning").train(problem, tmp_path / "lightning", epochs=2)

    assert_same(states(lightning), states(plain))
    curves = [points_of(tmp_path / name) for name in ("plain", "lightning")]
    for name in ("epoch", "score"):  # of Lightning, and for its choice of the best
        del curves[1][name]
    assert curves[0] == curves[1]


@pytest.mark.parametrize("program", PROGRAMS)
def test_curves_of_losses_weights_and_cosines(example, problem, program, tmp_path) -> None:
    example(program).train(problem, tmp_path, epochs=2)

    points = points_of(tmp_path)
    every, asked = [*range(2 * STEPS)], [*range(0, 2 * STEPS, 3)]
    for task in ("digit", "ink"):
        assert steps_of(points[f"loss/{task}"]) == every
        assert steps_of(points[f"weight/{task}"]) == every
        assert values_of(points[f"loss/{task}"])[-1] < values_of(points[f"loss/{task}"])[0]
        weights = values_of(points[f"weight/{task}"])
        assert weights[1::3] == weights[: len(weights) - 1 : 3]  # kept since the step before
        assert len(set(weights)) == len(asked)
        assert steps_of(points[f"validation/{task}"]) == [STEPS - 1, 2 * STEPS - 1]
    assert steps_of(points["cosine/digit, ink"]) == asked  # Nash-MTL looks in one of three steps
    assert all(-1 <= value <= 1 for value in values_of(points["cosine/digit, ink"]))


def test_both_tasks_are_learned_and_the_best_is_kept(example, problem, tmp_path) -> None:
    """Above 90 % of digits, and of the variance of the ink."""
    multi_task = example("multi_task")
    multi_task.train(problem, tmp_path, epochs=12)

    points = points_of(tmp_path)
    digit, ink = (values_of(points[f"validation/{task}"]) for task in ("digit", "ink"))
    scores = [(one + other) / 2 for one, other in zip(digit, ink, strict=True)]
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    assert min(digit[-1], ink[-1]) > 0.9
    assert best["best"] == pytest.approx(max(scores), rel=1e-6)
    assert best["epochs"] == 1 + scores.index(max(scores))

    model = multi_task.make_model(problem)
    model.load_state_dict(best["model"])
    found = multi_task.validate(model, problem)
    assert sum(found.values()) / 2 == pytest.approx(max(scores), rel=1e-6)


def test_only_a_better_score_replaces_the_best(example, tmp_path) -> None:
    multi_task = example("multi_task")

    assert multi_task.save(tmp_path, {}, epochs=1, score=0.5, best=float("-inf")) == 0.5
    assert multi_task.save(tmp_path, {}, epochs=2, score=0.4, best=0.5) == 0.5

    assert torch.load(tmp_path / "best.pt", weights_only=True)["epochs"] == 1
    assert multi_task.load(tmp_path, {}) == (2, 0.5)


def test_lightning_keeps_the_best(example, problem, tmp_path) -> None:
    module = example("multi_task_lightning").train(problem, tmp_path, epochs=3)

    callback = module.trainer.checkpoint_callback
    scores = values_of(points_of(tmp_path)["score"])
    assert Path(callback.best_model_path) == tmp_path / "best.ckpt"
    assert callback.best_model_score.item() == pytest.approx(max(scores), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_on_census_income(program, tmp_path) -> None:
    """From the command line, and on from its checkpoint. AUC 0.5 is guessing."""
    folder = shared("data/census-income.test.gz").parents[1]
    command = [sys.executable, str(EXAMPLES / f"{program}.py"), str(tmp_path / "run")]
    for more in (["--epochs", "1"], ["--epochs", "2", "--resume"]):
        done = subprocess.run(
            [*command, "--census", "--rows", "20000", *more],
            env={
                **os.environ,
                "PYTHONPATH": str(EXAMPLES.parent / "src"),
                "PYTHONUTF8": "1",
                "GRADWRIGHT_SHARED": str(folder),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )
        assert done.returncode == 0, done.stderr

    points = points_of(tmp_path / "run")
    for task in ("income above 50K", "never married"):
        measured = points[f"validation/{task}"]
        assert len(measured) == 2
        assert values_of(measured)[-1] > 0.8


def states(trained: nn.Module | tuple[nn.Module, nn.Module]) -> dict[str, Tensor]:
    """The state of model and weighting that either program returns."""
    if not isinstance(trained, nn.Module):
        model, weighting = trained
        trained = nn.ModuleDict({"model": model, "weighting": weighting})
    return dict(trained.state_dict())


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def optimizer_state(folder: Path) -> dict[str, Tensor]:
    """Adam's moments and counts in the last checkpoint."""
    plain = folder / "last.pt"
    if plain.exists():
        saved = torch.load(plain, weights_only=True)["optimizer"]
    else:
        (saved,) = torch.load(folder / "last.ckpt", weights_only=False)["optimizer_states"]
    return {
        f"{parameter} {name}": value
        for parameter, values in saved["state"].items()
        for name, value in values.items()
    }


def forget_weights(folder: Path) -> None:
    """Put zeros in place of all that the weighting has saved."""
    (file,) = [folder / name for name in ("last.pt", "last.ckpt") if (folder / name).exists()]
    saved = torch.load(file, weights_only=False)
    states = saved.get("weighting") or {
        name: value for name, value in saved["state_dict"].items() if "weighting" in name
    }
    assert len(states) == 3
    for value in states.values():
        value.zero_()
    torch.save(saved, file)


def points_of(folder: Path) -> Points:
    """The curves in a folder, as (step, value), read back as TensorBoard reads them."""
    reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    points: Points = {}
    for file in folder.glob("events.*"):  # one for each time that the program ran
        events = reader.EventAccumulator(str(file), size_guidance={"scalars": 0}).Reload()
        for name in events.Tags()["scalars"]:
            points.setdefault(name, []).extend((e.step, e.value) for e in events.Scalars(name))
    return {name: sorted(curve) for name, curve in points.items()}


def steps_of(points: list[tuple[int, float]]) -> list[int]:
    return [step for step, _ in points]


def values_of(points: list[tuple[int, float]]) -> list[float]:
    return [value for _, value in points]
