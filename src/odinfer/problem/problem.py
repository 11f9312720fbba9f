"""`Problem`: a model, data and prior knowledge, with all checks on them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_number, checked_positive
from odinfer.data.data import Data, check_counts
from odinfer.errors import InputError, nearest
from odinfer.model.expression import state_of
from odinfer.model.model import Model
from odinfer.model.priors import Prior, named_prior
from odinfer.model.vector_field import FieldDerivatives, check_field, within
from odinfer.problem.condition import Condition
from odinfer.problem.covariates import with_covariates
from odinfer.problem.inequalities import Inequalities
from odinfer.problem.local_parameters import LocalParameters
from odinfer.problem.observables import (
    Column,
    Mask,
    Observe,
    check_observed,
    columns_of,
    influential,
    is_gaussian_state,
    observed_columns,
    statements,
)
from odinfer.problem.unknown_domains import domain_statements

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_DECLARED: tuple[str, ...] = ("bounds", "fixed", "start", "scale", "prior")
_SWITCH = 0.02  # half-width of a smooth switch, in median times between observations
_LARGEST = 1e75  # of what is measured, so that fourth powers are finite; its inverse is the smallest


class PriorAt(NamedTuple):
    """−log p(θ), its gradient (F,) and its curvature (F, F) on the scale of φ.

    The curvature is made convex, its negative part left out, since Gauss–Newton must go downhill.
    """

    value: float
    gradient: Array
    curvature: Array


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """What is to be inferred from what. Entries given here override the model's own declarations.

    Args:
        model: the equations: a Model, their text, the path of an .ode file, or a function f(t, x, a, b).
        data: the observations: Data, a DataFrame, a dictionary of columns, or the path of a CSV or Excel file. A column
            is a state, a definition of the model's text, or has a distribution of its own (`observe`). States without a
            column are hidden.
        bounds: name of a parameter or state → (low, high), None where open; "x(0)" is the initial value of x, here
            and in fixed, prior, start and scale.
        fixed: parameter → value that is not estimated.
        prior: parameter → text such as "normal(2, 0.5)", a frozen distribution of scipy.stats, a tuple
            ("normal", mean, sd), or a function value ↦ −log p; or one function {parameter: value} ↦ −log p for all.
        sigma: column of the data → known noise standard deviation; the others are estimated.
        noise: the same, or a distribution: a number or "poisson", "lognormal", … for every column, or either by column,
            such as {"prey": 0.1, "cases": "negbinomial"}.
        start: parameter → start value.
        scale: parameter → "log" (hence positive) or "linear" (any sign, unless a bound says otherwise).
        positive: whether parameters about which nothing is declared are positive and estimated on a log scale. By
            default those of models from text are (see `assumed_positive`); True: those of functions, too; False: none.
        observe: columns with their distributions, such as Observe("cases", "poisson(rho*I)").
        initial: state → its value at time 0: a number, or an expression such as "N - I(0)".
        local: parameters with one value per experiment, called k[experiment].
        events: such as "at 0, 12, 24: gut = gut + dose" or "when V > 1: V = 0".

    The last four are statements of the language of models, in which they can be written as well.

    Example:
        >>> import odinfer as od
        >>> model = od.Model.from_text("S' = -b*S*I/N; I' = b*S*I/N - g*I")
        >>> data = od.Data(range(6), [5, 14, 32, 74, 134, 143], states=["cases"])
        >>> problem = od.Problem(
        ...     model,
        ...     data,
        ...     observe=[od.Observe("cases", "poisson(b*S*I/N)")],
        ...     initial={"S": "N - I(0)"},
        ...     bounds={"I(0)": (0, 50)},
        ...     fixed={"N": 763},
        ...     scale={"b": "log", "g": "log"},
        ... )
        >>> problem.hidden, problem.free
        (('S', 'I'), ('b', 'g', 'I(0)'))
    """

    model: Model
    data: Data
    bounds: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    prior: Mapping[str, Any] | Callable[..., Any] = field(default_factory=dict)
    sigma: Mapping[str, float] = field(default_factory=dict)
    start: Mapping[str, float] = field(default_factory=dict)
    scale: Mapping[str, str] = field(default_factory=dict)
    positive: bool | None = None
    observe: Sequence[Observe] = ()
    initial: Mapping[str, Any] = field(default_factory=dict)
    local: Sequence[str] = ()
    events: Sequence[str] = ()
    noise: Any = None

    def __post_init__(self) -> None:
        self._read_input()
        self._add_statements(statements(self.model, self.observe, self.initial, self.local, self.events))
        self._declare_initial_values()
        m = self.model
        if m.declarations.effects:
            object.__setattr__(self, "data", with_covariates(m, self.data))
        object.__setattr__(self, "data", self.data.select(observed_columns(m, self.data)))
        self._add_statements(domain_statements(self.model, self.data))
        m = self.model
        self._smooth_switches()
        for option in _DECLARED:
            given = getattr(self, option)
            if callable(given):
                if self.split.any:
                    raise InputError("a joint prior cannot be used with local parameters; give one by parameter")
                continue
            known = (
                *self.parameters,
                *m.parameters,
                *m.declarations.effects.names,
                *(m.states if option == "bounds" else ()),
            )
            _check_names(option, given, known)
            object.__setattr__(self, option, self.split.spread({**getattr(m, option), **given}))
        _check_names("sigma", self.sigma, self.columns)
        for c in self.observed:
            if c.name in self.sigma and not c.profiled:
                raise InputError(f"sigma: the distribution of '{c.name}' says how it scatters; give it there")
        for e in self.data.experiments:
            for name in m.inputs:
                if name not in e.u:
                    raise InputError(f"input '{name}' has no values in experiment '{e.name}'; add a column '{name}'")
        if self.fully_observed_gaussian:
            check_counts(self.data)
        if all(len(self.condition(i).times) < 2 for i in range(len(self.data.experiments))):
            raise InputError("every experiment has one time only, so nothing is seen to change; add later times")
        if not self.fully_observed_gaussian or m.declarations.definitions:
            check_observed(self)
            self._start_undetermined()
        self._check_scales()
        self._check_values()

    def __repr__(self) -> str:
        parts = [
            f"{name}={dict(given)}"
            for name in (*_DECLARED, "sigma")
            if (given := getattr(self, name)) and not callable(given)
        ]
        return f"<Problem: {self.model!r}; {self.data!r}{''.join(f'; {part}' for part in parts)}>"

    def _read_input(self) -> None:
        """Accept text, functions, tables and the keyword `noise` in the forms that users pass."""
        given: Any = (self.model, self.data)
        if not isinstance(given[0], Model) or not isinstance(given[1], Data):
            from odinfer.problem.user_input import as_model_and_data

            model, data = as_model_and_data(*given)
            object.__setattr__(self, "model", model)
            object.__setattr__(self, "data", data)
        if self.noise is not None:
            from odinfer.problem.user_input import read_noise

            sds, observed = read_noise(self.noise, self.data.states)
            object.__setattr__(self, "sigma", {**self.sigma, **sds})
            object.__setattr__(self, "observe", (*self.observe, *observed))
            object.__setattr__(self, "noise", None)
        if isinstance(self.prior, Mapping):
            named = {name: named_prior(name, given) for name, given in self.prior.items()}
            object.__setattr__(self, "prior", named)

    def _declare_initial_values(self) -> None:
        """Make initial values parameters about which something is said beside the model's text, as "x(0)"."""
        from odinfer.problem.user_input import declared_initial_values

        given = [getattr(self, option) for option in _DECLARED]
        names = [name for own in given if isinstance(own, Mapping) for name in own]
        if text := declared_initial_values(self.model, names):
            self._add_statements(text)

    def _add_statements(self, text: str) -> None:
        """Take further statements into the model, where they stand from now on."""
        object.__setattr__(self, "model", self.model.with_statements(text))
        for name, nothing in (("observe", ()), ("initial", {}), ("local", ()), ("events", ())):
            object.__setattr__(self, name, nothing)

    def _smooth_switches(self) -> None:
        """Make conditions smooth whose times are parameters or inputs, so that these can be estimated."""
        gaps = np.concatenate([np.diff(np.unique(e.t)) for e in self.data.experiments])
        if self.model.switches and len(gaps):
            object.__setattr__(self, "model", self.model.smoothed(_SWITCH * float(np.median(gaps))))

    def _start_undetermined(self) -> None:
        """Start states that nothing observed depends on from zero, unless the model gives their initial values."""
        open_ended = [name for name in self.undetermined_states if name not in self.model.declarations.initial]
        if not open_ended:
            return
        begins = self.model.declarations.begins
        at = {"first": "t0", "zero": "0"}.get(begins, begins)
        names = {f.name for f in fields(self)}
        for cached in [name for name in self.__dict__ if name not in names]:
            del self.__dict__[cached]
        self._add_statements("; ".join(f"{name}({at}) = 0" for name in open_ended))
        self._smooth_switches()

    @functools.cached_property
    def _influential(self) -> tuple[Mask, Mask]:
        """Which states (K,) and parameters (P,) have an influence on any observed value."""
        return influential(self)

    @functools.cached_property
    def undetermined_states(self) -> tuple[str, ...]:
        """The hidden states that nothing observed depends on: the data do not determine their initial values."""
        if not self.hidden:
            return ()
        seen, _ = self._influential
        return tuple(name for name, own in zip(self.model.states, seen, strict=True) if not own)

    def _check_scales(self) -> None:
        """Refuse data in units in which their powers are not floats."""
        for name, values in zip(self.columns, np.concatenate([e.y for e in self.data.experiments]).T, strict=True):
            size = np.nanmax(np.abs(values), initial=0.0)
            if size > _LARGEST or 0 < size < 1 / _LARGEST:
                raise InputError(f"the values of '{name}' are of the size {size:.2g}; use other units")
        for e in self.data.experiments:
            for name in self.model.inputs:
                if (size := np.abs(e.u[name][1]).max()) > _LARGEST:
                    raise InputError(f"the values of input '{name}' are of the size {size:.2g}; use other units")
            for what, t in (("the times", e.t), *((f"the times of input '{u}'", e.u[u][0]) for u in self.model.inputs)):
                if np.abs(t).max() > _LARGEST:
                    raise InputError(f"experiment '{e.name}': {what} go to {np.abs(t).max():.2g}; use other units")
                if len(t) > 1 and (step := np.diff(t)).min() < 1 / _LARGEST:
                    first = t[step.argmin()]
                    raise InputError(f"experiment '{e.name}': two of {what} near {first:g} are {step.min():.2g} apart")

    def _check_values(self) -> None:
        for name, value in {**self.fixed, **self.start}.items():
            checked_number(f"the value of '{name}'", value)
        for name, scale in self.scale.items():
            if scale not in ("log", "linear"):
                raise InputError(f"the scale of '{name}' must be 'log' or 'linear', not '{scale}'")
        for name, sd in self.sigma.items():
            checked_positive(f"sigma of '{name}'", sd)
        for name in (*self.parameters, *self.model.states):
            low, high = self.limits(name)
            if not low < high:
                raise InputError(f"the lower bound of '{name}' ({low:g}) must be below the upper one ({high:g})")
            for what, values in (("start", self.start), ("fixed value", self.fixed)):
                value = values.get(name, low)
                if not low <= value <= high:
                    raise InputError(f"the {what} of '{name}' ({value:g}) is outside its bounds [{low:g}, {high:g}]")
                if name in values and value <= 0 and self.scale_of(name) == "log":
                    raise InputError(f"the {what} of '{name}' must be positive: it is on a log scale")

    def holding(self, name: str, value: float) -> Problem:
        """The same with a parameter that is not estimated; a value that misses a bound by rounding is at it."""
        for bound in self.limits(name):
            value = bound if np.isclose(value, bound, rtol=1e-12, atol=0.0) else value
        start = {k: v for k, v in self.start.items() if k != name}
        return replace(self, fixed={**self.fixed, name: value}, start=start)

    def alone(self, experiment: str) -> Problem:
        """The same of one experiment only; a local parameter is just a parameter there."""
        data = self.data.only(experiment)
        if not self.split.any:
            return replace(self, data=data)
        e = self.split.experiments.index(experiment)
        options: dict[str, Any] = {option: self.split.own(e, getattr(self, option)) for option in _DECLARED}
        return replace(self, data=data, **options)

    def limits(self, name: str) -> tuple[float, float]:
        """The interval in which a parameter or state lies, from bounds, scale, prior and positivity."""
        low, high = _pair(name, self.bounds.get(name, (None, None)))
        if name in self.parameters:
            if self.positive or self.scale_of(name) == "log":
                low = max(low, 0.0)
            if name in self.penalty.terms:
                support = self.penalty.terms[name].support
                low, high = max(low, support[0]), min(high, support[1])
        return low, high

    @functools.cached_property
    def assumed_positive(self) -> frozenset[str]:
        """The parameters that are positive because nothing else is declared about them.

        A scale, two bounds, a negative lower or non-positive upper bound, a start or fixed value that is not positive,
        or a prior with negative support declare something else.
        """
        if callable(self.prior) or self.positive is False or (self.positive is None and self.model.text is None):
            return frozenset()
        return frozenset(filter(self._may_be_assumed_positive, self.parameters))

    @property
    def assumed_positive_names(self) -> tuple[str, ...]:
        """The same by the model's names, those that are estimated, in its order."""
        found = {n.partition("[")[0] for n in self.assumed_positive if n not in self.fixed}
        return tuple(name for name in self.model.parameters if name in found)

    def _may_be_assumed_positive(self, name: str) -> bool:
        low, high = _pair(name, self.bounds.get(name, (None, None)))
        value = self.start.get(name, self.fixed.get(name, 1.0))
        support = self.penalty.terms[name].support[0] if name in self.penalty.terms else 0.0
        signed = (-np.inf < low < 0) or high <= 0 or support < 0 or (isinstance(value, int | float) and value <= 0)
        undeclared = name not in self.scale and state_of(name) is None
        return undeclared and not signed and bool(np.isinf(low) or np.isinf(high))

    def scale_of(self, name: str) -> str:
        """The scale on which a parameter is estimated: "log" or "linear"."""
        return self.scale.get(name) or ("log" if name in self.assumed_positive else "linear")

    @functools.cached_property
    def linear(self) -> Problem:
        """The same, with the parameters that are assumed positive on linear scales with a lower bound of zero.

        Equations are often linear in their parameters, so that slopes are matched by linear least squares.
        """
        names = self.assumed_positive
        bounds = {n: (max(_pair(n, self.bounds.get(n, (None, None)))[0], 0.0), self.limits(n)[1]) for n in names}
        scale = {**self.scale, **dict.fromkeys(names, "linear")}
        return replace(self, bounds={**self.bounds, **bounds}, scale=scale, positive=False) if names else self

    @functools.cached_property
    def penalty(self) -> Prior:
        """−log p(θ) with its derivatives."""
        return Prior.of(self.prior, self.parameters)

    @functools.cached_property
    def inequalities(self) -> Inequalities:
        """Those between expressions of parameters."""
        return Inequalities.of(self.model, self.split, len(self.data.experiments))

    @property
    def penalised(self) -> bool:
        """Whether there are priors or inequalities."""
        return bool(self.penalty) or bool(self.inequalities)

    def prior_at(self, phi: Array) -> PriorAt:
        """What the prior and inequalities say at φ (F,); zeros where there are none."""
        prior = self._prior_at(phi)
        if not self.inequalities:
            return prior
        value, g, H = self.inequalities.penalty(self.theta(phi))
        slope, index = self.slope(phi), self.free_index
        H = H[np.ix_(index, index)] * np.outer(slope, slope)
        return PriorAt(prior.value + value, prior.gradient + g[index] * slope, prior.curvature + H)

    def _prior_at(self, phi: Array) -> PriorAt:
        if not self.penalty:
            return self._no_prior
        value, g, H = self.penalty.derivatives(self.theta(phi))
        slope, index = self.slope(phi), self.free_index
        bend = np.where(self.is_log, g[index] * slope, 0.0)
        if self.penalty.joint is None:
            diagonal = H[index, index] * slope**2 + bend
            curvature = np.diag(np.where(np.isfinite(diagonal).all(), np.maximum(diagonal, 0.0), 0.0))
            return PriorAt(value, g[index] * slope, curvature)
        own = H[np.ix_(index, index)] * np.outer(slope, slope) + np.diag(bend)
        if not np.isfinite(own).all():
            return PriorAt(value, g[index] * slope, self._no_prior.curvature)
        w, V = np.linalg.eigh(own)
        return PriorAt(value, g[index] * slope, (V * np.maximum(w, 0.0)) @ V.T)

    @functools.cached_property
    def _no_prior(self) -> PriorAt:
        F = len(self.free)
        return PriorAt(0.0, np.zeros(F), np.zeros((F, F)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The observed columns of the data, in the order of `Experiment.y`: the states, where each is one."""
        return self.data.states

    @functools.cached_property
    def fully_observed_gaussian(self) -> bool:
        """Whether every state is observed as it is with Gaussian noise of one level, and starts anywhere.

        That is what the paper treats: a smoother can be fitted to every state.
        """
        declarations = self.model.declarations
        more = (
            declarations.initial
            or declarations.events
            or declarations.triggers
            or not all(is_gaussian_state(self.model, c) for c in declarations.columns)
        )
        rows = any(e.sd is not None or e.limit is not None or e.doses for e in self.data.experiments)
        return self.columns == self.model.states and not (more or rows or self.split.any)

    @functools.cached_property
    def observed(self) -> tuple[Column, ...]:
        """What the columns are, and how they scatter."""
        return columns_of(self.model, self.data)

    @functools.cached_property
    def observation_program(self) -> FieldDerivatives:
        """All arguments of all columns' distributions as a function of t, x, θ and u."""
        return self.model.program(tuple(i for c in self.observed for i in c.arguments))

    @functools.cached_property
    def hidden(self) -> tuple[str, ...]:
        """The states that are no column of the data."""
        return tuple(s for s in self.model.states if s not in self.columns)

    @functools.cached_property
    def split(self) -> LocalParameters:
        """Which parameters have one value per experiment."""
        return LocalParameters(
            self.model.parameters, self.model.declarations.local, tuple(e.name for e in self.data.experiments)
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """The model's parameters, those that are local once for every experiment, as k[experiment]."""
        return self.split.names

    def condition(self, e: int) -> Condition:
        """How experiment e starts and what drives it."""
        return self._conditions[e]

    @functools.cached_property
    def _conditions(self) -> tuple[Condition, ...]:
        return tuple(Condition.of(self.model, e) for e in self.data.experiments)

    def theta_of(self, e: int, phi: Array) -> Array:
        """The model's parameters (..., P) in experiment e, from φ (..., F)."""
        theta = self.theta(phi)
        return theta[..., self.split.of(e)] if self.split.any else theta

    @functools.cached_property
    def _own(self) -> tuple[tuple[Index, Index], ...]:
        place = {name: j for j, name in enumerate(self.free)}
        found = []
        for e in range(len(self.data.experiments)):
            names = [self.parameters[i] for i in self.split.of(e)]
            pairs = [(place[n], i) for i, n in enumerate(names) if n in place]
            found.append((np.array([j for j, _ in pairs], np.int64), np.array([i for _, i in pairs], np.int64)))
        return tuple(found)

    def own_phi(self, e: int) -> Index:
        """The places in φ of what experiment e depends on."""
        return self._own[e][0]

    def own_index(self, e: int) -> Index:
        """The places of these among the model's parameters."""
        return self._own[e][1]

    @functools.cached_property
    def count(self) -> NDArray[np.int64]:
        """Number of observations of every column (M,)."""
        return np.asarray(np.sum([np.isfinite(e.y).sum(0) for e in self.data.experiments], 0))

    @functools.cached_property
    def free(self) -> tuple[str, ...]:
        """Names of the estimated parameters."""
        return tuple(p for p in self.parameters if p not in self.fixed)

    @functools.cached_property
    def free_index(self) -> NDArray[np.int64]:
        """Their places among all parameters (F,)."""
        return np.array([i for i, p in enumerate(self.parameters) if p not in self.fixed], dtype=np.int64)

    @functools.cached_property
    def is_log(self) -> NDArray[np.bool_]:
        """Which of them are estimated on a log scale (F,)."""
        return np.array([self.scale_of(p) == "log" for p in self.free], dtype=bool)

    @functools.cached_property
    def _template(self) -> Array:
        return np.array([self.fixed.get(p, np.nan) for p in self.parameters])

    def theta(self, phi: Array) -> Array:
        """All parameters (..., P) from the free ones on their own scales (..., F)."""
        full = np.empty((*phi.shape[:-1], len(self._template)))
        full[...] = self._template
        full[..., self.free_index] = self._exp_where_log(phi, phi)
        return full

    def phi(self, theta: Array) -> Array:
        """The free parameters (..., F) on their own scales from all parameters (..., P)."""
        free = theta[..., self.free_index]
        return np.where(self.is_log, np.log(np.where(self.is_log, np.maximum(free, 1e-300), 1.0)), free)

    def slope(self, phi: Array) -> Array:
        """dθ/dφ of the free parameters (..., F)."""
        return self._exp_where_log(phi, np.ones(phi.shape))

    def _exp_where_log(self, phi: Array, otherwise: Array) -> Array:
        if not self.is_log.any():
            return otherwise
        with np.errstate(over="ignore"):  # a step of a search may go beyond all numbers
            return np.where(self.is_log, np.exp(np.where(self.is_log, phi, 0.0)), otherwise)

    @functools.cached_property
    def phi_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds (F,) of the free parameters on their own scales."""
        limits = np.array([self.limits(p) for p in self.free]).reshape(-1, 2)
        with np.errstate(divide="ignore"):
            low, high = (np.where(self.is_log, np.log(np.maximum(b, 0.0)), b) for b in limits.T)
        return low, high

    @functools.cached_property
    def state_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds (K,) of the states in the user's units, within those at which nothing is finite."""
        low, high = np.array([self.limits(s) for s in self.model.states]).T
        return (
            within(self, low, high) if self.fully_observed_gaussian and np.isfinite([low, high]).any() else (low, high)
        )

    @functools.cached_property
    def bounded(self) -> bool:
        """Whether any free parameter or state has a bound."""
        return any(np.isfinite(b).any() for b in (*self.phi_bounds, *self.state_bounds))

    @functools.cached_property
    def known_sigma(self) -> Array:
        """Noise standard deviations (M,), NaN where they are to be estimated."""
        return np.array([self.sigma.get(s, np.nan) for s in self.columns], dtype=float)

    @functools.cached_property
    def estimated_noise(self) -> tuple[bool, ...]:
        """Of which columns a standard deviation is estimated beside the parameters."""
        unknown = np.isnan(self.known_sigma)
        if self.fully_observed_gaussian:
            return tuple(unknown.tolist())
        rows = [any(e.sd is not None and np.isfinite(e.sd[:, m]).any() for e in self.data.experiments)
                for m in range(len(self.columns))]  # fmt: skip
        return tuple(bool(c.profiled and u and not r) for c, u, r in zip(self.observed, unknown, rows, strict=True))

    def inputs_at(self, experiment: int, t: Array) -> Array:
        """Known inputs (N, U) of an experiment at times t (N,)."""
        return self.condition(experiment).inputs_at(t)

    def corners(self, experiment: int) -> Array:
        """Times at which an input of an experiment bends visibly or anything jumps."""
        return self.condition(experiment).corners

    def check_field(self) -> None:
        """Raise InputError where the equations are not finite at the data, whatever the parameters."""
        check_field(self)


def _pair(name: str, given: Any) -> tuple[float, float]:
    """Declared bounds as two numbers, infinite where they are open."""
    try:
        low, high = given
    except (TypeError, ValueError):
        raise InputError(f"bounds of '{name}' must be a pair (low, high), not {given!r}") from None
    low = -np.inf if low is None else checked_number(f"the lower bound of '{name}'", low, finite=False)
    high = np.inf if high is None else checked_number(f"the upper bound of '{name}'", high, finite=False)
    return low, high


def _check_names(option: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if not isinstance(given, Mapping):
        raise InputError(f"{option} must be a dictionary by name, not {type(given).__name__}")
    names = set(known)
    for name in given:
        if name not in names:
            raise InputError(f"{option}: the model has no '{name}'{nearest(str(name), known)}")
