"""Methods that bound the length of the update, where the Gramian does not say how long it is."""

import math
from collections.abc import Sequence

from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.inner_products import squared_length
from gradwright.engine.step import Step
from gradwright.engine.weights.bases import Weighting
from gradwright.engine.weights.heads import head_rule


def clip(
    step: Step,
    weighting: Weighting,
    meeting: Sequence[GradientEdge],
    gradients: dict[GradientEdge, Tensor],
) -> float:
    """Make the gradient of what is shared no longer than the method's `max_norm`; by which factor.

    Heads that are weighted are shortened too, as they would be by shorter weights.
    """
    if weighting.max_norm is None:
        return 1.0
    common = [edge for edge in meeting if edge in gradients]
    length = math.sqrt(squared_length(gradients[edge] for edge in common))
    longest = weighting.max_norm * step.scale
    if length <= longest:
        return 1.0
    with_heads = head_rule(step.heads, weighting) == "weighted"
    for edge in gradients if with_heads else common:
        gradients[edge] = gradients[edge] * (longest / length)
    return longest / length
