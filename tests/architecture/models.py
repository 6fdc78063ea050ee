"""A small model of each architecture, for inputs [batch, 3] and three tasks."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gradwright.architecture import (
    AITM,
    CGC,
    ESMM,
    LTB,
    MTAN,
    PLE,
    Architecture,
    AttentionStage,
    CrossStitch,
    DSelectK,
    ExtractionLevel,
    MMoE,
    SharedBottom,
)

TASKS = ("age", "job", "type")  # the last is also the name of a method of nn.Module
WIDTH = 4


def layer(n_in: int = 3, n_out: int = WIDTH) -> nn.Module:
    return nn.Sequential(nn.Linear(n_in, n_out), nn.Tanh())


def gate(n: int) -> nn.Module:
    return nn.Linear(3, n)


def heads() -> dict[str, nn.Module]:
    return {task: nn.Linear(WIDTH, n) for n, task in enumerate(TASKS, 1)}


def logit_heads() -> dict[str, nn.Module]:
    return {task: nn.Linear(WIDTH, 1) for task in TASKS}


def level(n_in: int, n_task: int) -> ExtractionLevel:
    return ExtractionLevel(
        lambda: layer(n_in), lambda n: nn.Linear(n_in, n), n_shared=2, n_task=n_task
    )


def attention_stage(n_in: int, n_before: int, n_out: int, n_onward: int) -> AttentionStage:
    return AttentionStage(
        first=layer(n_in, n_out),
        second=nn.Linear(n_out, n_out),
        attention=lambda: nn.Sequential(nn.Linear(n_out + n_before, n_out), nn.Sigmoid()),
        onward=layer(n_out, n_onward),
    )


def stages() -> list[Callable[[], nn.Module]]:
    return [layer, lambda: layer(WIDTH), lambda: layer(WIDTH)]


def unequal_cgc() -> Architecture:
    return CGC(layer, 2, {"age": 1, "job": 3, "type": 2}, gate, heads())


MODELS: dict[str, Callable[[], Architecture]] = {
    "SharedBottom": lambda: SharedBottom(layer(), heads()),
    "MMoE": lambda: MMoE(layer, 3, gate, heads()),
    "DSelectK": lambda: DSelectK(layer, 5, 2, heads()),
    "DSelectK-gate": lambda: DSelectK(layer, 4, 3, heads(), gate=gate, gamma=1.5),
    "CGC": unequal_cgc,
    "PLE": lambda: PLE([level(3, 2), level(WIDTH, 1), level(WIDTH, 2)], heads()),
    "PLE-1": lambda: PLE([level(3, 1)], heads()),
    "CrossStitch": lambda: CrossStitch(stages()[:2], heads()),
    "CrossStitch-channels": lambda: CrossStitch(stages()[:2], heads(), channels=[WIDTH, WIDTH]),
    "MTAN": lambda: MTAN([attention_stage(3, 0, 5, 2), attention_stage(5, 2, 3, WIDTH)], heads()),
    "LTB": lambda: LTB(stages(), heads()),
    "LTB-soft": lambda: LTB(stages(), heads(), n_nodes=2, hard=False),
    "ESMM": lambda: ESMM(layer(), logit_heads()),
    "AITM": lambda: AITM(layer(), lambda: layer(WIDTH), lambda: layer(WIDTH), WIDTH, logit_heads()),
}


def model(name: str, seed: int = 0) -> Architecture:
    """The model in float64, with gates and units that are not as they start."""
    torch.manual_seed(seed)
    made = MODELS[name]().double()
    for parameter in made.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return made


def batch(size: int = 5, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, 3, dtype=torch.float64, generator=generator)


def total(outputs: dict[str, Tensor]) -> Tensor:
    """A scalar that weighs every number of every output differently."""
    return torch.stack(
        [
            (output * torch.arange(1.0, output.numel() + 1).reshape(output.shape)).cos().sum()
            for output in outputs.values()
        ]
    ).sum()
