"""Evaluate the vector field and its Jacobians at many points, and check where it is finite."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError

if TYPE_CHECKING:
    from odinfer.model.model import Model
    from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_INSIDE = 1e-6  # of the spread of a state: so far from a bound at which the equations are not finite


class FieldDerivatives(Protocol):
    """f at M points t (M,), x (M, K), θ (M, P), u (M, U)."""

    def linearise(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        """f (M, K), ∂f/∂x (M, K, K), ∂f/∂θ (M, K, P)."""

    def evaluate(self, t: Array, x: Array, theta: Array, u: Array) -> Array:
        """f (M, K)."""


class TracedField:
    """By JAX, which traces the model's field once and compiles it for every number of points."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def linearise(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        M, K = x.shape
        # Few distinct sizes, few compilations: many points are padded to the next power of two.
        pad = (1 << (M - 1).bit_length()) - M if M > 100 else 0
        if pad:
            t, x, theta, u = (
                np.concatenate([a, np.broadcast_to(a[-1:], (pad, *a.shape[1:]))]) for a in (t, x, theta, u)
            )
        out = np.asarray(self._trace("_linearise", t, x, theta, u))[:M]
        return out[..., 0], out[..., 1 : 1 + K], out[..., 1 + K :]

    def evaluate(self, t: Array, x: Array, theta: Array, u: Array) -> Array:
        if len(t) == 1:  # as integrators ask: half the time
            return np.asarray(self._trace("_value", t[0], x[0], theta[0], u[0]))[None]
        return np.asarray(self._trace("_values", t, x, theta, u))

    @functools.cached_property
    def _linearise(self) -> Callable[..., Any]:
        from odinfer._jax import jax, jnp

        K, f = len(self.model.states), self.model.f

        def point(t: Any, x: Any, theta: Any, u: Any) -> Any:
            def stacked(z: Any) -> Any:
                return f(t, z[:K], z[K:], u)

            z = jnp.concatenate([x, theta])
            return jnp.concatenate([stacked(z)[:, None], jax.jacfwd(stacked)(z)], 1)

        self._check_indices()
        compiled: Callable[..., Any] = jax.jit(jax.vmap(point))
        return compiled

    @functools.cached_property
    def _values(self) -> Callable[..., Any]:
        from odinfer._jax import jax

        self._check_indices()
        compiled: Callable[..., Any] = jax.jit(jax.vmap(self.model.f))
        return compiled

    @functools.cached_property
    def _value(self) -> Callable[..., Any]:
        from odinfer._jax import jax

        self._check_indices()
        compiled: Callable[..., Any] = jax.jit(self.model.f)
        return compiled

    def _check_indices(self) -> None:
        """Refuse a field that reaches beyond its states or parameters: numpy says so, JAX takes the last instead."""
        m = self.model
        vectors = [np.ones(len(names)) for names in (m.states, m.parameters, m.inputs)]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                m.field(1.0, *vectors[: 3 if m.inputs or m.text is not None else 2])
        except IndexError as error:
            raise InputError(f"the field of model '{m.name}' uses an index that does not exist: {error}") from None
        except Exception:
            return  # tracing will say what is wrong

    def _trace(self, name: str, *arguments: Array) -> Any:
        try:
            return getattr(self, name)(*arguments)
        except InputError:
            raise
        except Exception as error:
            from odinfer._jax import jax

            kinds = (jax.errors.JAXTypeError, TypeError, ValueError, IndexError, AttributeError, NameError)
            if not isinstance(error, kinds):
                raise
            reason = str(error).splitlines()[0][:120]
            raise InputError(
                f"the field of model '{self.model.name}' cannot be traced by JAX ({reason}); use ordinary arithmetic "
                "or jax.numpy on t, x, theta, and jnp.where instead of if"
            ) from error


class FirstParameters:
    """A function field(t, x, theta[, u]) that knows the first of the parameters only; the others are not its own."""

    def __init__(self, field: Callable[..., Any], count: int, driven: bool) -> None:
        self.field, self.count, self.driven = field, count, driven

    def __call__(self, t: Any, x: Any, theta: Any, u: Any = ()) -> Any:
        own = theta[: self.count]
        return self.field(t, x, own, u) if self.driven else self.field(t, x, own)


