"""Parameters of a population, and the normal distribution of the latent values of each subject.

A latent value is the individual parameter on the scale on which its distribution is normal: its logarithm (lognormal),
its logit (logitnormal) or itself (normal). Subject i has latent values x_i ~ N(m_i(β), Ω) with one component for each
random effect; Ω is block-diagonal, with a full block for each group of correlated effects.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_number
from odinfer.errors import InputError, listed, nearest
from odinfer.model.differentiation import TextField
from odinfer.model.random_effects import RandomEffect
from odinfer.population.occasions import effects_of, with_occasions
from odinfer.problem.covariates import covariate_columns
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_PROBES, _SINGULAR = 5, 1e-8  # random parameters at which ranks are computed, and singular values that count as zero
_NEGLIGIBLE = 1e-4  # standard deviation of a latent value that changes no likelihood
_STEP = 1e-6  # of an unconstrained parameter, for derivatives of what is cheap and smooth
OMEGA_START = 0.3  # standard deviation of a latent value where a fit starts, about 30 %


@dataclass(frozen=True)
class Parameter:
    """A parameter of the population, estimated without bounds: ±∞ stands for the bounds of its range.

    Attributes:
        role: "centre", "fixed" (of the equations, equal in all subjects), "sigma", "omega" or "correlation".
        low, high: the range.
        unit: of one without any bound, which is estimated as a multiple of it.
    """

    name: str
    role: str
    low: float = -np.inf
    high: float = np.inf
    unit: float = 1.0

    def free(self, value: float) -> float:
        """The unconstrained number that stands for a value."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            share = (value - self.low) / (self.high - self.low)
            return float(np.log(share) - np.log1p(-share))
        if np.isfinite(self.low):
            return float(np.log(value - self.low))
        return float(-np.log(self.high - value)) if np.isfinite(self.high) else float(value) / self.unit

    def value(self, v: float) -> float:
        """The value that an unconstrained number stands for."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return float(self.low + (self.high - self.low) / (1.0 + np.exp(-v)))
        if np.isfinite(self.low):
            return float(self.low + np.exp(v))
        return float(self.high - np.exp(-v)) if np.isfinite(self.high) else float(v) * self.unit

    def slope(self, v: float) -> float:
        """Derivative of the value by the unconstrained number."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            p = 1.0 / (1.0 + np.exp(-v))
            return float((self.high - self.low) * p * (1.0 - p))
        if np.isfinite(self.low):
            return float(np.exp(v))
        return float(np.exp(-v)) if np.isfinite(self.high) else self.unit


def latent(family: str, value: Array) -> Array:
    """Values of a parameter on the scale on which its distribution is normal."""
    if family == "normal":
        return value
    return np.log(value) if family == "lognormal" else np.log(value) - np.log1p(-value)


def natural(family: str, x: Array) -> Array:
    """The inverse of `latent`."""
    if family == "normal":
        return x
    return np.exp(x) if family == "lognormal" else 1.0 / (1.0 + np.exp(-x))


def natural_slope(family: str, value: Array) -> Array:
    """Derivative of a parameter by its latent value, at values of the parameter."""
    if family == "normal":
        return np.ones_like(value)
    return value if family == "lognormal" else value * (1.0 - value)


