"""A window inside Lightning's manual optimization."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from gradwright.loops import Window
from tests.loops.accumulation.processes import in_two_processes
from tests.loops.accumulation.small import TOKENS, Batch, batches, model, summed, whole

pl = pytest.importorskip("lightning.pytorch")
pytestmark = pytest.mark.filterwarnings("ignore")
SIZE, CLIP, EPOCHS = 4, 0.1, 3


class Module(pl.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.net = model(dtype)
        self.window = Window(self)
        self.counts: list[Any] = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.net.parameters(), lr=0.5, momentum=0.9)

    def training_step(self, batch: Batch, _: int) -> None:
        optimizer: Any = self.optimizers()
        loss = summed(self.net, batch)
        self.window.backward(loss, len(batch[1]), backward=self.manual_backward)
        if len(self.window) == SIZE or self.trainer.is_last_batch:
            self.counts.append(self.window.close().count)
            self.clip_gradients(optimizer, gradient_clip_val=CLIP)
            optimizer.step()
            optimizer.zero_grad()


def fit(module: Module, **options: Any) -> None:
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    trainer.fit(module, DataLoader(batches(), batch_size=None))  # type: ignore[arg-type]


def trained_on_whole_windows(dtype: torch.dtype) -> list[Tensor]:
    """The same training, each window one batch."""
    net, parts = model(dtype), batches()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    for _ in range(EPOCHS):
        for first in range(0, len(parts), SIZE):
            one = whole(parts[first : first + SIZE])
            (summed(net, one) / len(one[1])).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad()
    return list(net.parameters())


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=str
)
def test_manual_optimization(dtype: torch.dtype, bound: float) -> None:
    module = Module(dtype)
    fit(module)

    assert module.counts == [sum(TOKENS[:SIZE]), sum(TOKENS[SIZE:])] * EPOCHS
    for found, expected in zip(
        module.net.parameters(), trained_on_whole_windows(dtype), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=bound, atol=bound)


def test_it_trains() -> None:
    module = Module()
    fit(module)

    for found, start in zip(module.net.parameters(), model().parameters(), strict=True):
        assert torch.equal(found, start) != found.requires_grad


@pytest.mark.slow
def test_two_processes(tmp_path: Path) -> None:
    """`Window(self)`: the DDP that Lightning puts around the module is found."""
    from tests.loops.accumulation import ranks_lightning

    for facts in in_two_processes(ranks_lightning.lightning, tmp_path):
        assert facts["differences"] and max(facts["differences"]) <= 1e-6
        assert facts["reductions"] == {"False": 5, "True": 2}  # without and with deferral
