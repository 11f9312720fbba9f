"""The vector field at many points at once, with its Jacobians: what all numerics ask of a model."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError

if TYPE_CHECKING:
    from odinfer.problem.model import Model

Array = NDArray[np.float64]


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
        out = np.asarray(self._traced("_linearised", t, x, theta, u))[:M]
        return out[..., 0], out[..., 1 : 1 + K], out[..., 1 + K :]

    def evaluate(self, t: Array, x: Array, theta: Array, u: Array) -> Array:
        if len(t) == 1:  # as integrators ask: half the time
            return np.asarray(self._traced("_value", t[0], x[0], theta[0], u[0]))[None]
        return np.asarray(self._traced("_values", t, x, theta, u))

    @functools.cached_property
    def _linearised(self) -> Callable[..., Any]:
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

    def _traced(self, name: str, *arguments: Array) -> Any:
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
