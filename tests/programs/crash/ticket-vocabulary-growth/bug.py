import tempfile, warnings
import torch
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback
from transformers import Trainer, TrainerCallback, TrainingArguments
from vocabulary import grow

warnings.filterwarnings("ignore")
torch.manual_seed(16)


class Tickets(torch.utils.data.Dataset):
    def __init__(self, n=96, length=10, words=70):
        self.ids = torch.randint(words, (n, length))
        self.labels = (self.ids >= 50).sum(1).gt(2).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return dict(input_ids=self.ids[i], labels=self.labels[i])


class Report(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            print(f"step {state.global_step} loss {float(logs['loss']):.4f}")


class WordTrainer(Trainer):
    """Trains the word vectors of a model that is otherwise fixed."""

    def create_optimizer(self, *args, **kwargs):
        words = self.model.get_input_embeddings()
        self.optimizer = torch.optim.AdamW(words.parameters(), lr=self.args.learning_rate)
        return self.optimizer


config = BertConfig(vocab_size=50, hidden_size=24, num_hidden_layers=1, num_attention_heads=2,
                    intermediate_size=32, max_position_embeddings=16, num_labels=2)
model = BertForSequenceClassification(config)
for name, p in model.named_parameters():
    p.requires_grad = "word_embeddings" in name
grow(model, 20)
options = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=16, learning_rate=1e-2,
    logging_steps=3, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
    dataloader_pin_memory=False)
trainer = WordTrainer(model=model, args=options, train_dataset=Tickets(), callbacks=[Report()])
trainer.remove_callback(PrinterCallback)
trainer.train()
