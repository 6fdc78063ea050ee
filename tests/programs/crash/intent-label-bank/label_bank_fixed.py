from transformers import TrainerCallback


class LabelBank(TrainerCallback):
    """Keeps one embedding per intent, made from its description."""

    def __init__(self, descriptions):
        self.descriptions = descriptions
        self.table = None

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        self.table = model(self.descriptions)
