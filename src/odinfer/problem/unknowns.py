"""What is estimated along trajectories as one vector v: initial values of every experiment, φ, and the noise if asked.

Everything that goes by trajectories (refinement, intervals, profiles, bootstraps, posteriors) packs and unpacks here
and nowhere else. A trajectory of experiment e depends on its own numbers (x0 (K), φ (F)); `lift` turns derivatives by
these into derivatives by v. Initial values that are shared, known or expressed by parameters, and parameters local to
an experiment, are other maps from v to these numbers, with other derivatives, and no concern of anybody else.
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
    """Where things stand in v (P,) = (x0 of E experiments, φ[, log σ of the noise that is not known]).

    Functions of v take numpy and JAX arrays with any leading axes. Equal layouts are equal: compiled code is kept for
    them.

    Attributes:
        experiments, states, free: E, K and F.
        in_v: of every state, whether its noise is part of v; empty if the noise is profiled out.
    """

    experiments: int
    states: int
    free: int
    in_v: tuple[bool, ...] = ()

    @property
    def size(self) -> int:
        return self.experiments * self.states + self.free + sum(self.in_v)

    @property
    def of_phi(self) -> slice:
        """Where φ stands in v."""
        before = self.experiments * self.states
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
        """The initial values (..., K) of an experiment."""
        return v[..., e * self.states : (e + 1) * self.states]

    def log_sigma(self, v: Any, log_known: Any, xp: Any = np) -> Any:
        """log σ (..., K) of all states; those that are not in v are `log_known`."""
        mask = np.array(self.in_v or (False,) * self.states)
        order = np.where(mask, np.cumsum(mask) - 1, mask.sum() + np.cumsum(~mask) - 1)
        known = xp.broadcast_to(log_known, (*v.shape[:-1], len(log_known)))
        return xp.concatenate([v[..., self.of_phi.stop :], known], -1)[..., order]

    def join(self, x0: Sequence[Array], phi: Array, *log_sigma: Array) -> Array:
        """v (..., P) from initial values (..., K) of every experiment, φ (..., F) and log σ, if it is part of v."""
        return np.concatenate([*x0, phi, *log_sigma], -1)

    def own(self, e: int) -> Index:
        """The places in v (K+F,) of what the trajectory of an experiment depends on: its x0 and φ."""
        return np.concatenate([np.arange(e * self.states, (e + 1) * self.states), self.phi_index])

    def lift(self, e: int, S: Array) -> Array:
        """Derivatives by v (..., P) from those by an experiment's own x0 and φ (..., K+F)."""
        a = np.zeros((*S.shape[:-1], self.size))
        a[..., self.own(e)] = S
        return a

    def unit(self, places: Index) -> Array:
        """The gradients by v (B, P) of the unknowns at these places (B,)."""
        a = np.zeros((len(places), self.size))
        a[np.arange(len(places)), places] = 1.0
        return a


@dataclass(frozen=True, eq=False, init=False)
class Unknowns(Layout):
    """The unknowns of a problem: their layout, names and bounds.

    Args:
        problem: whose.
        noise: whether the noise that is not known is part of them; otherwise it is profiled out.
    """

    problem: Problem = field(init=False)
    __eq__, __hash__ = object.__eq__, object.__hash__  # a layout is a value, the unknowns of a problem are not

    def __init__(self, problem: Problem, noise: bool = False) -> None:
        in_v = tuple(np.isnan(problem.known_sigma).tolist()) if noise else ()
        for name, value in {
            "experiments": len(problem.data.experiments), "states": len(problem.model.states),
            "free": len(problem.free), "in_v": in_v, "problem": problem,
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def layout(self) -> Layout:
        """The layout alone."""
        return Layout(self.experiments, self.states, self.free, self.in_v)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Such as "prey(0)" or, of several experiments, "prey(0)[control]"; parameters; "sigma prey"."""
        p = self.problem
        several = self.experiments > 1
        initial = [f"{s}(0)" + f"[{e.name}]" * several for e in p.data.experiments for s in p.model.states]
        noise = [f"sigma {s}" for s, yes in zip(p.model.states, self.in_v, strict=bool(self.in_v)) if yes]
        return (*initial, *p.free, *noise)

    @functools.cached_property
    def low(self) -> Array:
        """Lower bounds (P,)."""
        return self._bounds(0)

    @functools.cached_property
    def high(self) -> Array:
        """Upper bounds (P,)."""
        return self._bounds(1)

    def _bounds(self, side: int) -> Array:
        initial = np.tile(self.problem.state_bounds[side], self.experiments)
        noise = np.full(sum(self.in_v), (-np.inf, np.inf)[side])
        return np.concatenate([initial, self.problem.phi_bounds[side], noise])
