"""Model: states, parameters and the vector field f(t, x, θ[, u]), from a function or from text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.files import readable
from odinfer.model.differentiation import TextField
from odinfer.model.numpy_field import NamedArguments, NumpyField, by_name, is_traceable, parameter_names
from odinfer.model.parser import Code, Equations, parse
from odinfer.model.program import Instructions
from odinfer.model.switches import smoothed, switching
from odinfer.model.vector_field import FieldDerivatives, FirstParameters, OneEquation, TracedField

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class GivenInitial(NamedTuple):
    """The states whose initial values are given, and the program that gives them."""

    states: Index
    program: FieldDerivatives


_DECLARED = ("bounds", "fixed", "start", "scale", "prior")


@dataclass(frozen=True, eq=False)
class Model:
    """A system of ordinary differential equations with named states and parameters.

    Args:
        field: f(t, x, a, b), with an argument per parameter (and per input), or f(t, x, theta) or, with inputs,
            f(t, x, theta, u): scalar t, x (K,), theta (P,), u (U,) → K values. Ordinary arithmetic or numpy, which is
            differentiated by the complex step or by differences, or `jax.numpy`, which is traced by JAX.
        states: K names.
        parameters: P names; those of the function's arguments after t and x if not given.
        inputs: names of known inputs u(t), columns of the data.
        name: shown in results.
        bounds, fixed, start, scale, prior: what the model's author says about parameters (bounds also of
            states); a Problem may override each.
        text: the equations as the user wrote them, where there are any.
        evaluator: what evaluates f and its derivatives at many points, if it is not to be traced by JAX.
        statements: what the text says, or further statements about a model that is a function: what is observed and
            how, initial values, local parameters, events.

    Mostly it is made from text (`from_text`, `from_file`); a function does, too:

        >>> import odinfer as od
        >>> def decay(t, x, k):
        ...     return -k * x
        >>> od.Model(decay, states=["x"], bounds={"k": (0, 10)})
        Model 'model': states x; parameters k
    """

    field: Callable[..., Any]
    states: tuple[str, ...]
    parameters: tuple[str, ...] = None  # type: ignore[assignment]
    inputs: tuple[str, ...] = ()
    name: str = "model"
    bounds: Mapping[str, tuple[float, float]] = dataclass_field(default_factory=dict)
    fixed: Mapping[str, float] = dataclass_field(default_factory=dict)
    start: Mapping[str, float] = dataclass_field(default_factory=dict)
    scale: Mapping[str, str] = dataclass_field(default_factory=dict)
    prior: Mapping[str, Any] = dataclass_field(default_factory=dict)
    text: str | None = None
    evaluator: FieldDerivatives | None = dataclass_field(default=None, repr=False)
    statements: Equations | None = dataclass_field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.field):
            raise InputError("the field of a Model must be a function f(t, x, a, b); for text use Model.from_text")
        given: Any = self.parameters
        if given is None:
            names = tuple(n for n in parameter_names(self.field) if n not in self.inputs)
            object.__setattr__(self, "parameters", names)
        for group in ("states", "parameters", "inputs"):
            names = getattr(self, group)
            if isinstance(names, str):
                raise InputError(f"{group} must be a list of names, not the text '{names}'")
            object.__setattr__(self, group, tuple(names))
        if self.text is None and self.evaluator is None and not isinstance(self.field, NamedArguments):
            object.__setattr__(self, "field", by_name(self.field, self.parameters, self.inputs))
        if not self.states:
            raise InputError("a model needs at least one state")
        seen: set[str] = set()
        for name in (*self.states, *self.parameters, *self.inputs):
            if not isinstance(name, str) or not name.strip():
                raise InputError(f"names of states, parameters and inputs must be text, not {name!r}")
            if name in seen:
                raise InputError(f"the name '{name}' is used twice in the model")
            if name in ("t", "time"):
                raise InputError(f"'{name}' is reserved and cannot name a state, parameter or input")
            seen.add(name)

    @staticmethod
    def from_text(text: str, name: str = "model", inputs: Sequence[str] = (), spare: bool = False) -> Model:
        """A model from equations such as "x' = -k*x"; docs/equations.md has the whole language.

        Args:
            text: equations and declarations.
            name: shown in results.
            inputs: names to take as known inputs u(t) besides those the text declares.
            spare: leave out what is declared but not used, instead of refusing it.

        Raises:
            InputError: naming the line and what to change.

        Example:
            >>> import odinfer as od
            >>> model = od.Model.from_text('''
            ...     n' = r*n*(1 - n/K)
            ...     log r, K           # positive, of any size
            ...     seen ~ poisson(n)  # the column of the data: counts
            ... ''', name="growth")
            >>> model.states, model.parameters
            (('n',), ('r', 'K'))
        """
        e = parse(text, inputs, spare)
        evaluator = TextField(e.code, e.outputs, (e.states, e.parameters, e.inputs))
        return Model(
            e.field, e.states, e.parameters, e.inputs, name, e.bounds, e.fixed, e.start, e.scale, e.prior, e.text,
            evaluator, e,
        )  # fmt: skip

    @staticmethod
    def from_file(path: str | Path, inputs: Sequence[str] = ()) -> Model:
        """A model from an `.ode` file; its name is the file's."""
        path = Path(path)
        return Model.from_text(read_text(path), path.stem, inputs)

    def with_statements(self, text: str) -> Model:
        """The same with further statements, such as "cases ~ poisson(rho*I)" or "S(0) = N - I(0)"; see from_text."""
        if not text.strip():
            return self
        before = "" if self.text is None else f"{self.text}\n"
        try:
            if self.text is not None:
                return Model.from_text(before + text, self.name, self.inputs)
            e = parse(text, self.inputs, of=(self.states, self.parameters))
        except InputError as error:
            raise _by_statement(error, text, before.count("\n")) from None
        given: dict[str, Any] = {name: {**getattr(self, name), **getattr(e, name)} for name in _DECLARED}
        field = FirstParameters(self.field, len(self.parameters), bool(self.inputs))
        return Model(field, self.states, e.parameters, self.inputs, self.name, **given, statements=e)

    @functools.cached_property
    def declarations(self) -> Equations:
        """What the text says besides the equations; nothing of a model that is a function only."""
        return self.statements or _silent(self)

    @functools.cached_property
    def switches(self) -> frozenset[str]:
        """The parameters and inputs that the times of switches depend on, such as tau of where(t < tau, 0, k)."""
        field = Instructions()
        field.code = list(self.declarations.code)
        every = (field.leaves(i) for i, _ in self._switching)
        return frozenset(name for names in every for name in names) - {"t"}

    @functools.cached_property
    def _switching(self) -> list[tuple[int, float]]:
        """The comparisons behind `switches`, and by how much what they compare moves apart in a unit of time."""
        if not isinstance(self.evaluator, TextField) or self.text is None:
            return []
        return switching(self.declarations.code, self.states)

    def switch_times(self, theta: Array, u: Array) -> Array:
        """Compute the times of those switches at parameters (P,) and constant inputs (U,)."""
        if not self._switching:
            return np.empty(0)
        sides = [j for i, _ in self._switching for j in self.declarations.code[i][1]]
        at_zero = np.zeros(1), np.zeros((1, len(self.states))), theta[None], u[None]
        with np.errstate(all="ignore"):
            a, b = self.program(tuple(sides)).evaluate(*at_zero)[0].reshape(-1, 2).T
            times = (b - a) / np.array([rate for _, rate in self._switching])
        return np.unique(times[np.isfinite(times)])

    @property
    def _exact(self) -> TextField:
        """The field of a model from text as it is written."""
        return TextField(self.declarations.code, self.declarations.outputs, (self.states, self.parameters, self.inputs))

    def smoothed(self, width: float) -> Model:
        """The same with smooth switches of a width in time; see `odinfer.model.switches`."""
        return replace(self, evaluator=smoothed(self._exact, width))

    @functools.cached_property
    def with_sharp_switches(self) -> Model:
        """The same with switches as they are written."""
        return replace(self, evaluator=self._exact) if self._switching else self

    def program(self, instructions: tuple[int, ...]) -> FieldDerivatives:
        """Some instructions of the text as a function of t, x, θ and u with derivatives."""
        if instructions not in self._programs:
            names = self.states, self.parameters, self.inputs
            self._programs[instructions] = TextField(self.code, instructions, names)
        return self._programs[instructions]

    def instruction(self, name: str) -> int:
        """That of a state or a definition."""
        return (
            self.declarations.definitions[name]
            if name in self.declarations.definitions
            else self.code.index(("name", (name,)))
        )

    @functools.cached_property
    def code(self) -> Code:
        """The instructions of the text, those of the names of all states included."""
        known = set(self.declarations.code)
        return (*self.declarations.code, *(own for s in self.states if (own := ("name", (s,))) not in known))

    @functools.cached_property
    def _programs(self) -> dict[tuple[int, ...], FieldDerivatives]:
        return {}

    @functools.cached_property
    def given_initial(self) -> GivenInitial | None:
        """Of which states initial values are given, as known values or by parameters, and how."""
        if not self.declarations.initial:
            return None
        states = np.array([self.states.index(name) for name in self.declarations.initial], dtype=np.int64)
        return GivenInitial(states, self.program(tuple(self.declarations.initial.values())))

    @functools.cached_property
    def free_initial(self) -> Index:
        """The states whose initial values are unknowns of their own."""
        return np.array(
            [k for k, name in enumerate(self.states) if name not in self.declarations.initial], dtype=np.int64
        )

    def f(self, t: Any, x: Any, theta: Any, u: Any) -> Any:
        """The vector field as one JAX array (K,)."""
        from odinfer._jax import jnp

        takes_u = self.text is not None or bool(self.inputs)
        values = self.field(t, x, theta, u) if takes_u else self.field(t, x, theta)
        if isinstance(values, (list, tuple)):
            values = jnp.stack([jnp.reshape(jnp.asarray(v, dtype=float), ()) for v in values])
        values = jnp.atleast_1d(jnp.asarray(values, dtype=float))
        if values.shape != (len(self.states),):
            raise InputError(
                f"the field of model '{self.name}' returns {values.size} values for {len(self.states)} states"
            )
        return values

    @functools.cached_property
    def derivatives(self) -> FieldDerivatives:
        """What evaluates f and its Jacobians at many points: given, as for models from text, JAX's, or numpy's."""
        return self.evaluator or (TracedField(self) if is_traceable(self) else NumpyField(self))

    def linearise(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        """f and its Jacobians at M points.

        Args:
            t: times (M,).
            x: states (M, K).
            theta: parameters (P,) or one set per point (M, P).
            u: inputs (M, U).

        Returns:
            f (M, K), ∂f/∂x (M, K, K), ∂f/∂θ (M, K, P).
        """
        return self.derivatives.linearise(t, x, self._everywhere(theta, len(t)), u)

    def evaluate(self, t: Array, x: Array, theta: Array, u: Array) -> Array:
        """f (M, K) at M points t (M,), x (M, K), u (M, U), for one θ (P,) or one per point (M, P)."""
        return self.derivatives.evaluate(t, x, self._everywhere(theta, len(t)), u)

    def _everywhere(self, theta: Array, M: int) -> Array:
        """θ (M, P) from one θ or one per point."""
        shape = M, len(self.parameters)
        return theta if isinstance(theta, np.ndarray) and theta.shape == shape else np.broadcast_to(theta, shape)

    def equation(self, k: int) -> Model:
        """The equation of state k alone: a model of one state, with the other states, then the inputs, as inputs.

        It is evaluated by this model, so nothing is compiled again.
        """
        if not 0 <= k < len(self.states):
            raise InputError(f"model '{self.name}' has equations 0 to {len(self.states) - 1}, not {k}")
        others, own = (*self.states[:k], *self.states[k + 1 :]), OneEquation(self, k)
        name = f"{self.name}: {self.states[k]}"
        return Model(own, (self.states[k],), self.parameters, others + self.inputs, name, evaluator=own)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: what was compiled here stays here."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        return f"Model '{self.name}': states {', '.join(self.states)}; parameters {', '.join(self.parameters)}"


def _silent(model: Model) -> Equations:
    """What is said of a model that is a function only."""
    return Equations(model.states, model.parameters, model.inputs, {}, {}, {}, {}, {}, "", (), ())


def _by_statement(error: InputError, text: str, before: int) -> InputError:
    """An error about further statements, which names the statement instead of a line that nobody wrote."""
    found = re.match(r"line (\d+): (.*)", str(error), re.DOTALL)
    if found is None or int(found[1]) <= before:
        return error
    return InputError(f"'{text.splitlines()[int(found[1]) - before - 1]}': {found[2]}")


def read_text(path: Path) -> str:
    """The text of a model file, or an error that says why it cannot be read."""
    try:
        return readable(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"model file '{path}' does not exist") from None
    except IsADirectoryError:
        raise InputError(f"model file '{path}' is a folder") from None
    except UnicodeDecodeError:
        raise InputError(f"model file '{path}' is not UTF-8 text; save it as UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a zero character in the path
        raise InputError(f"model file {str(path)!r} cannot be read: {getattr(error, 'strerror', error)}") from None
