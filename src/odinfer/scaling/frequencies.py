"""Find parameters that are frequencies of forcing terms, whose start points need finer spacing.

The mismatch has a valley for every whole number of cycles in the data, each as wide as one of them. So starts stand in
all of these that the data can tell apart: from half a cycle in all to one in two observations.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from odinfer.model.model import Model
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_SINES = ("sin", "cos")
_STEP = 2.0  # radians over all of the data between two starts
_MOST = 100  # starts of one kind
_CLOSE = 1e-6


def count(problem: Problem) -> int:
    """How many starts it takes to meet every frequency that the data can tell apart; none if no sine runs with time."""
    if not _clocks(problem.model):
        return 0
    longest = max(len(e.t) for e in problem.data.experiments)
    return int(min(np.ceil(np.pi * longest / _STEP), _MOST))


def spread(problem: Problem, theta: Array, rng: np.random.Generator) -> Array:
    """θ (n, P) with sines that run at frequencies spread over all that the data can tell apart, within their bounds."""
    theta, model, n = theta.copy(), problem.model, len(theta)
    span = max(float(np.ptp(e.t)) for e in problem.data.experiments)
    fastest = np.pi * max(len(e.t) for e in problem.data.experiments)
    for argument, j, power in _clocks(model):
        name = model.parameters[j]
        if name in problem.fixed or name in problem.start:
            continue
        radians = 1.0 + (fastest - 1.0) * (rng.permutation(n) + rng.uniform(size=n)) / n
        low, high = problem.limits(name)
        with np.errstate(all="ignore"):
            other = theta[:, j] * (radians / np.abs(_phase(model, argument, theta, span))) ** power
            theta[:, j] = np.where(np.isfinite(other) & (other >= low) & (other <= high), other, theta[:, j])
    return theta


@functools.lru_cache(maxsize=64)
def _clocks(model: Model) -> tuple[tuple[int, int, float], ...]:
    """Sines of time: the instruction of their argument, the parameter that it runs with, and −1 if that is a period."""
    if model.text is None:
        return ()
    found: dict[int, tuple[int, int, float]] = {}
    theta = np.random.default_rng(0).uniform(0.5, 2.0, (1, len(model.parameters)))
    for op, args in model.code:
        if op not in _SINES:
            continue
        argument = int(str(args[0]))
        for j in range(len(model.parameters)):
            doubled = theta * np.where(np.arange(theta.shape[1]) == j, 2.0, 1.0)
            with np.errstate(all="ignore"):
                share = _phase(model, argument, doubled, 1.0)[0] / _phase(model, argument, theta, 1.0)[0]
            power = next((p for p in (1.0, -1.0) if abs(share - 2.0**p) < _CLOSE), 0.0)
            if power and j not in found:
                found[j] = argument, j, power
                break
    return tuple(found.values())


def _phase(model: Model, argument: int, theta: Array, span: float) -> Array:
    """Radians by which an argument changes with time alone, from nothing to `span`, at θ (n, P); (n,)."""
    n, program = len(theta), model.program((argument,))
    x, u = np.ones((n, len(model.states))), np.ones((n, len(model.inputs)))
    first, last = (program.evaluate(np.full(n, t), x, theta, u)[:, 0] for t in (0.0, span))
    return np.asarray(last - first)
