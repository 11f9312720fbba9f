"""Right-hand sides given as plain numpy functions, with derivatives by the complex step or differences.

Derivatives are exact to rounding by the complex step, f'(x) = Im f(x + ih)/h (Squire and Trapp, SIAM Review 40, 1998),
where the function allows it; otherwise they are central differences. Points are evaluated together where the function
works on arrays, otherwise one by one. Both are found out by comparison at the first points.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError, InputWarning

if TYPE_CHECKING:
    from odinfer.model.model import Model

Array = NDArray[np.float64]

_COMPLEX_STEP = 1e-30  # of the size of a variable: its square vanishes beside 1
_STEP = 6e-6  # of the size of a variable, for central differences: the cube root of the rounding error
_AGREE = 1e-4  # relative difference between complex step and central differences that counts as agreement
_SMALLEST = 1e-3  # size of a variable that is zero at every point, for central differences


class NamedArguments:
    """A function f(t, x, a, b) called as f(t, x, theta, u): parameters and inputs one by one."""

    def __init__(self, function: Callable[..., Any], count: int, driven: bool) -> None:
        self.function, self.count, self.driven = function, count, driven

    def __call__(self, t: Any, x: Any, theta: Any, u: Any = ()) -> Any:
        return self.function(t, x, *(theta[i] for i in range(self.count)), *(u if self.driven else ()))


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The arguments of a function after t and x.

    Raises:
        InputError: there are no t and x, or arguments without names.
    """
    found = list(inspect.signature(function).parameters.values())
    if len(found) < 2 or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        raise InputError("a model function is f(t, x, a, b), with a named argument per parameter")
    return tuple(p.name for p in found[2:])


def by_name(function: Callable[..., Any], parameters: Sequence[str], inputs: Sequence[str]) -> Callable[..., Any]:
    """The function as f(t, x, theta[, u]), whether it takes its parameters as a vector or by their names."""
    try:
        own = parameter_names(function)
    except (InputError, TypeError, ValueError):  # no signature: it takes vectors
        return function
    named = own == (*parameters, *inputs) and len(own) > 0
    return NamedArguments(function, len(parameters), bool(inputs)) if named else function


def is_traceable(model: Model) -> bool:
    """Whether a function computes with JAX, told by what it returns for numpy arrays."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = _call(
                model, 1.0, *(np.ones(len(names)) for names in (model.states, model.parameters, model.inputs))
            )
    except Exception:
        return False
    items = [found, *found] if isinstance(found, list | tuple) else [found]
    return any(type(item).__module__.partition(".")[0] in ("jax", "jaxlib") for item in items)


def _call(model: Model, t: Any, x: Any, theta: Any, u: Any) -> Any:
    return model.field(t, x, theta, u) if model.inputs or model.text is not None else model.field(t, x, theta)


class NumpyField:
    """f and its Jacobians at many points for a plain Python function."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._vectorised: bool | None = None
        self._complex: bool | None = None

    def evaluate(self, t: Array, x: Array, theta: Array, u: Array) -> Array:
        return np.asarray(self._values(t, x, theta, u), float)

    def linearise(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        K = x.shape[1]
        z, f = np.concatenate([x, theta], 1), self.evaluate(t, x, theta, u)
        if self._complex is None:
            self._complex = self._allows_complex(t, z, u)
        jacobian = self._by_complex_step(t, z, u) if self._complex else self._by_differences(t, z, u)
        return f, jacobian[..., :K], jacobian[..., K:]

    def _by_complex_step(self, t: Array, z: Array, u: Array) -> Array:
        """Jacobian (M, K, K + P) at z = (x, θ) (M, K + P)."""
        size = np.where(z == 0, 1.0, np.abs(z))
        columns = []
        for j in range(z.shape[1]):
            moved = z.astype(complex)
            moved[:, j] += 1j * _COMPLEX_STEP * size[:, j]
            columns.append(self._at(t, moved, u).imag / (_COMPLEX_STEP * size[:, j, None]))
        return np.stack(columns, -1)

    def _by_differences(self, t: Array, z: Array, u: Array) -> Array:
        typical = np.median(np.abs(z), axis=0)
        step = _STEP * np.maximum(np.abs(z), np.where(typical > 0, typical, _SMALLEST))
        columns = []
        for j in range(z.shape[1]):
            ahead, behind = z.copy(), z.copy()
            ahead[:, j] += step[:, j]
            behind[:, j] -= step[:, j]
            columns.append((self._at(t, ahead, u) - self._at(t, behind, u)) / (ahead - behind)[:, j, None])
        return np.stack(columns, -1)

    def _at(self, t: Array, z: Any, u: Array) -> Any:
        K = len(self.model.states)
        return self._values(t, z[:, :K], z[:, K:], u)

    def _allows_complex(self, t: Array, z: Array, u: Array) -> bool:
        """Whether the complex step agrees with differences here; `abs` and conversions to float do not allow it."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                exact, near = self._by_complex_step(t, z, u), self._by_differences(t, z, u)
        except Exception:
            agree = False
        else:
            scale = np.nanmax(np.abs(np.where(np.isfinite(near), near, 0.0)), axis=0, initial=0.0)
            bad = np.abs(exact - near) > _AGREE * (np.abs(near) + scale)
            agree = float(np.mean(bad & np.isfinite(near))) < 0.1  # differences are rough at kinks
        if not agree:
            warnings.warn(
                f"the function of model '{self.model.name}' is differentiated by differences (about six digits); "
                "functions without abs, float() and branches on values are differentiated exactly",
                InputWarning,
                stacklevel=2,
            )
        return agree

    def _values(self, t: Array, x: Any, theta: Any, u: Array) -> Any:
        """f (M, K), complex where the arguments are."""
        with np.errstate(all="ignore"):
            if self._vectorised is None:
                one_by_one = self._loop(t, x, theta, u)
                if len(t) > 1:
                    together = self._together(t, x, theta, u)
                    self._vectorised = together is not None and np.allclose(
                        together, one_by_one, rtol=1e-12, atol=0, equal_nan=True
                    )
                return one_by_one
            if self._vectorised and len(t) > 1:
                together = self._together(t, x, theta, u)
                if together is not None:
                    return together
            return self._loop(t, x, theta, u)

    def _together(self, t: Array, x: Any, theta: Any, u: Array) -> Any:
        """All points in one call; None where the function does not work on arrays."""
        try:
            found = _call(self.model, t, x.T, theta.T, u.T)
            rows = [np.broadcast_to(np.asarray(row) * 1.0, t.shape) for row in found]
        except Exception:
            return None
        return np.stack(rows, -1) if len(rows) == x.shape[1] else None

    def _loop(self, t: Array, x: Any, theta: Any, u: Array) -> Any:
        m = self.model
        rows = []
        for at in zip(t, x, theta, u, strict=True):
            try:
                row = np.atleast_1d(np.asarray(_call(m, *at)) * 1.0).reshape(-1)
            except IndexError as error:
                raise InputError(f"the field of model '{m.name}' uses an index that does not exist: {error}") from None
            except (ZeroDivisionError, OverflowError):
                row = np.full(len(m.states), np.nan)
            except Exception as error:
                reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
                raise InputError(f"the function of model '{m.name}' fails at t = {at[0]:g} ({reason})") from error
            if row.shape != (len(m.states),):
                raise InputError(f"the field of model '{m.name}' returns {row.size} values for {len(m.states)} states")
            rows.append(row)
        return np.stack(rows) if rows else np.empty(x.shape, dtype=x.dtype)
