"""Akaike's criterion, its small-sample form, and the Bayesian information criterion; lower is better."""

from __future__ import annotations

import math


def aic(loglik: float, unknowns: float) -> float:
    """Akaike's criterion."""
    return -2.0 * loglik + 2.0 * unknowns


def aicc(loglik: float, unknowns: float, observations: int) -> float:
    """The same corrected for few data; infinite where the data are too few for it."""
    spare = observations - unknowns - 1
    return aic(loglik, unknowns) + (2.0 * unknowns * (unknowns + 1) / spare if spare > 0 else math.inf)


def bic(loglik: float, unknowns: float, observations: int) -> float:
    """The Bayesian information criterion."""
    return -2.0 * loglik + unknowns * math.log(observations)
