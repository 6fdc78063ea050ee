"""Models of Transformers with several heads: each route is as exact as one `grad` per loss."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from gradwright.engine.routes.choice import RouteName
from gradwright.weighting import UPGrad

transformers = pytest.importorskip("transformers")
N_TASKS = 3


def gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=2, pad_token_id=0
    )
    return transformers.GPT2Model(config)


def bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
    )
    return transformers.BertModel(config, add_pooling_layer=False)


def llama() -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
    )
    return transformers.LlamaModel(config)


def t5() -> nn.Module:
    config = transformers.T5Config(
        vocab_size=40, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2
    )
    return transformers.T5EncoderModel(config)


MODELS = [(gpt2, 1e-9), (bert, 1e-9), (llama, 1e-5), (t5, 1e-5)]
"""And how near they come: the norms of Llama and T5 are computed in float32."""


class Tasks(nn.Module):
    """One body and a head per task; the last one scores words, with the embedding where tied."""

    def __init__(self, body: nn.Module, tied: bool) -> None:
        super().__init__()
        self.body = body
        self.heads = nn.ModuleList(nn.Linear(16, 4) for _ in range(N_TASKS - 1))
        self.words = None if tied else nn.Parameter(torch.randn(40, 16))

    def losses(self, tokens: Tensor) -> list[Tensor]:
        states = self.body(input_ids=tokens).last_hidden_state
        targets = tokens[:, 0] % 4
        pooled = states.mean(dim=1)
        losses = [nn.functional.cross_entropy(head(pooled), targets) for head in self.heads]
        words = self.words
        if words is None:
            words = self.body.get_input_embeddings().weight  # type: ignore[operator]
        scores = (states @ words.T).flatten(0, 1)
        return [*losses, nn.functional.cross_entropy(scores, tokens.flatten())]


def separately(losses: Sequence[Tensor], parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Rows [task][parameter] of the Jacobian, by one `grad` per loss."""
    rows = []
    for loss in losses:
        found = torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True)
        rows.append(list(found))
    return rows


def checkpoint(body: Any) -> None:
    """Older versions have another name for it."""
    enable = getattr(body, "activation_checkpointing_enable", body.gradient_checkpointing_enable)
    enable({"use_reentrant": False})


@pytest.mark.parametrize("checkpointed", [False, True], ids=["plain", "checkpointed"])
@pytest.mark.parametrize(("route", "tied"), [("rows", True), ("lean", False), ("auto", True)])
@pytest.mark.parametrize(("make", "near"), MODELS)
def test_is_exact(
    make: Callable[[], nn.Module], near: float, route: RouteName, tied: bool, checkpointed: bool
) -> None:
    torch.manual_seed(0)
    model = Tasks(make(), tied).double().train()
    if checkpointed:
        checkpoint(model.body)
    losses = model.losses(torch.randint(1, 40, (3, 7)))
    parameters = list(model.parameters())
    rows = separately(losses, parameters)

    step = gw.backward(losses, weighting=UPGrad(), heads="unweighted", route=route)

    shared = [sum(bool(row[i].any()) for row in rows) > 1 for i in range(len(parameters))]
    gramian = torch.zeros(N_TASKS, N_TASKS, dtype=torch.float64)
    for i in range(len(parameters)):
        if shared[i]:
            matrix = torch.stack([row[i].flatten() for row in rows])
            gramian += matrix @ matrix.T
    assert step.gramian is not None and step.weights is not None
    torch.testing.assert_close(step.gramian, gramian, rtol=near, atol=near / 10)
    for i, parameter in enumerate(parameters):
        factors = step.weights.tolist() if shared[i] else [1.0] * N_TASKS
        expected = sum(factor * row[i] for factor, row in zip(factors, rows, strict=True))
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, expected, rtol=near, atol=near / 10)


def test_a_tied_embedding_is_kept_from_a_route_that_is_not_exact() -> None:
    losses = Tasks(bert(), tied=True).losses(torch.randint(1, 40, (3, 7)))
    with pytest.raises(gw.engine.LossError, match="would not be exact"):
        gw.backward(losses, weighting=UPGrad(), route="lean")

    assert gw.backward(losses, weighting=UPGrad(), memory=0).route.name == "rows"
