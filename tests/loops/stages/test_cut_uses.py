"""Programs that cut: pipelines, encode and decode, caches that train, several losses."""

import contextlib
import io
from collections.abc import Callable
from itertools import permutations

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from gradwright.engine import Features
from gradwright.loops.stages import Cut, cut
from gradwright.weighting import Constant, UPGrad
from tests.data import shared
from tests.loops.bits import assert_same_bits, gradients, mlp


@pytest.fixture(scope="module")
def editor() -> tuple[str, dict[str, object]]:
    """The program that trains an encoder and a decoder of model edits, and its modules."""
    pytest.importorskip("sklearn")
    folder = shared("cases/crash/mend-encode-decode-shared")
    parts: dict[str, object] = {"cut": cut}
    exec((folder / "mend.py").read_text(encoding="utf-8"), parts)
    return (folder / "fixed.py").read_text(encoding="utf-8"), parts


@pytest.mark.parametrize("pull", ["encoded.backward()", "pulled(encoded, encode)"])
def test_encode_and_decode_of_an_editor(editor: tuple[str, dict[str, object]], pull: str) -> None:
    """40 rounds of Adam with a cut between the two nets: the same parameters, bit by bit."""
    source, parts = editor
    whole = replaced(source, {"from mend import FactorNet, collect_factors, base_model\n": ""})
    changes = {
        "new = decode(*encode(*factors))": "encoded = cut(encode(*factors)); "
        "new = decode(*encoded.value)",
        "total.backward()": f"total.backward(); {pull}",
    }

    expected, found = run(whole, parts), run(replaced(whole, changes), {**parts, "pulled": pulled})

    assert found["said"] == expected["said"]
    assert len(str(found["said"]).splitlines()) == 10
    assert_same_bits(found["parameters"], expected["parameters"])


def test_three_stages_and_four_micro_batches_in_flight() -> None:
    torch.manual_seed(0)
    stages, batches = [mlp(4, 5), mlp(5, 6), mlp(6, 2)], torch.randn(4, 3, 4)
    for order in permutations(range(4)):
        losses = [stages[2](stages[1](stages[0](batch))).square().mean() for batch in batches]
        for position in order:
            losses[position].backward()
        expected = gradients(*stages)

        flights = [in_flight(stages, batch) for batch in batches]
        for position in order:
            for send in flights[position]:
                send()
        assert_same_bits(gradients(*stages), expected)

        flights = [in_flight(stages, batch) for batch in batches]
        for sends in zip(*flights, strict=True):  # one stage for all batches, then the stage before
            for position in order:
                sends[position]()
        assert_same_bits(gradients(*stages), expected)


def test_two_cuts_of_one_graph() -> None:
    torch.manual_seed(0)
    trunk, heads, batch = mlp(4, 5), [mlp(5, 2), mlp(5, 3)], torch.randn(3, 4)

    def losses(hidden: Tensor, other: Tensor) -> list[Tensor]:
        return [heads[0](hidden).square().mean(), heads[1](other).square().mean()]

    features = trunk(batch)
    sum(losses(features, features.sin())).backward()  # type: ignore[union-attr]
    expected = gradients(trunk, *heads)

    features = trunk(batch)
    first, second = cut(features), cut(features.sin())
    for loss in losses(first.value, second.value):
        loss.backward()
    second.backward(retain_graph=True)  # the trunk lies behind both
    first.backward()

    for mine, other in zip(gradients(trunk, *heads), expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)


def test_a_cache_that_trains() -> None:
    """All rows are embedded once, batches take slices, and one pass brings their gradients back."""
    torch.manual_seed(0)
    embed, model, rows = mlp(6, 8, 5), mlp(5, 2), torch.randn(40, 6)
    order = torch.randperm(40).split(7)
    features = embed(rows)
    sum(model(features[batch]).square().sum() for batch in order).backward()
    expected = gradients(embed, model)

    passes = counted(embed)
    cache = cut(embed(rows))
    sum(model(cache.value[batch]).square().sum() for batch in order).backward()
    cache.backward()
    assert_same_bits(gradients(embed, model), expected)

    cache = cut(embed(rows))
    for batch in order:
        model(cache.value[batch]).square().sum().backward()
    cache.backward()
    assert_same_bits(gradients(embed), expected[: len(list(embed.parameters()))])
    assert len(passes) == 2


