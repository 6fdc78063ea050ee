"""Segments inside a Lightning Trainer, in manual optimization: the same as the loop by hand."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import gradwright as gw
from tests.loops.segments.models import Batch, Net, batch, net
from tests.reference.bptt import cuts

MODES: list[dict] = [{}, {"step": "window"}, {"exact": True}]


class Sequences(Dataset):
    """Two batches, each there as a whole."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Batch:
        return cuts(batch(100), 50)[index]  # type: ignore[return-value]


class Trained(lightning.LightningModule):
    """A user's module: `zero_grad`, `manual_backward` and `step` stay in sight."""

    def __init__(self, how: dict) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.net = net()
        self.how = how
        self.bptt: Any = gw.tbptt(self.net, 20, carry=True, **how)

    def training_step(self, batch: Batch, _: int) -> None:
        optimizer: Any = self.optimizers()
        optimizer.zero_grad()
        for segment in self.bptt(batch):
            self.manual_backward(segment.loss)
            if not self.how:
                optimizer.step()
                optimizer.zero_grad()
        if self.how:
            optimizer.step()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


@pytest.mark.filterwarnings("ignore")  # Lightning's own, about workers and loggers
@pytest.mark.parametrize("how", MODES, ids=str)
def test_manual_optimization_is_the_loop_by_hand(how: dict, tmp_path: Path) -> None:
    module = Trained(how)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, DataLoader(Sequences(), batch_size=None))

    twin = by_hand(how)
    pairs = zip(module.net.parameters(), twin.parameters(), strict=True)
    assert all((one - other).abs().max() <= 1e-12 for one, other in pairs)
    assert trainer.global_step == (6 if not how else 2)


def by_hand(how: dict) -> Net:
    """A plain loop; the window's gradient is that of one graph, cut where `how` cuts it."""
    model, state = net(), None
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for data in Sequences():  # type: ignore[attr-defined]
        total: Any = 0
        for segment, is_last in with_last(cuts(data, 20)):
            loss, state = model(segment, state)
            if is_last or not how.get("exact"):
                state = tuple(part.detach() for part in state)
            total = total + loss * (segment[0].shape[1] / 50 if how else 1)
            if is_last or not how:
                optimizer.zero_grad()
                total.backward()
                optimizer.step()
                total = 0
    return model


def with_last(items: list[Any]) -> Iterator[tuple[Any, bool]]:
    return ((item, index == len(items) - 1) for index, item in enumerate(items))


def test_a_copied_module_trains_itself() -> None:
    module = Trained({"exact": True})

    copied = copy.deepcopy(module)
    for segment in copied.bptt(batch()):
        segment.loss.backward()

    assert all(parameter.grad is not None for parameter in copied.net.parameters())
    assert all(parameter.grad is None for parameter in module.net.parameters())


@pytest.mark.parametrize("how", MODES, ids=str)
def test_segments_can_be_sent_to_another_process(how: dict) -> None:
    bptt = pickle.loads(pickle.dumps(gw.tbptt(net(), 20, **how)))

    assert [segment.length for segment in with_backward(bptt(batch(50)))].count(20) == 2


def with_backward(segments: Any) -> Iterator[Any]:
    for segment in segments:
        segment.loss.backward()
        yield segment
