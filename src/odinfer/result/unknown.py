"""Estimated unknown functions: their values with bands, on the range of the data or on any grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.errors import InputError, nearest
from odinfer.model.model import Model
from odinfer.model.unknown_functions import UnknownFunction
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile

if TYPE_CHECKING:
    import pandas as pd

    from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]

_GRID = {1: 101, 2: 21}  # points along each argument of a stored table
_SEEN = 400  # values of arguments along the data that are kept, for the density


@dataclass(frozen=True, eq=False)
class EstimatedFunction:
    """An unknown function as it was estimated.

    Attributes:
        label, arguments: as the text has them.
        domain: (low, high) of each argument; beyond, the function keeps its last value.
        sd, length: of the Gaussian process; the length is a share of the range.
        freedom: effective degrees of freedom.
        grid, value, low, high: a table of points (n, d) with estimates and the limits of the 95 % band (n,).
        seen: values of the arguments (m, d) along the data.
        scale_covariance: what not knowing the scale adds to the covariance (W, W) of the function's parameters.
    """

    label: str
    arguments: tuple[str, ...]
    domain: tuple[tuple[float, float], ...]
    sd: float
    length: float
    freedom: float
    grid: Array
    value: Array
    low: Array
    high: Array
    seen: Array
    scale_covariance: Array
    _function: UnknownFunction | None = field(default=None, repr=False)
    _maximum: Maximum | None = field(default=None, repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """The function over the range of the data: a column per argument, then value, low and high."""
        return _frame(self.arguments, self.grid, self.value, self.low, self.high)

    def at(self, *points: ArrayLike, level: float = CONFIDENCE) -> pd.DataFrame:
        """The function with its band at any points.

        Args:
            points: values (n,) of each argument.
            level: of the band.

        Returns:
            A column per argument, then value, low, high, and `inside`: whether the data reach there. Beyond the range
            of the data the function keeps its last value, which is an assumption and no estimate.

        Raises:
            InputError: there is not one array per argument, or the result is not attached to its problem.
        """
        if len(points) != len(self.arguments):
            raise InputError(f"{self.label} takes {len(self.arguments)} arrays, one per argument, not {len(points)}")
        if self._function is None or self._maximum is None:
            raise InputError(
                "other points need the model and the data, which a loaded result does not hold: attach them first, "
                "fit = result.attach(od.Problem(model, data))"
            )
        grid = np.stack(np.broadcast_arrays(*(np.atleast_1d(np.asarray(p, float)) for p in points)), -1)
        value, low, high = _band(self._function, self._maximum, grid, level, self.scale_covariance)
        table = _frame(self.arguments, grid, value, low, high)
        table["inside"] = np.all([(a <= g) & (g <= b) for g, (a, b) in zip(grid.T, self.domain, strict=True)], axis=0)
        return table

    def stored(self) -> dict[str, Any]:
        """What a file keeps."""
        names = ("grid", "value", "low", "high", "seen", "scale_covariance")
        return {
            "arguments": list(self.arguments), "domain": [list(pair) for pair in self.domain], "sd": self.sd,
            "length": self.length, "freedom": self.freedom, **{n: getattr(self, n).tolist() for n in names},
        }  # fmt: skip

    @staticmethod
    def of(label: str, stored: Mapping[str, Any]) -> EstimatedFunction:
        """From what a file keeps."""
        d = len(stored["arguments"])
        grid, seen = (np.asarray(stored[n], float).reshape(-1, d) for n in ("grid", "seen"))
        value, low, high = (np.asarray(stored[n], float) for n in ("value", "low", "high"))
        domain = tuple((float(a), float(b)) for a, b in stored["domain"])
        numbers = (stored["sd"], stored["length"], stored["freedom"])
        doubt = np.asarray(stored["scale_covariance"], float)
        return EstimatedFunction(
            label, tuple(stored["arguments"]), domain, *numbers, grid, value, low, high, seen, doubt
        )


class EstimatedFunctions(dict[str, EstimatedFunction]):
    """Label → estimated function; "?" is the only one, "?beta" the one of this name."""

    def __missing__(self, key: str) -> EstimatedFunction:
        if key == "?" and len(self) == 1:
            return next(iter(self.values()))
        alike = [own for label, own in self.items() if label.partition("(")[0] == key]
        if len(alike) == 1:
            return alike[0]
        raise InputError(f"there is no unknown function '{key}'{nearest(key, self)}")


def estimated(
    maximum: Maximum, own: UnknownFunction, freedom: float, seen: Array, scale_covariance: Array
) -> EstimatedFunction:
    """An unknown function at a maximum of the likelihood.

    Args:
        freedom: its effective degrees of freedom.
        seen: values of its arguments (m, d) along the data.
        scale_covariance: what not knowing the scale adds to the covariance (W, W) of its parameters.
    """
    domain = own.domain or tuple((float(v.min()), float(v.max())) for v in seen.T)
    axes = [np.linspace(a, b, _GRID[len(domain)]) for a, b in domain]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(domain))
    some = np.linspace(0, len(seen) - 1, min(len(seen), _SEEN)).round().astype(int)
    sd, length = own.scale or (1.0, 0.5)
    band = _band(own, maximum, grid, CONFIDENCE, scale_covariance)
    return EstimatedFunction(
        own.label, own.arguments, domain, sd, length, freedom, grid, *band, seen[some], scale_covariance, own, maximum
    )


def _band(
    own: UnknownFunction, maximum: Maximum, grid: Array, level: float, scale_covariance: Array
) -> tuple[Array, Array, Array]:
    """Values and limits of the band (n,) at points (n, d), by the delta method; by logarithms where positive.

    The variance at frequencies above those of the basis is that of the Gaussian process, since the fit leaves them out.
    """
    problem, u = maximum.problem, maximum.likelihood.unknowns
    inputs = [name for name in own.arguments if name != "t"]
    text = "\n".join([f"value_' = {own.definition}", *own.statements()])
    model = Model.from_text(text, inputs=inputs)
    theta = dict(zip(problem.parameters, problem.theta(maximum.phi).tolist(), strict=True))
    t = grid[:, own.arguments.index("t")] if "t" in own.arguments else np.zeros(len(grid))
    given = np.stack([grid[:, own.arguments.index(n)] for n in model.inputs], 1) if model.inputs else grid[:, :0]
    values = np.array([theta[name] for name in model.parameters])
    f, _, slopes = model.linearise(t, np.zeros((len(grid), 1)), values, given)
    a, scale = np.zeros((len(grid), u.size)), problem.slope(maximum.phi)
    theirs = [problem.free.index(name) for name in own.parameters]
    own_slopes = slopes[:, 0, [model.parameters.index(name) for name in own.parameters]] * scale[theirs]
    a[:, [u.of_phi.start + j for j in theirs]] = own_slopes
    value = f[:, 0]
    sd, freedom = maximum.info.spread(a)
    exponential = own.positive and not own.monotone
    unresolved = own.unresolved_variance * (value**2 if exponential else 1.0)
    sd = np.sqrt(sd**2 + np.maximum(((own_slopes @ scale_covariance) * own_slopes).sum(-1), 0.0) + unresolved)
    half = sd * quantile(freedom, level)
    if exponential:
        factor = np.exp(np.minimum(half / np.maximum(value, 1e-300), 700.0))
        return value, value / factor, value * factor
    low = np.maximum(value - half, 0.0) if own.positive else value - half
    return value, low, value + half


def _frame(arguments: Sequence[str], grid: Array, value: Array, low: Array, high: Array) -> pd.DataFrame:
    import pandas as pd

    columns = {name: grid[:, i] for i, name in enumerate(arguments)}
    return pd.DataFrame({**columns, "value": value, "low": low, "high": high})
