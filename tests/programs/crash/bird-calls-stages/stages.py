import torch

STAGES = ["train", "check", "train", "check", "tune", "check"]


def phase_grad(stage):
    return torch.set_grad_enabled(stage == "train")