class OneEquation:
    """The equation of state k of a model, whose other states come first among the inputs."""

    def __init__(self, whole: Model, k: int) -> None:
        self.whole, self.k = whole, k

    def __call__(self, t: Any, x: Any, theta: Any, u: Any = ()) -> Any:
        """The field of the equation alone at one point, for JAX."""
        from odinfer._jax import jnp

        k, others, u = self.k, len(self.whole.states) - 1, jnp.asarray(u, float)
        return self.whole.f(t, jnp.concatenate([u[:k], x, u[k:others]]), theta, u[others:])[k : k + 1]

    def linearise(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        k = self.k
        f, fx, ft = self.whole.linearise(t, *self._whole(x, theta, u))
        return f[:, k : k + 1], fx[:, k : k + 1, k : k + 1], ft[:, k : k + 1]

    def evaluate(self, t: Array, x: Array, theta: Array, u: Array) -> Array:
        return self.whole.evaluate(t, *self._whole(x, theta, u))[:, self.k : self.k + 1]

    def _whole(self, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        """States, parameters and inputs of the whole model."""
        others = len(self.whole.states) - 1
        return np.concatenate([u[:, : self.k], x, u[:, self.k : others]], 1), theta, u[:, others:]


def check_field(problem: Problem) -> None:
    """Raise InputError where the equations are not finite at the data, within the bounds of states."""
    model = problem.model
    for i, (t, x) in enumerate(_observed_points(problem)):
        x = np.clip(x, *problem.state_bounds)
        bad = np.ones(x.shape, bool)
        for theta in _thetas(problem):
            bad &= ~np.isfinite(model.evaluate(t, x, theta, problem.inputs_at(i, t)))
            if not bad.any():
                break
        if bad.any():
            n, k = np.argwhere(bad)[0]
            at = ", ".join(f"{s} = {v:g}" for s, v in zip(model.states, x[n], strict=True))
            raise InputError(
                f"the equation for '{model.states[k]}' is not finite at t = {t[n]:g} where the data are "
                f"{at}; bound the states (for example {model.states[k]} > 0) or check the equation"
            )


def within(problem: Problem, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds (K,) of the states of a plain problem, moved inside where equations or their slopes are not finite.

    A search that steps outside ends at a bound, and must be able to go on from there: v > 0 for v·log(K/v).
    """
    every = [(i, t, np.clip(x, low, high)) for i, (t, x) in enumerate(_observed_points(problem))]
    x = np.concatenate([x for _, _, x in every])
    spread = np.maximum(np.ptp(x, axis=0), np.abs(x).max(0))
    ends = low.copy(), high.copy()
    for k in np.flatnonzero(np.isfinite(low) | np.isfinite(high)).tolist():
        inner = _INSIDE * min(float(spread[k]), float(high[k] - low[k]))
        for end, side in zip(ends, (1.0, -1.0), strict=True):
            if np.isfinite(end[k]) and not _finite_at(problem, k, float(end[k]), every[0]):
                end[k] += side * inner
    return ends


def _finite_at(problem: Problem, k: int, end: float, first: tuple[int, Array, Array]) -> bool:
    """Whether the equations and their slopes are finite, for some parameters, where state k is at an end."""
    i, t, x = first
    x = x.copy()
    x[:, k] = end
    u = problem.inputs_at(i, t)
    with np.errstate(all="ignore"):
        for theta in _thetas(problem):
            if all(np.isfinite(part).all() for part in problem.model.linearise(t, x, theta, u)):
                return True
    return False


def _observed_points(problem: Problem) -> Iterator[tuple[Array, Array]]:
    """Times (N,) and data (N, K) of each experiment, gaps filled."""
    for e in problem.data.experiments:
        yield e.t, np.stack([_fill_gaps(e.t, column) for column in e.y.T], -1)


def _thetas(problem: Problem) -> Iterator[Array]:
    """Parameters (P,) of any size: what is finite for those of order one may not be for those that suit the data."""
    rng, F = np.random.default_rng(0), len(problem.free)
    sizes = [np.full(F, 1.0), np.full(F, 0.1), np.abs(rng.normal(size=F))]
    sizes += [10.0 ** rng.uniform(-decades, decades, F) for decades in (3.0, 6.0, 9.0, 12.0) for _ in range(5)]
    for size in sizes:
        yield problem.theta(np.clip(np.where(problem.is_log, np.log(size), size), *problem.phi_bounds))


def _fill_gaps(t: Array, y: Array) -> Array:
    seen = np.isfinite(y)
    return np.interp(t, t[seen], y[seen]) if seen.any() else np.zeros_like(y)
