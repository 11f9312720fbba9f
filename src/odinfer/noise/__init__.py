"""How one column of the data scatters about what is predicted: one file per family, and one line in `FAMILIES`.

A family has arguments, the predicted value first: `normal(x, sd)`, `poisson(m)`. It is a few functions of observed
values and arguments, arrays of any shapes that fit together, and knows nothing of models, problems or
states. Imports nothing but `checks` and `errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Rows(NamedTuple):
    """What Gauss–Newton needs of every observation: R residuals r (..., R), and their derivatives J (..., R, A) by the
    A arguments. The gradient of −log p is Σ_r r·J, Fisher's information (its positive part for single values) JᵀJ."""

    r: Array
    J: Array


class Family(Protocol):
    """The distribution of single observations.

    Attributes:
        arguments: what stands in the brackets, such as ("mean", "sd"); the predicted value comes first.
        least: how many of them must be given. Of those left out, `defaults` are numbers and the others are estimated.
        defaults: argument → value if it is left out.
        discrete: whether values are counts.
        profiled: whether an sd that is left out has a closed form: residuals are `transformed(y) − transformed(mean)`.
    """

    arguments: tuple[str, ...]
    least: int
    defaults: dict[str, float]
    discrete: bool
    profiled: bool

    def refuses(self, y: Array) -> str | None:
        """Why some of these values (those that are not NaN) cannot be observed, such as "must be positive"; or None."""

    def transformed(self, y: Array) -> Array:
        """On the scale on which the noise is symmetric: y itself, or log y."""

    def log_density(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        """log p of each value with its constants; also in JAX, with `xp` jax.numpy."""

    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        """Residuals and derivatives by the arguments."""

    def draw(self, rng: np.random.Generator, a: Sequence[Array]) -> Array:
        """One value for each of the arguments, which have one shape."""

    def log_cdf(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        """log P(Y ≤ y), accurate far out in the tails; for y of −∞ or ∞ too."""

    def log_sf(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        """log P(Y > y), accurate far out in the tails."""

    def quantile(self, p: Array, a: Sequence[Array]) -> Array:
        """The value below which a share p of the observations lies."""
