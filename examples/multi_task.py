"""Two tasks, one model, in a loop of plain PyTorch: a classification and a regression.

An MMoE is trained by Nash-MTL, which weighs the tasks by their gradients. Prints what each task
reaches on validation data; the folder gets curves of losses, weights and cosines for TensorBoard,
and the checkpoints `last.pt`, to go on from, and `best.pt`. A few seconds on one thread:

    python examples/multi_task.py runs/digits
    python examples/multi_task.py runs/digits --epochs 40 --resume
    tensorboard --logdir runs
"""

import argparse
from itertools import combinations
from pathlib import Path

import torch
from multi_task_problem import Problem, census, digits
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

import gradwright as gw
from gradwright.architecture import MMoE
from gradwright.weighting import NashMTL


def make_model(problem: Problem) -> nn.Sequential:
    """From inputs to {task: outputs}."""
    mixture = MMoE(
        expert=lambda: nn.Sequential(nn.Linear(problem.width, 32), nn.ReLU()),
        n_experts=4,
        gate=lambda n: nn.Linear(problem.width, n),
        heads={name: nn.Linear(32, task.n_outputs) for name, task in problem.tasks.items()},
    )
    return nn.Sequential(problem.encoder(), mixture)


def make_weighting(problem: Problem) -> NashMTL:
    """Nash-MTL, which solves for weights in one of three steps, and keeps them for the others."""
    return NashMTL(n_tasks=len(problem.tasks), update_every=3)


def batches(part, size=64, shuffle=False):
    """Batches in an order that follows from the number of the epoch, also after a resume."""
    sampler = DistributedSampler(part, num_replicas=1, rank=0, shuffle=shuffle)
    return DataLoader(part, size, sampler=sampler)


def losses_of(problem, outputs, batch):
    return {name: task.loss(outputs[name], batch[name]) for name, task in problem.tasks.items()}


def curves(step):
    """The facts of one step, by name. Cosines exist where the method read the gradients."""
    points = dict(zip([f"loss/{task}" for task in step.tasks], step.losses, strict=True))
    points |= zip([f"weight/{task}" for task in step.tasks], step.weights, strict=True)
    if step.cosines is not None:
        for (i, one), (j, other) in combinations(enumerate(step.tasks), 2):
            points[f"cosine/{one}, {other}"] = step.cosines[i, j]
    return points


@torch.no_grad()
def validate(model, problem):
    """What each task reaches on the validation part."""
    measures = {name: task.measure() for name, task in problem.tasks.items()}
    model.eval()
    for batch in batches(problem.validation, 1024):
        outputs = model(batch["inputs"])
        for name, measure in measures.items():
            measure.update(outputs[name], batch[name])
    model.train()
    return {name: measure.compute().item() for name, measure in measures.items()}


def numbered(loader, epoch, epochs):
    """The batches of an epoch with the numbers of their steps, and a progress bar."""
    loader.sampler.set_epoch(epoch)
    bar = tqdm(loader, f"epoch {epoch + 1} of {epochs}", leave=False, disable=None)
    return enumerate(bar, start=epoch * len(loader))


def write(writer, points, number):
    for name, value in points.items():
        writer.add_scalar(name, value, number)


def train(problem, folder, epochs, resume=False):
    """Train up to `epochs`, those before a resume included; returns model and weighting."""
    torch.manual_seed(0)
    model, weighting = make_model(problem), make_weighting(problem)
    optimizer = torch.optim.Adam([*model.parameters(), *weighting.parameters()], lr=5e-3)
    parts = {"model": model, "weighting": weighting, "optimizer": optimizer}
    done, best = load(folder, parts) if resume else (0, float("-inf"))
    loader = batches(problem.train, shuffle=True)
    with SummaryWriter(folder, purge_step=done * len(loader)) as writer:
        for epoch in range(done, epochs):
            for number, batch in numbered(loader, epoch, epochs):
                losses = losses_of(problem, model(batch["inputs"]), batch)
                step = gw.backward(losses, weighting=weighting)
                optimizer.step()
                optimizer.zero_grad()
                write(writer, curves(step), number)
            found = validate(model, problem)
            write(writer, {f"validation/{name}": value for name, value in found.items()}, number)
            shown = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
            print(f"epoch {epoch + 1} of {epochs}, validation: {shown}", flush=True)
            best = save(folder, parts, epoch + 1, sum(found.values()) / len(found), best)
    return model, weighting


def save(folder, parts, epochs, score, best):
    """Write `last.pt`, and `best.pt` if this is the best score so far, which is returned."""
    states = {name: part.state_dict() for name, part in parts.items()}
    states |= {"epochs": epochs, "best": max(score, best)}
    torch.save(states, folder / "last.pt")
    if score > best:
        torch.save(states, folder / "best.pt")
    return states["best"]


def load(folder, parts):
    """Bring `parts` to where `last.pt` has them; returns epochs done and the best score."""
    states = torch.load(folder / "last.pt", weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(states[name])
    return states["epochs"], states["best"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="gets curves and checkpoints")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--census", action="store_true", help="Census-Income, not digits")
    parser.add_argument("--rows", type=int, help="use only the first rows of Census-Income")
    return parser.parse_args()


if __name__ == "__main__":
    torch.set_num_threads(1)
    options = arguments()
    problem = census(options.rows) if options.census else digits()
    train(problem, options.folder, options.epochs, options.resume)