@dataclass(frozen=True, eq=False)
class Structure:
    """The population's parameters and what they say about subjects.

    Attributes:
        problem: the equations, with the individual parameters, and the data; experiments are subjects.
        effects: the random effects, D of them.
        zero: names of effects whose standard deviation is zero: all subjects have the centre.
        units: of parameters without bounds, by name; 1 if not given.
        negligible: names of effects whose standard deviation is held at next to nothing, and of that deviation: zero
            if there is no other effect, since the integrals need one.
    """

    problem: Problem
    effects: tuple[RandomEffect, ...]
    zero: tuple[str, ...] = ()
    units: Mapping[str, float] = field(default_factory=dict)
    negligible: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(problem: Problem, zero: tuple[str, ...] = ()) -> Structure:
        """The structure of a problem whose model has random effects.

        Raises:
            InputError: a covariate is missing, an initial value is unknown, or there are too few subjects.
        """
        model = problem.model
        if (free := [model.states[k] for k in model.free_initial]) and problem.data:
            remedy = f"write {free[0]}(0) = 0, or {free[0]}(0) = {free[0]}0 with a parameter {free[0]}0"
            raise InputError(f"the initial value of '{free[0]}' is not given; {remedy}")
        if len(problem.data.experiments) < 2:
            by = model.declarations.effects.subject[0].by
            remedy = f"name the column that marks subjects 'subject', or leave `by {by}` out"
            raise InputError(f"parameters vary by {by}, but the data have one subject; {remedy}")
        for effect in model.declarations.effects.subject:
            if effect.name in problem.fixed:
                raise InputError(f"'{effect.name}' is fixed and varies by subject; leave one of the two out")
        expanded = with_occasions(problem)
        structure = Structure(expanded, effects_of(problem, expanded), zero)
        structure.covariates  # noqa: B018 (checks that none is missing)
        if unclear := structure._not_determined():
            remedy = "if one is a covariate, give the data its column (Python: covariates=[...]); else fix one of them"
            raise InputError(f"the centres of the random effects do not determine {listed(unclear)}; {remedy}")
        return structure

    def _not_determined(self) -> list[str]:
        """Parameters of centres that can change without a change of any subject's centre, by the rank of derivatives.

        Those that stand in the equations or the noise as well are left out.
        """
        names = [p.name for p in self.parameters if p.role == "centre" and p.name not in self.used_twice]
        places, rng, unclear = [self.place[name] for name in names], np.random.default_rng(0), set(names)
        for _ in range(_PROBES if names else 0):
            J = self.means(rng.normal(size=len(self.parameters)))[1][:, :, places].reshape(-1, len(names))
            J = J[np.isfinite(J).all(1)]
            size = np.sqrt((J**2).sum(0))
            _, singular, V = np.linalg.svd(J / np.where(size > 0, size, 1.0), full_matrices=True)
            rank = int((singular > _SINGULAR).sum())
            free = np.abs(V[rank:]).max(0, initial=0.0) > np.sqrt(_SINGULAR)
            unclear &= {name for name, own in zip(names, free, strict=True) if own}
        return [name for name in names if name in unclear]

    def without(self, name: str, unit: float = 1.0) -> Structure:
        """The same with the standard deviation of one effect, and of those that share it, at zero.

        Args:
            unit: the size of its latent values, if it is normal.
        """
        omega = next(e.omega for e in self.effects if e.name == name)
        shared = [e.name for e in self.effects if e.name == name or (e.omega == omega and isinstance(omega, str))]
        if {self.effects[i].name for i in self.active} <= {*shared}:
            held = tuple(replace(e, omega=_NEGLIGIBLE * unit) if e.name in shared else e for e in self.effects)
            return replace(self, effects=held, negligible={e: str(omega) for e in shared})
        return replace(self, zero=(*self.zero, *shared))

    @property
    def sparse(self) -> str:
        """A sentence if there are more random effects than observations, else nothing."""
        each = sum(e.deviates is None for e in self.effects)
        effects, count = each * len(self.subjects), int(self.problem.count.sum())
        if count >= effects:
            return ""
        return (
            f"There are more random effects ({effects}, {each} in each subject) than observations ({count}): their "
            "variation is hardly determined; let fewer parameters vary."
        )

    @property
    def varying(self) -> tuple[str, ...]:
        """Names of the effects whose standard deviation is not zero."""
        return tuple(name for i in self.active if (name := self.effects[i].name) not in self.negligible)

    @property
    def fixed_at_zero(self) -> dict[str, str]:
        """Effects whose standard deviation is zero, and its name if it was estimated."""
        return {e.name: str(e.omega) for e in self.effects if e.name in self.zero} | {**self.negligible}

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.problem.data.experiments)

    @functools.cached_property
    def active(self) -> Index:
        """The effects whose standard deviation is not zero (d,)."""
        return np.array([i for i, e in enumerate(self.effects) if e.name not in self.zero], np.int64)

    @functools.cached_property
    def covariates(self) -> tuple[tuple[str, ...], Array]:
        """Names, and values (E, C) of the covariates that stand in centres; labels as 0 and 1."""
        effects, experiments = self.problem.model.declarations.effects, self.problem.data.experiments
        labelled = {column for column, _ in effects.labels.values()}
        known = {name for e in experiments for name in e.covariates}
        names = [name for name in covariate_columns(self.problem.model) if name in known and name not in labelled]
        for e in experiments:
            for name in (*names, *sorted(labelled)):
                if name not in e.covariates:
                    raise InputError(
                        f"experiment '{e.name}' has no covariate '{name}'; add it, or leave the subject out"
                    )
        for name in names:
            if any(isinstance(e.covariates[name], str) for e in experiments):
                raise InputError(f"covariate '{name}' holds labels; compare it, as in where({name} == label, a, 1)")
        values = [[float(e.covariates[name]) for name in names] for e in experiments]
        flags = [[float(str(e.covariates[c]) == label) for c, label in effects.labels.values()] for e in experiments]
        rows = [[*a, *b] for a, b in zip(values, flags, strict=True)]
        return (*names, *effects.labels), np.array(rows).reshape(len(experiments), -1)

    @property
    def used_twice(self) -> tuple[str, ...]:
        """Parameters that stand in a centre and in the equations or the noise as well."""
        model = self.problem.model
        centres = {
            name
            for effect in model.declarations.effects.subject
            for name in model.declarations.effects.names_of_centre(effect)
        }
        return tuple(name for name in model.parameters if name in centres)

    @functools.cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What is estimated, in the order of the vector v."""
        p, omegas = self.problem, self._omegas
        spreads = {e.omega for e in self.effects} | {*self.negligible.values()}
        in_centres = [n for n in p.model.declarations.effects.names if n not in spreads and n not in self.covariates[0]]
        own = {e.name for e in self.effects}
        found = [self._centre(name) for name in in_centres if name not in p.fixed]
        structural = [n for n in p.model.parameters if n not in own and n not in p.fixed and n not in in_centres]
        found += [Parameter(n, "fixed", *self._range(n)) for n in structural]
        noise = [c for c, estimated in zip(p.columns, p.estimated_noise, strict=True) if estimated]
        found += [Parameter(f"sigma {c}", "sigma", 0.0) for c in noise]
        found += [Parameter(name, "omega", 0.0) for name in omegas if name not in p.fixed]
        pairs = [(a, b) for group in self.groups for j, b in enumerate(group) for a in group[:j]]
        every = (*found, *(Parameter(f"corr({a},{b})", "correlation") for a, b in pairs))
        return tuple(replace(own, unit=self.units.get(own.name, 1.0)) for own in every)

    def _range(self, name: str) -> tuple[float, float]:
        low, high = self.problem.limits(name)
        bounds = self.problem.bounds.get(name, (None, None))
        low = max(low, -np.inf if bounds[0] is None else bounds[0])
        return (max(low, 0.0) if self.problem.scale.get(name) == "log" else low), high

    def _centre(self, name: str) -> Parameter:
        """A parameter of a centre; one that multiplies the centre of a log-normal is positive."""
        given = self.problem.bounds.get(name, (None, None))
        low, high = (-np.inf if given[0] is None else given[0]), (np.inf if given[1] is None else given[1])
        families = {e.family for e in self.effects if name in e.factors}
        if "lognormal" in families or self.problem.scale.get(name) == "log":
            low = max(low, 0.0)
        if "logitnormal" in families:
            low, high = max(low, 0.0), min(high, 1.0)
        return Parameter(name, "centre", float(low), float(high))

    @functools.cached_property
    def _omegas(self) -> tuple[str, ...]:
        """The names of the standard deviations that are not zero."""
        every = [self.effects[i].omega for i in self.active]
        return tuple(dict.fromkeys(name for name in every if isinstance(name, str)))

    @functools.cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Groups of correlated effects that are not zero."""
        every = [tuple(n for n in g if n not in self.zero) for g in self.problem.model.declarations.effects.correlated]
        return tuple(group for group in every if len(group) > 1)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @functools.cached_property
    def place(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def values(self, v: Array) -> dict[str, float]:
        """The values of all parameters from the unconstrained vector v (Q,)."""
        found = {p.name: p.value(x) for p, x in zip(self.parameters, v, strict=True) if p.role != "correlation"}
        omega = self.covariance(v)
        sd = np.sqrt(np.maximum(np.diag(omega), 1e-300))
        order = [self.effects[i].name for i in self.active]
        for p in self.parameters:
            if p.role == "correlation":
                i, j = (order.index(name) for name in p.name[5:-1].split(","))
                found[p.name] = float(omega[i, j] / (sd[i] * sd[j]))
        return found

    def value_slopes(self, v: Array) -> Array:
        """Derivatives (Q, Q) of the values of all parameters, a row each, by the unconstrained vector."""
        columns = []
        for h in _STEP * np.eye(len(v)):
            up, down = self.values(v + h), self.values(v - h)
            columns.append([(up[name] - down[name]) / (2.0 * _STEP) for name in self.names])
        return np.array(columns).T.reshape(len(self.names), len(v))

    def vector(self, values: Mapping[str, float]) -> Array:
        """The unconstrained vector v (Q,) from values of all parameters.

        Raises:
            InputError: a value is missing, outside its range, or of nothing that there is.
        """
        known = (*self.names, *self.problem.fixed)
        for name, value in values.items():
            if name not in known:
                raise InputError(f"the population has no parameter '{name}'{nearest(str(name), known)}")
            checked_number(f"the value of '{name}'", value)
        v = np.zeros(len(self.parameters))
        for i, p in enumerate(self.parameters):
            if p.name not in values:
                raise InputError(f"'{p.name}' has no value; give all of {', '.join(self.names)}")
            if not p.low < float(values[p.name]) < p.high:
                raise InputError(f"'{p.name}' is {values[p.name]:g}, outside {p.low:g} to {p.high:g}")
            v[i] = p.free(float(values[p.name]))
        for group in self.groups:
            C = np.eye(len(group))
            for j in range(len(group)):
                for i in range(j):
                    C[i, j] = C[j, i] = values[f"corr({group[i]},{group[j]})"]
            try:
                L = np.linalg.cholesky(C)
            except np.linalg.LinAlgError:
                raise InputError(f"the correlations of {', '.join(group)} make no positive definite matrix") from None
            for j in range(len(group)):
                for i in range(j):
                    rest = np.sqrt(max(1.0 - (L[j, :i] ** 2).sum(), 1e-300))
                    v[self.place[f"corr({group[i]},{group[j]})"]] = np.arctanh(L[j, i] / rest)
        return v

    def covariance(self, v: Array) -> Array:
        """Ω (d, d) of the effects that are not zero."""
        L = self.cholesky(v)
        return L @ L.T

    def cholesky(self, v: Array) -> Array:
        """The lower factor of Ω (d, d), by canonical partial correlations (Lewandowski et al. 2009, section 2)."""
        effects, fixed = [self.effects[i] for i in self.active], self.problem.fixed
        sd = np.empty(len(effects))
        for i, effect in enumerate(effects):
            omega = effect.omega
            if isinstance(omega, str):
                omega = np.exp(v[self.place[omega]]) if omega in self.place else fixed[omega]
            sd[i] = omega
        L, order = np.eye(len(effects)), [e.name for e in effects]
        for group in self.groups:
            index = [order.index(name) for name in group]
            for b in range(1, len(group)):
                rest = 1.0
                for a in range(b):
                    z = np.tanh(v[self.place[f"corr({group[a]},{group[b]})"]])
                    L[index[b], index[a]] = z * np.sqrt(rest)
                    rest = max(rest - L[index[b], index[a]] ** 2, 0.0)
                L[index[b], index[b]] = np.sqrt(max(rest, 1e-30))
        return np.asarray(sd[:, None] * L)

    def covariance_slopes(self, v: Array) -> tuple[Index, Array]:
        """The parameters on which Ω depends (q,), and its derivatives by them (q, d, d)."""
        index = [i for i, p in enumerate(self.parameters) if p.role in ("omega", "correlation")]
        slopes = np.empty((len(index), len(self.active), len(self.active)))
        for k, i in enumerate(index):
            h = np.zeros(len(v))
            h[i] = _STEP
            slopes[k] = (self.covariance(v + h) - self.covariance(v - h)) / (2.0 * _STEP)
        return np.array(index, np.int64), slopes

    @functools.cached_property
    def _centres(self) -> TextField:
        effects = self.problem.model.declarations.effects
        names = tuple(n for n in effects.names if n not in self.covariates[0])
        return TextField(effects.code, tuple(e.centre for e in self.effects), ((), names, self.covariates[0]))

    def means(self, v: Array) -> tuple[Array, Array]:
        """Latent centres (E, D) of all effects, and their derivatives (E, D, Q); NaN where a centre is out of range."""
        p, E = self.problem, len(self.subjects)
        names = self._centres.names[1]
        theta = np.array([self._value(name, v) for name in names])
        at = (np.zeros(E), np.zeros((E, 0)), np.tile(theta, (E, 1)), self.covariates[1])
        with np.errstate(all="ignore"):
            c, _, by_theta = self._centres.linearise(*at)
            m = np.stack([latent(e.family, c[:, i]) for i, e in enumerate(self.effects)], 1)
            slope = np.stack([1.0 / natural_slope(e.family, c[:, i]) for i, e in enumerate(self.effects)], 1)
        by_v = np.zeros((E, len(self.effects), len(v)))
        for j, name in enumerate(names):
            if name in self.place and name not in p.fixed:
                i = self.place[name]
                by_v[:, :, i] = by_theta[:, :, j] * slope * self.parameters[i].slope(v[i])
        return m, by_v

    def _value(self, name: str, v: Array) -> float:
        if name in self.place:
            return self.parameters[self.place[name]].value(v[self.place[name]])
        return float(self.problem.fixed.get(name, np.nan))

    def individual(self, v: Array, e: Index, x: Array) -> Array:
        """The model's parameters (B, P) of subjects e (B,) with latent values x (B, D) of all effects."""
        model = self.problem.model
        theta = np.empty((len(e), len(model.parameters)))
        own = {effect.name: i for i, effect in enumerate(self.effects)}
        for j, name in enumerate(model.parameters):
            if name in own:
                theta[:, j] = natural(self.effects[own[name]].family, x[:, own[name]])
            else:
                theta[:, j] = self._value(name, v)
        return theta

    def sigma(self, v: Array) -> Array:
        """Noise standard deviations (M,) of the columns, NaN where the text says them otherwise."""
        found = self.problem.known_sigma.copy()
        for m, column in enumerate(self.problem.columns):
            if f"sigma {column}" in self.place:
                found[m] = np.exp(v[self.place[f"sigma {column}"]])
        return found
