"""Any method, on the logarithms of the losses."""

from torch import Tensor

from gradwright.engine.weights.bases import (
    GramianLossWeighting,
    GramianWeighting,
    LossWeighting,
    Weighting,
)
from gradwright.weighting.checks import read_gramian, read_losses
from gradwright.weighting.values import positive
from gradwright.weighting.wrapped import take_head_rules, weights_inside


class Log(Weighting):
    """A method, told the logarithms of the losses and their gradients: the units do not matter.

    The gradient of log l_k is g_k / l_k. So the method reads D G D with D = diag(1 / l), and
    log l, and its weights v become w = D v. `Log(Sum())` is scale-invariant linear scalarisation.

    Log(method) is a `LossWeighting` if the method is, else a `GramianLossWeighting`. Its heads are
    treated as those of the method; where these are "unweighted", they get the gradient of log l,
    the rule "log".

    Navon et al., Multi-Task Learning as a Bargaining Game, ICML 2022, section 5 (SI),
    https://arxiv.org/abs/2202.01017. LOG_MGDA, LOG_CAGrad and LOG_IMTLG are in the code of FAMO
    (Liu et al., NeurIPS 2023) and FairGrad (Ban and Ji, ICML 2024); their LOG_MGDA also divides
    the weights by their sum.

    Called with losses [task] above 0, or a Gramian [task, task] and losses, returns weights [task].

    Args:
        weighting: the method; its own calls, such as `end_epoch`, are `log.weighting.end_epoch()`.

    Example:
        >>> import torch
        >>> from gradwright.weighting.mgda import MGDA
        >>> Log(MGDA())(torch.tensor([[1.0, 0.0], [0.0, 9.0]]), torch.tensor([1.0, 3.0]))
        tensor([0.5000, 0.1667])
    """

    def __new__(cls, weighting: Weighting | None = None) -> "Log":
        """The kind of `Log` that reads the losses alone, or the Gramian, too.

        Copying calls this without arguments, for the kind that it copies.
        """
        if cls is not Log:
            return super().__new__(cls)
        if isinstance(weighting, LossWeighting):
            return super().__new__(LogOfLosses)
        if isinstance(weighting, GramianWeighting | GramianLossWeighting):
            return super().__new__(LogOfGramian)
        raise ValueError(
            "`Log` needs a method that reads losses or a Gramian: "
            f"got {type(weighting).__name__}, which reads something else."
        )

    def __init__(self, weighting: Weighting) -> None:
        super().__init__()
        self.weighting = weighting
        self.max_norm = weighting.max_norm  # w on the losses and v on log l are one update
        take_head_rules(self, weighting, unweighted="log")

    def _get_name(self) -> str:
        return "Log"  # and not that of the kind: users never meet it


class LogOfLosses(Log, LossWeighting):
    """`Log` of a method that reads losses."""

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task] = v / losses."""
        values = positive(self, losses)
        weights = weights_inside(self, self.weighting, values.log())
        return (weights / values).to(losses)


class LogOfGramian(Log, GramianLossWeighting):
    """`Log` of a method that reads a Gramian."""

    def forward(self, gramian: Tensor, losses: Tensor) -> Tensor:
        """Weights [task] = v / losses."""
        G = read_gramian(gramian)
        values = positive(self, read_losses(losses, len(G)))
        scaled = G / values.outer(values)
        if isinstance(self.weighting, GramianWeighting):
            weights = weights_inside(self, self.weighting, scaled)
        else:
            weights = weights_inside(self, self.weighting, scaled, values.log())
        return (weights / values).to(gramian)
