"""Two losses from one trunk: read both digits of an image in which two digits overlap.

Trains the same model with equal weights, with `UW`, which learns weights from the losses, and with
`UPGrad`, which looks at the gradients; prints the test accuracy of each task. The data come with
scikit-learn, nothing is downloaded. Takes some ten seconds on one thread:

    python examples/many_losses.py

Differences of a point mean nothing: another seed moves the figures as much.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import gradwright as gw
from gradwright.weighting import UW, Sum, UPGrad, Weighting

TASKS = ("left", "right")
TRAIN, TEST = 6000, 2000  # images
METHODS: dict[str, Callable[[], Weighting]] = {
    "equal weights": Sum,
    "UW": lambda: UW(n_tasks=len(TASKS)),
    "UPGrad": UPGrad,
}


@dataclass(frozen=True)
class Part:
    """Images [example, 1, 10, 12] and the classes of each task [example]."""

    images: Tensor
    labels: dict[str, Tensor]


class Reader(nn.Module):
    """A convolutional trunk that the tasks share, and a linear head for each."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 16, 3),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 3 * 4, 64),
            nn.ReLU(),
        )
        self.heads = nn.ModuleDict({task: nn.Linear(64, 10) for task in TASKS})

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """The logits [example, class] of each task."""
        features = self.trunk(images)
        return {task: head(features) for task, head in self.heads.items()}


def digits() -> tuple[Part, Part]:
    """Training and test images. No digit of a test image occurs in training."""
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32) / 16
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    known, new = order[:1300], order[1300:]
    return overlapping(images, labels, known, TRAIN), overlapping(images, labels, new, TEST)


def overlapping(images: Tensor, labels: Tensor, chosen: Tensor, count: int) -> Part:
    """Pairs of the chosen digits, one at the top left, the other 4 to the right and 2 down."""
    draw = torch.Generator().manual_seed(count)
    left, right = chosen[torch.randint(len(chosen), (2, count), generator=draw)]
    canvas = torch.zeros(count, 1, 10, 12)
    canvas[:, 0, :8, :8] = images[left]
    canvas[:, 0, 2:, 4:] = torch.maximum(canvas[:, 0, 2:, 4:], images[right])
    return Part(canvas, {"left": labels[left], "right": labels[right]})


def train(weighting: Weighting, part: Part, epochs: int = 4, seed: int = 0) -> Reader:
    """A model trained on both tasks, their losses weighed by `weighting`."""
    torch.manual_seed(seed)
    model = Reader()
    optimizer = torch.optim.Adam([*model.parameters(), *weighting.parameters()], lr=2e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(part.images)).split(64):
            logits = model(part.images[batch])
            losses = {
                task: nn.functional.cross_entropy(logits[task], part.labels[task][batch])
                for task in TASKS
            }
            gw.backward(losses, weighting=weighting)
            optimizer.step()
            optimizer.zero_grad()
    return model


@torch.no_grad()
def accuracy(model: Reader, part: Part) -> dict[str, float]:
    """The share of each task's digits that is read right."""
    logits = model.eval()(part.images)
    hits = {task: logits[task].argmax(1) == labels for task, labels in part.labels.items()}
    return {task: float(hit.float().mean()) for task, hit in hits.items()}


def main() -> None:
    """Train with each method, print a table."""
    training, test = digits()
    print(f"{'test accuracy':16}" + "".join(f"{task:>8}" for task in TASKS))
    for name, make in METHODS.items():
        found = accuracy(train(make(), training), test)
        print(f"{name:16}" + "".join(f"{found[task]:8.3f}" for task in TASKS))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
