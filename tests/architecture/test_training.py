"""All architectures train: with the engine, from a checkpoint, as a copy."""

import copy
import io
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

import gradwright as gw
from gradwright.architecture import AITM, LTB, Architecture, DSelectK, SharedBottom
from gradwright.weighting import UPGrad
from tests.architecture.models import MODELS, WIDTH, batch, layer, model


def losses(made: Architecture, x: Tensor) -> dict[str, Tensor]:
    """Losses as a user writes them, the method's own terms included."""
    outputs = made(x)
    found = {task: (y - 1).square().mean() for task, y in outputs.items()}
    terms: dict[str, Tensor] = {}
    if isinstance(made, DSelectK):
        terms = made.regularization(x)
    if isinstance(made, AITM):
        terms = made.regularization(outputs)
    return {task: loss + terms.get(task, 0) for task, loss in found.items()}


@pytest.mark.parametrize("name", MODELS)
def test_three_steps_with_the_engine(name: str) -> None:
    made, x = model(name), batch(8)
    before = [p.detach().clone() for p in made.parameters()]
    optimizer = torch.optim.SGD(made.parameters(), lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        step = gw.backward(losses(made, x), weighting=UPGrad())
        assert all(loss.isfinite() for loss in step.losses)
        for path, parameter in made.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), path
        optimizer.step()

    moved = [not torch.equal(p, q) for p, q in zip(made.parameters(), before, strict=True)]
    assert all(moved) or isinstance(made, LTB)  # its draws leave some nodes out


@pytest.mark.parametrize("name", MODELS)
def test_the_engine_finds_the_shared_parameters_by_itself(name: str) -> None:
    made, x = model(name), batch(8)
    gradients = []
    for shared in (None, made.shared_parameters()):
        made.zero_grad()
        torch.manual_seed(0)
        outputs = {task: y.square().mean() for task, y in made(x).items()}
        gw.backward(outputs, weighting=UPGrad(), shared=shared)
        gradients.append([p.grad for p in made.parameters()])

    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("name", MODELS)
def test_a_step_in_mixed_precision(name: str) -> None:
    made, x = model(name).float(), batch(8).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = losses(made, x)
    torch.stack(list(found.values())).sum().backward()

    assert all(p.grad is not None and p.grad.isfinite().all() for p in made.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_the_state_round_trips(name: str) -> None:
    made, other, x = model(name, seed=0).eval(), model(name, seed=5).eval(), batch()
    assert not torch.allclose(made(x)["age"], other(x)["age"])

    file = io.BytesIO()
    torch.save(made.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))

    torch.testing.assert_close(made(x), other(x), rtol=0, atol=0)


@pytest.mark.parametrize("name", MODELS)
def test_models_copy_after_a_step(name: str) -> None:
    made, x = model(name), batch()
    gw.backward(losses(made, x), weighting=UPGrad())
    twin = copy.deepcopy(made).eval()

    torch.testing.assert_close(twin(x), made.eval()(x), rtol=0, atol=0)


def test_models_of_named_callables_pickle() -> None:
    made, x = model("MMoE"), batch()

    torch.testing.assert_close(pickle.loads(pickle.dumps(made))(x), made(x))


def test_task_names_stand_in_the_state() -> None:
    assert {"heads.age.weight", "heads.type_.bias", "gates.job.weight"} <= set(
        model("MMoE").state_dict()
    )


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_found_by_their_names(name: str) -> None:
    """`functional_call` and `get_submodule` go by attributes, which "type" must not hide."""
    made, x = model(name).eval(), batch()
    doubled = {path: 2 * p for path, p in made.named_parameters()}
    found = functional_call(made, doubled, (x,))
    made.load_state_dict(doubled, strict=False)

    torch.testing.assert_close(found, made(x))


def test_tasks_may_have_any_names() -> None:
    names = ["a.b", "a_b", "train", "heads", "training", "_modules", "0", "ünï cöde"]
    made = SharedBottom(layer(), {name: nn.Linear(WIDTH, 1) for name in names})

    assert made.tasks == tuple(names)
    assert list(made(batch().float())) == names
    assert len(made.state_dict()) == 2 + 2 * len(names)
    assert all(len(made.task_parameters(name)) == 2 for name in names)
