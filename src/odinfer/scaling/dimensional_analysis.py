"""Sizes of hidden states and parameters, implied by data and equations through dimensional analysis.

Equations have units even if nobody writes them down: multiply states, parameters, inputs, columns and time by suitable
factors, and every equation, observation and initial value goes over into itself. For small changes d of the logs of all
units this says, of a formula g(t, x, θ, u) for a quantity with unit d_g,

    Σ_k d_k x_k ∂g/∂x_k + Σ_j ε_j θ_j ∂g/∂θ_j + Σ_u d_u u ∂g/∂u + d_T t ∂g/∂t = d_g g

at every point, with d_g = d_i − d_T for the equation of state i. The units of columns, inputs, time and constants are
known: they are their sizes. The others follow by least squares; directions that nothing fixes (the scale of a hidden
state against a parameter, say) stay at one, or where a draw puts them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.model.differentiation import TextField
from odinfer.model.model import Model
from odinfer.model.vector_field import FieldDerivatives
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_POINTS = 60
MOST_STATES = 30  # beyond, Jacobians at so many points are large
_MOST = 15.0  # decades
_WEAK = 1e-6  # of a unit equation: how much any unit is drawn towards one
_PLAIN = 3.0  # constants between 1/3 and 3 are plain numbers, without a unit
_SCALED = ("normal", "student", "laplace")  # families whose second argument has the unit of the first


@dataclass(frozen=True)
class Sizes:
    """Decades of the sizes of states (K,) and of the model's parameters (P,)."""

    states: Array
    parameters: Array


def implied_sizes(problem: Problem, share: float = 1.0, pull: Array | None = None) -> Sizes:
    """What data and equations imply.

    Args:
        share: of the typical time, the time in which things happen.
        pull: decades (K + P,) that states and parameters are drawn to where nothing else determines them; 0 if not
            given.
    """
    m = problem.model
    A, b, known = _equations(problem)
    K, P = len(m.states), len(m.parameters)
    values = np.array([*_column_decades(problem), *_input_decades(problem), _time_decade(problem) + np.log10(share)])
    right = b @ np.concatenate([values, known])
    towards = np.zeros(K + P) if pull is None else pull
    fixed = {i: np.log10(abs(problem.fixed[n])) for i, n in enumerate(m.parameters, K) if problem.fixed.get(n, 0.0)}
    fixed |= dict.fromkeys((K + m.parameters.index(name) for name in _exponents(m)), 0.0)
    if problem.fully_observed_gaussian:  # every state is a column
        fixed |= dict(enumerate(values[:K].tolist()))
    for i, decade in fixed.items():
        right = right - A[:, i] * decade
    free = np.array([i for i in range(K + P) if i not in fixed], dtype=np.int64)
    left = np.concatenate([A[:, free], _WEAK * np.eye(len(free))])
    found = np.linalg.lstsq(left, np.concatenate([right, _WEAK * towards[free]]), rcond=None)[0]
    z = np.zeros(K + P)
    z[free] = found
    for i, decade in fixed.items():
        z[i] = decade
    z = np.clip(z, -_MOST, _MOST)
    return Sizes(z[:K], z[K:])


def natural_sizes(problem: Problem, share: float = 1.0) -> Array:
    """Sizes (P,) of the model's parameters; one if there are very many states, all of them observed."""
    if problem.fully_observed_gaussian and len(problem.model.states) > MOST_STATES:
        return np.ones(len(problem.model.parameters))
    return np.asarray(10.0 ** implied_sizes(problem, share).parameters)


def natural_sizes_of_free(problem: Problem) -> Array:
    """Sizes (F,) of the free parameters, one in each experiment if they are local."""
    own, every = natural_sizes(problem), np.empty(len(problem.parameters))
    for e in range(len(problem.data.experiments)):
        every[problem.split.of(e)] = own
    return np.asarray(every[problem.free_index])


def natural_sizes_of_phi(problem: Problem) -> Array:
    """Sizes (F,) of the free parameters on the scales on which they are estimated: one if that is a log scale."""
    return np.where(problem.is_log, 1.0, natural_sizes_of_free(problem))


def _equations(problem: Problem) -> tuple[Array, Array, Array]:
    """A (R, K+P) and b (R, ·) with A z = b d for all units z that are looked for and d that are known; and the decades
    of the constants, the last of d."""
    return _model_exponents(problem.model, tuple(c.arguments for c in problem.observed),
                     tuple(c.words in _SCALED for c in problem.observed))  # fmt: skip


