"""A character LSTM, trained by truncated backpropagation through time in a Lightning Trainer.

Reads 1.2 million characters, 32 at a time from each of 16 streams. The state goes on from segment
to segment and from batch to batch. Any text of a megabyte will do; some 40 seconds on one thread:

    python examples/char_lstm.py tinyshakespeare.txt
"""

import sys
import time
from pathlib import Path

import lightning as L
import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader

import gradwright as gw


class CharLSTM(L.LightningModule):
    def __init__(self, symbols, steps):
        super().__init__()
        self.automatic_optimization = False
        self.embed, self.head = nn.Embedding(symbols, 64), nn.Linear(256, symbols)
        self.lstm = nn.LSTM(64, 256, batch_first=True)
        self.bptt = gw.tbptt(self.run, length=32, dim=1, carry=True)
        self.steps, self.characters = steps, 0

    def run(self, segment, state):  # state: before the segment, None at first
        x, y = segment
        out, state = self.lstm(self.embed(x), state)
        return nn.functional.cross_entropy(self.head(out).mT, y), state

    def training_step(self, batch):
        optimizer, schedule = self.optimizers(), self.lr_schedulers()
        for segment in self.bptt(batch):
            optimizer.zero_grad()
            self.manual_backward(segment.loss)
            self.clip_gradients(optimizer, gradient_clip_val=1.0)
            optimizer.step()
            schedule.step()
            self.characters += segment.data[1].numel()

    def validation_step(self, batch):
        self.log("nats", self.run(batch, None)[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=4e-3)
        return [optimizer], [OneCycleLR(optimizer, 4e-3, self.steps, pct_start=0.1)]


def rows(codes, count):
    """Characters, and those that follow them: [row, time], each row one piece of the text."""
    length = (len(codes) - 1) // count
    return [codes[shift:][: count * length].view(count, length) for shift in (0, 1)]


def main(path, seed=0, characters=1_200_000):
    torch.manual_seed(seed)
    text = Path(path).read_text(encoding="utf-8")
    code = {symbol: number for number, symbol in enumerate(sorted(set(text)))}
    known, new = torch.tensor([code[symbol] for symbol in text]).split(int(0.9 * len(text)))
    streams = [row.repeat(1, 2)[:, : characters // 16] for row in rows(known, 16)]
    windows = list(zip(*(stream.split(768, dim=1) for stream in streams), strict=True))
    model = CharLSTM(len(code), steps=-(-characters // 16 // 32))
    trainer = L.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False)
    start = time.process_time()
    loaders = [DataLoader(data, batch_size=None) for data in (windows, [rows(new, 20)])]
    trainer.fit(model, *loaders)
    nats, seconds = trainer.callback_metrics["nats"].item(), time.process_time() - start
    print(f"{nats:.4f} nats per character of the last 10 % of the text")
    threads = torch.get_num_threads()
    print(f"{model.characters:,} characters read in {seconds:.0f} CPU seconds, threads: {threads}")
    return model, nats


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
