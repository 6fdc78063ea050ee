import tempfile
import warnings

import torch
from torch import nn
from transformers import BertConfig, BertModel, Trainer, TrainingArguments, set_seed
from transformers.utils import logging

from label_bank_fixed import LabelBank

warnings.filterwarnings("ignore")
logging.set_verbosity_error()
logging.disable_progress_bar()
set_seed(3)


class Bottleneck(nn.Module):
    def __init__(self, vocab=40):
        super().__init__()
        shape = BertConfig(vocab_size=vocab, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                           intermediate_size=32, max_position_embeddings=16)
        self.bert = BertModel(shape, add_pooling_layer=False)
        self.project = nn.Linear(16, 12)

    def forward(self, input_ids, labels=None):
        h = self.bert(input_ids=input_ids).last_hidden_state.mean(dim=1)
        return nn.functional.normalize(self.project(h), dim=-1)


class IntentTrainer(Trainer):
    def __init__(self, *args, bank=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.bank = bank
        self.add_callback(bank)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        z = model(inputs["input_ids"])
        scores = z @ self.bank.table.T / 0.1
        loss = nn.functional.cross_entropy(scores, inputs["labels"])
        return (loss, scores) if return_outputs else loss

    def log(self, logs, *args, **kwargs):
        if "loss" in logs:
            print(f"step {self.state.global_step} loss {float(logs['loss']):.4f}")


intents = torch.randint(4, 40, (6, 5))
data = []
for i in range(96):
    words = torch.randint(4, 40, (9,))
    words[torch.randperm(9)[:5]] = intents[i % 6]
    data.append({"input_ids": words, "labels": torch.tensor(i % 6)})
args = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=16, num_train_epochs=3, learning_rate=3e-3,
                         logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True)
IntentTrainer(Bottleneck(), args, train_dataset=data, bank=LabelBank(intents)).train()