@functools.lru_cache(maxsize=64)
def _model_exponents(
    model: Model, arguments: tuple[tuple[int, ...], ...], scaled: tuple[bool, ...]
) -> tuple[Array, Array, Array]:
    K, P, U, M = len(model.states), len(model.parameters), len(model.inputs), len(arguments)
    constants = Constants.of(model)
    Q = len(constants.decades)
    rng = np.random.default_rng(0)
    t = rng.uniform(0.5, 2.0, _POINTS)
    x, theta, u = (rng.uniform(0.5, 2.0, (_POINTS, n)) for n in (K, P + Q, U))
    # Columns of D: states, parameters, then what is known: columns, inputs, time, constants.
    size = K + P + M + U + 1 + Q
    time = K + P + M + U
    rows = []

    def add(program: FieldDerivatives, units: list[dict[int, float]]) -> None:
        own_theta = theta if isinstance(program, TextField) else theta[:, :P]  # a function has no constants
        g, gx, gt = program.linearise(t, x, own_theta, u)
        h = 1e-6
        D = np.zeros((_POINTS, g.shape[1], size))
        D[..., :K] = gx * x[:, None]
        by_theta = gt * own_theta[:, None]
        D[..., K : K + P] = by_theta[..., :P]
        D[..., time + 1 : time + 1 + by_theta.shape[-1] - P] = by_theta[..., P:]
        for i in range(U):
            more = u * (1.0 + h * np.eye(U)[i])
            D[..., K + P + M + i] = (program.evaluate(t, x, own_theta, more) - g) / h
        D[..., time] = (program.evaluate(t * (1.0 + h), x, own_theta, u) - g) / h
        for i, unit in enumerate(units):
            for place, power in unit.items():
                D[:, i, place] -= power * g[:, i]
            own = D[:, i]
            sound = np.isfinite(own).all(1) & np.isfinite(g[:, i])
            weight = np.abs(own[sound]).max(initial=0.0)
            if weight > 0:
                rows.append(own[sound] / weight)

    with np.errstate(all="ignore"):
        add(constants.field(model), [{i: 1.0, time: -1.0} for i in range(K)])
        for m, own in enumerate(arguments):
            for instruction in own[: 2 if scaled[m] else 1]:
                add(constants.program(model, (instruction,)), [{K + P + m: 1.0}])
        for state, instruction in model.declarations.initial.items():
            add(constants.program(model, (instruction,)), [{model.states.index(state): 1.0}])
    D = np.concatenate(rows)
    _, R = np.linalg.qr(D)  # as few equations as there are units
    return R[:, : K + P], -R[:, K + P :], constants.decades


@dataclass(frozen=True)
class Constants:
    """Numbers in a text that are far from one, as parameters of known size behind the model's own."""

    code: tuple[tuple[str, tuple[object, ...]], ...]
    names: tuple[str, ...]
    decades: Array

    @staticmethod
    def of(model: Model) -> Constants:
        code = list(model.code)
        exponents = {args[1] for op, args in code if op == "pow"}
        names, decades = [], []
        for i, (op, args) in enumerate(code):
            if op != "number" or i in exponents or args[0] == 0:
                continue
            if not 1.0 / _PLAIN <= abs(args[0]) <= _PLAIN:
                names.append(f"{i} ")  # no name that a user can write
                decades.append(np.log10(abs(args[0])))
                code[i] = ("name", (names[-1],))
        return Constants(tuple(code), tuple(names), np.array(decades))

    def program(self, model: Model, instructions: tuple[int, ...]) -> FieldDerivatives:
        return TextField(self.code, instructions, (model.states, (*model.parameters, *self.names), model.inputs))

    def field(self, model: Model) -> FieldDerivatives:
        if model.text is None:  # a function: its numbers are its own
            return model.derivatives
        return self.program(model, model.declarations.outputs)


def _exponents(model: Model) -> set[str]:
    """Parameters that are exponents: they have no unit."""
    code = model.code
    names = {str(code[args[1]][1][0]) for op, args in code if op == "pow" and code[args[1]][0] == "name"}
    return names & set(model.parameters)


def _column_decades(problem: Problem) -> list[float]:
    columns = np.concatenate([e.y for e in problem.data.experiments]).T
    return [_decade(values) for values in columns]


def _input_decades(problem: Problem) -> list[float]:
    return [_decade(np.concatenate([e.u[name][1] for e in problem.data.experiments])) for name in problem.model.inputs]


def _time_decade(problem: Problem) -> float:
    told = [problem.condition(i).told for i in range(len(problem.data.experiments))]
    return _decade(np.concatenate([t - t[0] for t in told]))


def _decade(values: Array) -> float:
    """Of a typical size, the root mean square; zero where there is nothing but zeros."""
    seen = values[np.isfinite(values)]
    size = float(np.sqrt(np.mean(seen**2))) if len(seen) else 0.0
    return float(np.log10(size)) if size > 0 else 0.0
