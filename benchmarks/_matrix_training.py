"""Trains a small model of one architecture with one weighting, and says what became of it."""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

import gradwright as gw
from docs.catalogue import Method
from gradwright.architecture import LTB, Architecture, SharedBottom
from gradwright.engine.weights.bases import CrossGramianWeighting, GroupWeighting, Weighting
from gradwright.weighting import BayesAgg, ClassHead, RegressionHead, Sum
from gradwright.weighting.bilevel import BilevelWeighting
from tests.architecture.labels import labels_of, losses_of, with_terms
from tests.architecture.models import WIDTH, batch, model

N_EXAMPLES = 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one pair."""

    failure: str = ""  # what went wrong; empty where nothing did
    still: tuple[str, ...] = ()  # parameters whose gradient was 0 in every step
    equal: bool = False  # the model ended where the plain sum of the losses brings it
    fits: bool = True  # the method can be used with this architecture

    @property
    def mark(self) -> str:
        """✓ trained, = as the plain sum does, 0 but for some parameters, ✗ failed, – no pair."""
        if not self.fits:
            return "–"
        return "✗" if self.failure else "0" if self.still else "=" if self.equal else "✓"


class Run:
    """A model with three batches, and the facts that its steps leave behind."""

    def __init__(self, architecture: str, method: Method) -> None:
        torch.manual_seed(0)
        self.made = model(architecture).float()
        self.weighting = _weighting(method, self.made)
        self.batches = [
            (batch(N_EXAMPLES, seed).float(), labels_of(self.made, N_EXAMPLES, seed))
            for seed in range(3)
        ]
        modules = {"model": self.made, "weighting": self.weighting}
        self.parameters = dict(nn.ModuleDict(modules).named_parameters())
        self.still = set(self.parameters)  # names of those without a gradient but 0 so far
        torch.manual_seed(0)  # the draws of the architecture, whatever the method drew

    def losses(self, number: int) -> dict[str, Tensor]:
        """The losses of one batch; refuses those that are not finite."""
        inputs, labels = self.batches[number]
        outputs = self.made(inputs)
        found = with_terms(self.made, inputs, outputs, losses_of(self.made, outputs, labels))
        for task, loss in found.items():
            if not loss.isfinite():
                raise ValueError(f"the loss of {task!r} is {float(loss.detach())}")
        return found

    def backward(self) -> None:
        """Gradients by the method, in the way it is meant to be called."""
        if isinstance(self.weighting, BayesAgg):
            self._backward_of_features(self.weighting)
            return
        if isinstance(self.weighting, BilevelWeighting):
            self.weighting.backward(self.made, lambda: self._list(0), lambda: self._list(1))
            return
        assert isinstance(self.weighting, Weighting)
        cross = isinstance(self.weighting, CrossGramianWeighting)
        groups = isinstance(self.weighting, GroupWeighting)
        gw.backward(
            self.losses(0),
            weighting=self.weighting,
            other=[self.losses(1), self.losses(2)] if cross else (),
            shared={"trunk": self.made.shared_parameters()} if groups else None,
        )

    def look(self) -> None:
        """Notes which gradients there are; refuses what is missing or not finite."""
        for name, parameter in self.parameters.items():
            if parameter.grad is None:
                raise ValueError(f"{name} has no gradient")
            if not parameter.grad.isfinite().all():
                raise ValueError(f"the gradient of {name} is not finite")
            if parameter.grad.any():
                self.still.discard(name)

    def after_step(self, end_of_epoch: bool) -> None:
        """What methods and architectures ask for besides."""
        update = getattr(self.weighting, "update", None)
        if update is not None:
            with torch.no_grad():
                update(torch.stack(self._list(0)))
        if end_of_epoch:
            getattr(self.weighting, "end_epoch", lambda: None)()
            if isinstance(self.made, LTB):
                self.made.advance()

    def _list(self, number: int) -> list[Tensor]:
        return list(self.losses(number).values())

    def _backward_of_features(self, weighting: BayesAgg) -> None:
        inputs, labels = self.batches[0]
        heads = [head for _, head in self.made.heads.items() if isinstance(head, nn.Linear)]
        features = self.made.get_submodule("bottom")(inputs)
        weighting.fit(features.detach(), [*labels.values()], heads)
        features.backward(weighting(features, [*labels.values()], heads))
        fixed = features.detach()
        outputs = {task: head(fixed) for task, head in self.made.heads.items()}
        gw.backward(losses_of(self.made, outputs, labels))


def train(architecture: str, method: Method, steps: int) -> Outcome:
    """`steps` steps in four epochs; every trainable parameter needs a gradient in each of them."""
    if method.name == "BayesAgg" and architecture != "SharedBottom":
        return Outcome(fits=False)  # it combines gradients at features that all heads read
    try:
        run = Run(architecture, method)
        _train(run, steps)
    except Exception as error:
        return Outcome(failure=f"{type(error).__name__}: {error}")
    equal = torch.allclose(_moved(run), _moved_by_sum(architecture, steps), rtol=0, atol=1e-4)
    return Outcome(still=tuple(sorted(run.still)), equal=equal)


def _train(run: Run, steps: int) -> None:
    optimizer = torch.optim.Adam(run.parameters.values(), lr=0.01)
    for number in range(1, steps + 1):
        optimizer.zero_grad()
        run.backward()
        run.look()
        optimizer.step()
        run.after_step(end_of_epoch=number % max(1, steps // 4) == 0)
    run.losses(0)


def _moved(run: Run) -> Tensor:
    """The parameters of the model, a vector."""
    return torch.cat([parameter.detach().flatten() for parameter in run.made.parameters()])


@cache
def _moved_by_sum(architecture: str, steps: int) -> Tensor:
    sum_of_losses = Method("Sum", (), lambda n: Sum(), "", 0, "", "", "")
    run = Run(architecture, sum_of_losses)
    _train(run, steps)
    return _moved(run)


def _weighting(method: Method, made: Architecture) -> nn.Module:
    if method.name != "BayesAgg":
        return method.make(len(made.tasks))
    assert isinstance(made, SharedBottom)
    return BayesAgg([RegressionHead(WIDTH, 1), ClassHead(WIDTH, 2), ClassHead(WIDTH, 3)])
