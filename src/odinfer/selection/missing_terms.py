"""Where and how an equation fails: f − Dx over time, and which simple terms of the states it looks like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Gradients
from odinfer.problem.observables import need_plain
from odinfer.problem.problem import Problem
from odinfer.result.fit import Fit
from odinfer.uncertainty.results import BAND

Array = NDArray[np.float64]

_SHOWN = 6  # terms in a hint


@dataclass(frozen=True, eq=False)
class Gap:
    """What an equation lacks at times t (M,) of an experiment: slope of the data minus f, and its sd."""

    state: str
    experiment: str
    t: Array
    gap: Array
    sd: Array

    @property
    def stretches(self) -> list[tuple[float, float]]:
        """Intervals of time in which the gap leaves its 95 % band at two grid times in a row or more."""
        out = np.abs(self.gap) > BAND * self.sd
        out &= np.r_[False, out[:-1]] | np.r_[out[1:], False]
        edges = np.flatnonzero(np.diff(np.r_[False, out, False].astype(int)))
        return [(float(self.t[a]), float(self.t[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(frozen=True)
class Hint:
    """A term that the gap of an equation looks like: their correlation, beyond what the parameters can take up."""

    term: str
    correlation: float


def gaps(fit: Fit, state: str) -> list[Gap]:
    """Per experiment, the slope of the data minus the slope of the equation, with the smoother's uncertainty."""
    k = fit.state_names.index(state)
    return [
        Gap(state, name, g.t, g.gp[:, k] - g.f[:, k], g.sd[:, k])
        for name, g in ((n, e.gradients) for n, e in fit.experiments.items())
        if g is not None
    ]


def hints(problem: Problem, fit: Fit, state: str) -> list[Hint]:
    """Simple terms of the states, ranked by how much the gap of an equation looks like them.

    Both are taken free of what a change of the equation's own parameters could explain, so that a term which is already
    there does not come up again. A hint, not a test: terms resemble each other along a single time course.

    Raises:
        InputError: not every state is observed with Gaussian noise, so that there are no slopes of the data.
    """
    need_plain(problem, "a hint at missing terms")
    k = problem.model.states.index(state)
    pieces = []
    for i, (e, found) in enumerate(zip(problem.data.experiments, fit.experiments.values(), strict=True)):
        g = found.gradients
        if g is not None:
            x = _states(fit, e.name, g)
            theta = np.array([fit.stages["odin"].theta[n] for n in problem.model.parameters])
            _, _, ftheta = problem.model.linearise(g.t, x, theta, problem.inputs_at(i, g.t))
            pieces.append((g.gp[:, k] - g.f[:, k], ftheta[:, k][:, problem.free_index], x))
    if not pieces:
        return []
    gap, own, x = (np.concatenate(part) for part in zip(*pieces, strict=True))
    own = own[:, np.abs(own).max(0) > 0]
    basis = np.linalg.qr(own / np.linalg.norm(own, axis=0))[0] if own.size else np.zeros((len(gap), 0))

    def beyond(v: Array) -> Array:
        return np.asarray(v - basis @ (basis.T @ v))

    rest, found_hints = beyond(gap), []
    for term, values in _terms(problem.model.states, x):
        new = beyond(values)
        size = np.linalg.norm(new) * np.linalg.norm(rest)
        if np.linalg.norm(new) > 1e-3 * np.linalg.norm(values) and size > 0:
            found_hints.append(Hint(term, float(new @ rest / size)))
    return sorted(found_hints, key=lambda h: -abs(h.correlation))[:_SHOWN]


def _states(fit: Fit, experiment: str, g: Gradients) -> Array:
    """ODIN's states at the grid; between observations they come from the experiment's curve."""
    return np.asarray(fit.experiments[experiment].curve.at(g.t)[0])


def _terms(names: tuple[str, ...], x: Array) -> Iterator[tuple[str, Array]]:
    """1, x, x², xy of all states; only 1, x, x² where there are many."""
    yield "1", np.ones(len(x))
    for i, name in enumerate(names):
        yield name, x[:, i]
    for i, name in enumerate(names):
        yield f"{name}^2", x[:, i] ** 2
        for j in range(i + 1, len(names) if len(names) <= 12 else 0):
            yield f"{name}*{names[j]}", x[:, i] * x[:, j]
