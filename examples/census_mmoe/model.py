"""The Multi-gate Mixture-of-Experts of Ma et al., KDD 2018: "Modeling Task Relationships in
Multi-task Learning with Multi-gate Mixture-of-Experts", https://doi.org/10.1145/3219819.3220007.
"""

import torch
from torch import Tensor, nn


class MMoE(nn.Module):
    """Experts that all tasks share; each task mixes them by a gate and has a tower of its own.

    For task k: y_k = h_k(Σ_i g_k(x)_i f_i(x)), where g_k(x) = softmax(W_k x).
    """

    def __init__(self, inputs: int, tasks: int, experts: int = 6, units: int = 32) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(inputs, units), nn.ReLU()) for _ in range(experts)
        )
        self.gates = nn.ModuleList(nn.Linear(inputs, experts, bias=False) for _ in range(tasks))
        self.towers = nn.ModuleList(
            nn.Sequential(nn.Linear(units, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(tasks)
        )

    def forward(self, features: Tensor, numbers: Tensor) -> Tensor:
        """The logits [row, task] of `features` [row, column, unit] and `numbers` [row, column]."""
        x = torch.cat([features.flatten(1), numbers], dim=1)  # [row, input]
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)  # [row, expert, unit]
        logits = []
        for gate, tower in zip(self.gates, self.towers, strict=True):
            shares = gate(x).softmax(dim=1)  # [row, expert]
            mixture = (shares.unsqueeze(2) * outputs).sum(dim=1)  # [row, unit]
            logits.append(tower(mixture))
        return torch.cat(logits, dim=1)
