import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, TrainerCallback, TrainingArguments, set_seed

from selfpaced_fixed import SelfPacedTrainer

VOCAB, LENGTH, CLASSES = 60, 12, 3


class NoisyTopics(Dataset):
    """Bags of topic words; a fraction of the labels is flipped."""

    def __init__(self, n, noise, seed):
        g = torch.Generator().manual_seed(seed)
        self.true = torch.randint(0, CLASSES, (n,), generator=g)
        topic = 3 + self.true[:, None] * 18 + torch.randint(0, 18, (n, LENGTH), generator=g)
        background = torch.randint(3, VOCAB, (n, LENGTH), generator=g)
        keep = torch.rand(n, LENGTH, generator=g) < 0.6
        self.ids = torch.where(keep, topic, background)
        self.ids[:, 0] = 1
        flip = torch.rand(n, generator=g) < noise
        wrong = (self.true + torch.randint(1, CLASSES, (n,), generator=g)) % CLASSES
        self.labels = torch.where(flip, wrong, self.true)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones(LENGTH, dtype=torch.long), "labels": self.labels[i]}


class PrintLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"step {state.global_step:3d} loss {float(logs['loss']):.4f}", flush=True)


def main():
    set_seed(4)
    config = BertConfig(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=LENGTH, num_labels=CLASSES, pad_token_id=0,
    )
    model = BertForSequenceClassification(config)
    train_set, test_set = NoisyTopics(256, noise=0.3, seed=1), NoisyTopics(64, noise=0.0, seed=2)

    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, max_steps=24, per_device_train_batch_size=32, learning_rate=2e-3, warmup_steps=2,
            logging_steps=4, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False,
        )
        trainer = SelfPacedTrainer(model=model, args=args, train_dataset=train_set, clean_steps=12, callbacks=[PrintLoss()])
        trainer.train()

    model.eval()
    with torch.no_grad():
        acc = (model(input_ids=test_set.ids).logits.argmax(-1) == test_set.true).float().mean().item()
    print("clean test accuracy %.3f" % acc)


if __name__ == "__main__":
    main()
