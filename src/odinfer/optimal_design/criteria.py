"""Optimality criteria: functions of the Fisher information that a design minimises.

Informations are (..., P, P) of relative changes (log θ, or θ in units of its value), so that variances are squared
relative standard errors. References: Atkinson, Donev and Tobias, "Optimum Experimental Designs, with SAS" (2007),
chapters 10 and 18; Pronzato and Walter (1985) for averages over parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NAMES = ("D", "A", "c")
# Added to every information: a relative standard deviation of 1e4 is what is known of anything. It keeps informations
# of too few samples invertible.
VAGUE = 1e-8
UNDETERMINED = 10.0  # relative standard error from which on a parameter is called undetermined


class Criterion(Protocol):
    """What a design should make small."""

    def __call__(self, information: Array) -> Array:
        """The value (...) of informations (..., P, P)."""


@dataclass(frozen=True)
class DOptimality:
    """−log det of the information by the number of parameters: the volume of their confidence ellipsoid."""

    def __call__(self, information: Array) -> Array:
        return np.asarray(-np.linalg.slogdet(vague(information))[1] / information.shape[-1])


@dataclass(frozen=True, eq=False)
class AOptimality:
    """The logarithm of the mean variance of linear combinations of the parameters.

    Attributes:
        weights: combinations (G, P), such as single parameters, or the gradient of a forecast.
    """

    weights: Array

    def __call__(self, information: Array) -> Array:
        solved = np.linalg.solve(vague(information), self.weights.T)
        return np.asarray(np.log(np.einsum("gp,...pg->...", self.weights, solved) / len(self.weights)))


def vague(information: Array) -> Array:
    """An information with what is known of anything."""
    return np.asarray(information + VAGUE * np.eye(information.shape[-1]))


def covariance(information: Array) -> Array:
    """The covariance (..., P, P) that an information promises."""
    return np.asarray(np.linalg.inv(vague(information)), float)


def relative_errors(information: Array) -> Array:
    """Relative standard errors (..., P)."""
    return np.sqrt(np.diagonal(covariance(information), axis1=-2, axis2=-1))


def combined_errors(information: Array, weights: Array) -> Array:
    """Relative standard errors (..., G) of linear combinations (G, P) of the parameters."""
    return np.asarray(np.sqrt(np.einsum("gp,...pq,gq->...g", weights, covariance(information), weights)))


def efficiency(value: float, reference: float) -> float:
    """How many samples of the design with the reference value are worth one of the design with this value."""
    return float(np.exp(np.clip(reference - value, -700.0, 700.0)))
