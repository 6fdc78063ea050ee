import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed
from transformers.utils import logging

from lora_fixed import inject_lora, mark_only_lora_as_trainable, print_trainable

logging.set_verbosity_error()
set_seed(0)


class AdditionDataset(Dataset):
    """'12+7=19' style strings, character level."""

    chars = "0123456789+=|"

    def __init__(self, n, seed, length=10):
        g = torch.Generator().manual_seed(seed)
        ab = torch.randint(0, 50, (n, 2), generator=g).tolist()
        self.rows = []
        for a, b in ab:
            s = f"{a}+{b}={a + b}".ljust(length, "|")
            self.rows.append(torch.tensor([self.chars.index(c) for c in s]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids = self.rows[i]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


def build_model():
    config = GPT2Config(
        vocab_size=len(AdditionDataset.chars), n_positions=16, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=12, eos_token_id=12, use_cache=False,
    )
    return GPT2LMHeadModel(config)


def main():
    # stage 1: short full training of the tiny base model
    base = build_model()
    data = AdditionDataset(256, seed=1)
    opt = torch.optim.AdamW(base.parameters(), lr=3e-3)
    for step in range(20):
        rows = [data[(step * 32 + k) % len(data)] for k in range(32)]
        batch = {k: torch.stack([r[k] for r in rows]) for k in rows[0]}
        loss = base(**batch).loss
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 10 == 0:
            print(f"pretrain step {step} loss {loss.item():.3f}")

    # stage 2: LoRA adaptation with the Trainer
    model = inject_lora(base)
    mark_only_lora_as_trainable(model)
    print_trainable(model)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, max_steps=12, per_device_train_batch_size=16, learning_rate=1e-2,
            logging_steps=4, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, seed=0,
        )
        trainer = Trainer(model=model, args=args, train_dataset=AdditionDataset(128, seed=2))
        result = trainer.train()
    print("lora train loss %.3f" % result.training_loss)


if __name__ == "__main__":
    main()
