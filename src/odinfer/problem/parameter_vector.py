"""Packing of all unknowns in one vector v: initial values of every experiment, φ, and noise.

Everything that goes by trajectories (refinement, intervals, profiles, bootstraps, posteriors) packs and unpacks here
and nowhere else. A trajectory of experiment e depends on its own numbers: those initial values that are free (I of K),
and those of φ that are not local to another experiment; `lift` turns derivatives by these into derivatives by v.
Initial values that are known or expressed by parameters are not part of v.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Where things stand in v (P,) = (free x0 of E experiments, φ[, log σ of the noise that is not known]).

    Functions of v take numpy and JAX arrays with any leading axes. Equal layouts are equal: compiled code is kept for
    them.

    Attributes:
        experiments, free: E and F.
        initial: the states whose initial values are free.
        own_phi: per experiment, the places in φ of what it depends on; empty if that is all of it for each.
        in_v: of every observed column, whether its noise is part of v; empty if the noise is profiled out.
    """

    experiments: int
    initial: tuple[int, ...]
    free: int
    own_phi: tuple[tuple[int, ...], ...] = ()
    in_v: tuple[bool, ...] = ()

    @property
    def size(self) -> int:
        return self.experiments * len(self.initial) + self.free + sum(self.in_v)

    @property
    def of_phi(self) -> slice:
        """Where φ stands in v."""
        before = self.experiments * len(self.initial)
        return slice(before, before + self.free)

    @property
    def phi_index(self) -> Index:
        """The places of φ in v (F,)."""
        return np.arange(self.of_phi.start, self.of_phi.stop)

    @property
    def noise_index(self) -> Index:
        """The places of log σ in v."""
        return np.arange(self.of_phi.stop, self.size)

    def phi(self, v: Any) -> Any:
        """φ (..., F)."""
        return v[..., self.of_phi]

    def x0(self, v: Any, e: int) -> Any:
        """The free initial values (..., I) of an experiment."""
        return v[..., e * len(self.initial) : (e + 1) * len(self.initial)]

    def log_sigma(self, v: Any, log_known: Any, xp: Any = np) -> Any:
        """log σ (..., M) of all columns; those that are not in v are `log_known`."""
        mask = np.array(self.in_v)
        order = np.where(mask, np.cumsum(mask) - 1, mask.sum() + np.cumsum(~mask) - 1)
        known = xp.broadcast_to(log_known, (*v.shape[:-1], len(log_known)))
        return xp.concatenate([v[..., self.of_phi.stop :], known], -1)[..., order]

    def join(self, x0: Sequence[Array], phi: Array, *log_sigma: Array) -> Array:
        """v (..., P) from initial values (..., K) of every experiment, φ (..., F) and log σ, if it is part of v."""
        return np.concatenate([*(x[..., self.initial] for x in x0), phi, *log_sigma], -1)

    def own(self, e: int) -> Index:
        """The places in v of what the trajectory of an experiment depends on: its free x0 and its part of φ."""
        count = len(self.initial)
        own = self.phi_index[list(self.own_phi[e])] if self.own_phi else self.phi_index
        return np.concatenate([np.arange(e * count, (e + 1) * count), own])

    def lift(self, e: int, S: Array) -> Array:
        """Derivatives by v (..., P) from those by an experiment's own numbers."""
        a = np.zeros((*S.shape[:-1], self.size))
        a[..., self.own(e)] = S
        return a

    def unit(self, places: Index) -> Array:
        """The gradients by v (B, P) of the unknowns at these places (B,)."""
        a = np.zeros((len(places), self.size))
        a[np.arange(len(places)), places] = 1.0
        return a


@dataclass(frozen=True, eq=False, init=False)
class ParameterVector(Layout):
    """The unknowns of a problem: their layout, names and bounds.

    Args:
        problem: whose.
        noise: whether the noise that is not known is part of them; otherwise it is profiled out.
    """

    problem: Problem = field(init=False)
    __eq__, __hash__ = object.__eq__, object.__hash__  # a layout is a value, the unknowns of a problem are not

    def __init__(self, problem: Problem, noise: bool = False) -> None:
        experiments = range(len(problem.data.experiments))
        own = tuple(tuple(problem.own_phi(e).tolist()) for e in experiments) if problem.split.any else ()
        for name, value in {
            "experiments": len(experiments), "initial": tuple(problem.model.free_initial.tolist()),
            "free": len(problem.free), "own_phi": own, "in_v": problem.estimated_noise if noise else (),
            "problem": problem,
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def layout(self) -> Layout:
        """The layout alone."""
        return Layout(self.experiments, self.initial, self.free, self.own_phi, self.in_v)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Such as "prey(0)" or, of several experiments, "prey(0)[control]"; parameters; "sigma prey"."""
        p = self.problem
        several = self.experiments > 1
        states = [p.model.states[k] for k in self.initial]
        initial = [f"{s}(0)" + f"[{e.name}]" * several for e in p.data.experiments for s in states]
        noise = [f"sigma {c}" for c, yes in zip(p.columns, self.in_v, strict=bool(self.in_v)) if yes]
        return (*initial, *p.free, *noise)

    @property
    def counted(self) -> int:
        """Number of unknowns without the coefficients of unknown functions, whose priors say most about them."""
        theirs = {name for own in self.problem.model.declarations.unknown for name in own.coefficients}
        return self.size - sum(name.partition("[")[0] in theirs for name in self.problem.free)

    @functools.cached_property
    def low(self) -> Array:
        """Lower bounds (P,)."""
        return self._bounds(0)

    @functools.cached_property
    def high(self) -> Array:
        """Upper bounds (P,)."""
        return self._bounds(1)

    def _bounds(self, side: int) -> Array:
        initial = np.tile(self.problem.state_bounds[side][list(self.initial)], self.experiments)
        noise = np.full(sum(self.in_v), (-np.inf, np.inf)[side])
        return np.concatenate([initial, self.problem.phi_bounds[side], noise])


def named_parameters(problem: Problem) -> Index:
    """Places among the free parameters of those that are no coefficients of unknown functions."""
    theirs = {name for own in problem.model.declarations.unknown for name in own.parameters}
    return np.array([j for j, n in enumerate(problem.free) if n.partition("[")[0] not in theirs], dtype=np.int64)
