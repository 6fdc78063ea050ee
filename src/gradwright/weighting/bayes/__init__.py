"""Averaging the tasks' gradients at the features by how sure each of them is."""

from gradwright.weighting.bayes.aggregate import BayesAgg, precision_weighted
from gradwright.weighting.bayes.classification import BinaryHead, ClassHead
from gradwright.weighting.bayes.head import BayesHead, Moments
from gradwright.weighting.bayes.regression import RegressionHead

__all__ = [
    "BayesAgg",
    "BayesHead",
    "RegressionHead",
    "BinaryHead",
    "ClassHead",
    "Moments",
    "precision_weighted",
]
