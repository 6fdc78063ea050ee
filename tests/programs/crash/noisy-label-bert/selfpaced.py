import torch
import torch.nn.functional as F
from transformers import Trainer


class SelfPacedTrainer(Trainer):
    """Down-weights samples whose loss looks like a wrong label, after a plain warm-up."""

    def __init__(self, *args, clean_steps=10, temperature=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.clean_steps = clean_steps
        self.temperature = temperature

    def sample_weights(self, per_sample):
        w = torch.softmax(-per_sample.detach() / self.temperature, dim=0)
        return w * len(per_sample)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        per_sample = F.cross_entropy(outputs.logits, labels, reduction="none")
        if self.state.global_step < self.clean_steps:
            loss = per_sample.mean()
        else:
            loss = self.sample_weights(per_sample) * per_sample
        return (loss, outputs) if return_outputs else loss