def test_the_cache_of_a_table_of_parameters() -> None:
    table = nn.Parameter(torch.arange(6.0).view(3, 2))
    cache = cut(table)
    for row in (0, 2):
        cache.value[row].square().sum().backward()
    cache.backward()

    assert table.grad is not None
    assert table.grad.tolist() == [[0, 2], [0, 0], [8, 10]]


@pytest.mark.parametrize("weighting", [None, Constant([0.5, 2.0])], ids=["sum", "fixed weights"])
def test_several_losses_weighed_at_the_cut(weighting: Constant | None) -> None:
    trunk, heads, batch = two_tasks()
    gw.backward(task_losses(heads, trunk(batch)), weighting=weighting)
    expected = gradients(trunk, *heads)

    encoded = cut(trunk(batch))
    gw.backward(task_losses(heads, encoded.value), weighting=weighting)
    encoded.backward()

    assert_same_bits(gradients(trunk, *heads), expected)


def test_gradients_weighed_at_the_cut() -> None:
    """The tasks meet at the cut: the weights are those of `Features`, at the cost of the heads."""
    trunk, heads, batch = two_tasks()
    features = trunk(batch)
    route = Features([features])
    one = gw.backward(task_losses(heads, features), weighting=UPGrad(), route=route)
    expected = gradients(trunk, *heads)

    encoded = cut(trunk(batch))
    two = gw.backward(task_losses(heads, encoded.value), weighting=UPGrad())
    encoded.backward()

    assert one.weights is not None and two.weights is not None
    torch.testing.assert_close(two.weights, one.weights, rtol=1e-12, atol=0)
    for mine, other in zip(gradients(trunk, *heads), expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-15)


def in_flight(stages: list[nn.Sequential], batch: Tensor) -> list[Callable[[], None]]:
    """The forward passes of one micro-batch; what sends its gradient back, last stage first."""
    first = cut(stages[0](batch))
    second = cut(stages[1](first.value))
    return [stages[2](second.value).square().mean().backward, second.backward, first.backward]


def pulled(encoded: Cut, encode: nn.Module) -> None:
    """As MEND does it: `grad` for the encoder, written by hand."""
    parameters = list(encode.parameters())
    for parameter, gradient in zip(parameters, encoded.grad(parameters), strict=True):
        parameter.grad = gradient


def replaced(source: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def run(source: str, names: dict[str, object]) -> dict:
    """Run the editor's program; what it printed, and the parameters of both nets."""
    call, names = "\n\n\ntrain_editor()", dict(names)
    returned = "\n    return encode, decode\n\n\nencode, decode = train_editor()"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(replaced(source, {call: returned}), names)
    nets = nn.ModuleList([names["encode"], names["decode"]])  # type: ignore[list-item]
    return {"said": said.getvalue(), "parameters": list(nets.parameters())}


def counted(module: nn.Module) -> list[nn.Module]:
    """A list that grows with each forward pass."""
    calls: list[nn.Module] = []
    module.register_forward_hook(lambda called, *_: calls.append(called))
    return calls


def two_tasks() -> tuple[nn.Sequential, nn.ModuleList, Tensor]:
    torch.manual_seed(0)
    heads = nn.ModuleList([mlp(5, 2), mlp(5, 3)])
    return mlp(4, 5).double(), heads.double(), torch.randn(6, 4).double()


def task_losses(heads: nn.ModuleList, features: Tensor) -> list[Tensor]:
    return [(head(features) - position).square().mean() for position, head in enumerate(heads)]
