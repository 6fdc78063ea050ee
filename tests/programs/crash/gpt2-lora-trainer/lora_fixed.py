import math

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D


class LoRAConv1D(nn.Module):
    def __init__(self, base: Conv1D, r: int, alpha: int, dropout: float):
        super().__init__()
        n_in, n_out = base.weight.shape
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(n_in, r))
        self.lora_B = nn.Parameter(torch.zeros(r, n_out))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / r
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.base(x) + self.scaling * (self.dropout(x) @ self.lora_A @ self.lora_B)


def inject_lora(model, targets=("c_attn",), r=4, alpha=8, dropout=0.05):
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if name in targets and isinstance(child, Conv1D):
                setattr(parent, name, LoRAConv1D(child, r, alpha, dropout))
    return model


def mark_only_lora_as_trainable(model):
    for name, p in model.named_parameters():
        p.requires_grad = "lora_" in name


def print_trainable(model):
    n = sum(p.numel() for p in model.parameters())
    lora = sum(p.numel() for k, p in model.named_parameters() if ".lora_" in k)
    print(f"lora params: {lora} || all params: {n} || {100 * lora / n:.2f}%")
