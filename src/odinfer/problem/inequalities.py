"""Inequalities between expressions of parameters, such as `ka > CL/V`, as a one-sided penalty.

The relative slack of an inequality a < b is s = (b − a)/(|a| + |b|), which does not depend on units. Where s < 0 the
objective has a term ½(s/w)², whose Gauss–Newton matrix leads back within one step. Estimates at an inequality miss it
by a part in a million or so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from odinfer.model.model import Model
    from odinfer.problem.local_parameters import LocalParameters

Array = NDArray[np.float64]

WIDTH = 1e-4  # relative slack that costs half a nat: limits of intervals miss an inequality by 0.05 %
_NEAR = 1e-3  # relative slack below which an estimate is at an inequality


@dataclass(frozen=True, eq=False)
class Inequalities:
    """The inequalities of a model, in every experiment that has parameters of its own.

    Attributes:
        model: whose `said.inequalities` they are.
        places: of the model's parameters among those of the problem (P,), once for every distinct set of them.
    """

    model: Model
    places: tuple[NDArray[np.int64], ...]

    @staticmethod
    def of(model: Model, split: LocalParameters, experiments: int) -> Inequalities:
        rows = {tuple(split.of(e).tolist()) for e in range(experiments)} if split.any else {None}
        whole = np.arange(len(model.parameters))
        return Inequalities(model, tuple(whole if row is None else np.array(row) for row in sorted(rows, key=str)))

    def __bool__(self) -> bool:
        return bool(self.model.declarations.inequalities)

    def slack(self, theta: Array) -> tuple[Array, Array]:
        """Relative slacks (n,) at all parameters θ (P,), and their derivatives (n, P)."""
        program = self.model.program(
            tuple(i for q in self.model.declarations.inequalities for i in (q.smaller, q.larger))
        )
        slacks, slopes = [], []
        for place in self.places:
            own, t = theta[place][None], np.zeros(1)
            x, u = np.zeros((1, len(self.model.states))), np.zeros((1, len(self.model.inputs)))
            value, _, slope = program.linearise(t, x, own, u)
            small, large = value[0, ::2], value[0, 1::2]
            with np.errstate(all="ignore"):
                size = np.abs(small) + np.abs(large)
                s = np.where(size > 0, (large - small) / size, 0.0)
                d = np.sign(large)[:, None] * slope[0, 1::2] + np.sign(small)[:, None] * slope[0, ::2]
                d = (slope[0, 1::2] - slope[0, ::2] - s[:, None] * d) / size[:, None]
            every = np.zeros((len(s), len(theta)))
            np.add.at(every.T, place, np.nan_to_num(d).T)
            slacks.append(s)
            slopes.append(every)
        return np.concatenate(slacks), np.concatenate(slopes)

    def penalty(self, theta: Array) -> tuple[float, Array, Array]:
        """The penalty at all parameters θ (P,), its gradient (P,), and its Gauss–Newton matrix (P, P)."""
        s, d = self.slack(theta)
        if not np.isfinite(s).all():
            return np.inf, np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        r, J = np.minimum(s, 0.0) / WIDTH, np.where((s < 0)[:, None], d, 0.0) / WIDTH
        return float(0.5 * r @ r), r @ J, J.T @ J

    def limiting(self, theta: Array) -> list[str]:
        """The inequalities, as written, that parameters θ (P,) are at."""
        s, _ = self.slack(theta)
        near = np.flatnonzero(np.any(s.reshape(len(self.places), -1) < _NEAR, axis=0))
        return [self.model.declarations.inequalities[i].text for i in near]


def jax_penalty(model: Model, theta: Any) -> Any:
    """The same penalty at the model's parameters θ (P,), by JAX."""
    from odinfer._jax import jnp

    told: Sequence[Any] = model.declarations.inequalities
    if not told:
        return 0.0
    x, u = jnp.zeros(len(model.states)), jnp.zeros(len(model.inputs))
    values = model.declarations.at([i for q in told for i in (q.smaller, q.larger)], 0.0, x, theta, u)
    small, large = jnp.stack(values[::2]), jnp.stack(values[1::2])
    s = (large - small) / (jnp.abs(small) + jnp.abs(large))
    return 0.5 * (jnp.minimum(s, 0.0) ** 2).sum() / WIDTH**2
