"""Start values of a population fit: a pooled fit, then individual fits near it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.population.modes import find_modes
from odinfer.population.nodes import Engine
from odinfer.population.structure import OMEGA_START, Structure, latent, natural, natural_slope
from odinfer.population.subjects import BatchSolution, Subjects
from odinfer.scaling.dimensional_analysis import natural_sizes_of_free

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_GUESSES, _FOLLOWED, _ITERATIONS = 256, 16, 40
_ROUNDS, _AGREE, _SAME = 8, 4, 0.5  # rounds of starts at most; starts that must agree, and to which log-likelihood
_APART = 0.7  # standard deviations of all starts: those that are followed are further apart
_SPREAD = 2.0  # standard deviation of the logarithms of random starts, a factor of 7
_MOST_SUBJECTS = 20  # that take part in the fit to all together
_LARGEST_STEP = 1.5  # of a latent value or an unconstrained parameter
_MODES, _DISTINCT, _WORSE = 3, 0.5, 20.0  # modes kept, how far apart (latent values), and log-likelihood lost at most
_WORSE_EACH = 0.05  # the same for each observation: without random effects, likelihoods differ by more than they should
_SETTLED = 1e-2  # log-likelihood that a step of the fit to all gains in the end


def with_units(structure: Structure) -> Structure:
    """The same with parameters without bounds in units that change a latent value, or the equations, by its size.

    Steps, differences and limits of a search are in these units, so that they do not depend on the units of the data.
    """
    p, v, units = structure.problem, _default(structure), dict[str, float]()
    size = dict(zip(p.free, np.abs(natural_sizes_of_free(p)), strict=True))
    latent_size = np.array([size.get(e.name, 1.0) if e.family == "normal" else 1.0 for e in structure.effects])
    unbounded = {
        q.name: i
        for i, q in enumerate(structure.parameters)
        if q.role in ("centre", "fixed") and np.isinf(q.low) and np.isinf(q.high)
    }
    for effect, own in zip(structure.effects, latent_size, strict=True):
        for name in effect.factors:
            if name in unbounded and effect.family == "normal":
                units[name] = v[unbounded[name]] = float(own)
    slopes = np.sqrt((structure.means(v)[1] ** 2).mean(0))
    for name, i in unbounded.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = float(np.nanmin(np.append(latent_size / slopes[:, i], np.inf)))
        units.setdefault(name, unit if 0.0 < unit < np.inf else float(size.get(name, 1.0)))
    return replace(structure, units=units)


def start_vectors(structure: Structure, seed: int = 0) -> list[Array]:
    """Unconstrained parameters (Q,) from which the likelihood can be climbed: one for each mode of the pooled fit."""
    default = _default(structure)
    return [_individual_fits(structure, default, *found) for found in _pool(structure, seed)]


def _individual_fits(structure: Structure, v: Array, pooled: dict[str, float], sigma: Array) -> Array:
    """Centres and spreads of fits to single subjects about a fit to all together."""
    given, v = structure.problem.start, v.copy()
    for i, p in enumerate(structure.parameters):
        if p.role == "fixed" and p.name not in given:
            v[i] = p.free(float(np.clip(pooled[p.name], p.low + 1e-12, p.high - 1e-12)))
        elif p.role == "sigma":
            v[i] = np.log(sigma[structure.problem.columns.index(p.name[6:])])
    centre = [float(latent(e.family, np.array(pooled[e.name]))) for e in structure.effects]
    x = np.tile(centre, (len(structure.subjects), 1))
    v = _regress(structure, v, x)
    engine, wide = Engine(structure), v.copy()
    for i, p in enumerate(structure.parameters):
        if p.role == "omega" and p.name not in given:
            wide[i] = np.log(_unit(structure, p.name, x))
    modes = find_modes(engine, wide)
    m, L = structure.means(wide)[0], structure.cholesky(wide)
    fitted = m.copy()
    fitted[:, structure.active] += np.clip(modes.u, -3.0, 3.0) @ L.T
    v = _regress(structure, v, fitted)
    spread = (fitted - structure.means(v)[0]).std(0)
    for i, p in enumerate(structure.parameters):
        if p.role == "omega" and p.name not in given:
            unit = _unit(structure, p.name, x)
            sd = max(spread[j] for j, e in enumerate(structure.effects) if e.omega == p.name)
            v[i] = np.log(np.clip(sd, 0.1 * unit, 1.0 * unit))
    return v


def _unit(structure: Structure, omega: str, x: Array) -> float:
    """The size of one standard deviation of a latent value: 1 on log and logit scales, else the value itself."""
    found = [
        1.0 if e.family != "normal" else float(np.abs(x[:, i]).mean()) or 1.0
        for i, e in enumerate(structure.effects)
        if e.omega == omega
    ]
    return max(found)


def _default(structure: Structure) -> Array:
    """Values as given, or neutral ones: factors 1, exponents and slopes 0."""
    given, v = structure.problem.start, np.zeros(len(structure.parameters))
    for i, p in enumerate(structure.parameters):
        if p.name in given:
            v[i] = p.free(float(given[p.name]))
        elif p.role == "omega":
            v[i] = np.log(OMEGA_START)
    for i, p in enumerate(structure.parameters):  # a factor within where(...) must not be zero
        if p.role == "centre" and p.name not in given and not np.isfinite(structure.means(v)[0]).all():
            trial = v.copy()
            trial[i] = 1.0 if np.isinf(p.low) and np.isinf(p.high) else 0.0
            if np.isfinite(structure.means(trial)[0]).sum() > np.isfinite(structure.means(v)[0]).sum():
                v = trial
    return v


def _regress(structure: Structure, v: Array, x: Array) -> Array:
    """Parameters of the centres that come closest to latent values x (E, D), by damped Gauss–Newton."""
    places = [
        i for i, p in enumerate(structure.parameters) if p.role == "centre" and p.name not in structure.problem.start
    ]
    if not places:
        return v
    damping, v = 1e-6, v.copy()
    m, by_v = structure.means(v)
    cost = np.nansum((x - m) ** 2) if np.isfinite(m).all() else np.inf
    for _ in range(_ITERATIONS):
        J, r = by_v[:, :, places].reshape(-1, len(places)), (x - m).ravel()
        H = J.T @ J + damping * np.eye(len(places))
        step = np.clip(np.linalg.solve(H, J.T @ r), -5.0, 5.0)
        trial = v.copy()
        trial[places] += step
        m_new, by_new = structure.means(trial)
        new = ((x - m_new) ** 2).sum() if np.isfinite(m_new).all() else np.inf
        if new <= cost:
            v, m, by_v, cost, damping = trial, m_new, by_new, new, damping * 0.1
            if np.abs(step).max() < 1e-8:
                break
        else:
            damping = max(damping, 1e-9) * 10.0
    return v


@dataclass(frozen=True, eq=False)
class _Pooled:
    """A fit to all subjects as if they were one.

    Attributes:
        free: places (F,) of the model's parameters that are estimated.
        kinds: families of the scales on which they are.
        known: values of the others.
        chosen: the subjects that take part.
    """

    structure: Structure
    subjects: Subjects
    free: tuple[int, ...]
    kinds: tuple[str, ...]
    known: Mapping[str, float]
    chosen: Index

    @staticmethod
    def of(structure: Structure) -> _Pooled:
        p = structure.problem
        known = {**p.fixed, **_known_centres(structure)}
        free = tuple(i for i, n in enumerate(p.model.parameters) if n not in known)
        family = {e.name: e.family for e in structure.effects}
        low = {q.name: q.low for q in structure.parameters}

        def kind(name: str) -> str:
            log = p.scale.get(name) == "log" or low.get(name, -np.inf) >= 0.0
            return family.get(name, "lognormal" if log else "normal")

        kinds = tuple(kind(p.model.parameters[i]) for i in free)
        E = len(structure.subjects)
        chosen = np.unique(np.linspace(0, E - 1, min(E, _MOST_SUBJECTS)).astype(int))
        return _Pooled(structure, Subjects(p, np.array(free, np.int64)), free, kinds, known, chosen)

    @property
    def names(self) -> list[str]:
        return [self.structure.problem.model.parameters[i] for i in self.free]

    @functools.cached_property
    def units(self) -> Array:
        """The size of a unit on the scale of each parameter (F,): 1 on log and logit scales."""
        size = np.abs(natural_sizes_of_free(self.structure.problem))
        by_name = dict(zip(self.structure.problem.free, size, strict=True))
        pairs = zip(self.names, self.kinds, strict=True)
        return np.array([by_name[name] if kind == "normal" else 1.0 for name, kind in pairs])

    def guesses(self, rng: np.random.Generator) -> Array:
        """Random starts (_GUESSES, F) about natural sizes."""
        p = self.structure.problem
        size = dict(zip(p.free, np.abs(natural_sizes_of_free(p)), strict=True))
        w = rng.normal(scale=_SPREAD, size=(_GUESSES, len(self.free)))
        varying = {e.name for e in self.structure.effects}
        for j, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True)):
            if kind == "lognormal":
                w[:, j] += np.log(size[name])
            elif kind == "normal":
                w[:, j] = size[name] * np.exp(w[:, j]) * np.where(rng.random(_GUESSES) < 0.5, -1.0, 1.0)
            if name in p.start and name not in varying:
                w[:, j] = float(latent(kind, np.array(p.start[name])))
        return w

    def objective(
        self, w: Array, slopes: bool = False, chosen: Index | None = None
    ) -> tuple[Array, Array, Array, Array]:
        """−log-likelihood (B,), its gradient and Gauss–Newton matrix, and the most likely noise, at w (B, F)."""
        p, subjects, (B, F) = self.structure.problem, self.subjects, w.shape
        chosen = self.chosen if chosen is None else chosen
        n = len(chosen)
        theta = np.tile([self.known.get(name, np.nan) for name in p.model.parameters], (B, 1))
        with np.errstate(all="ignore"):
            for j, (i, kind) in enumerate(zip(self.free, self.kinds, strict=True)):
                theta[:, i] = natural(kind, w[:, j])
            solved = subjects.solve(np.tile(chosen, B), np.repeat(theta, n, 0), slopes)
            a = subjects.arguments(solved)
            run = solved.node // n
            sigma = self._noise(solved, a, run, B)
            value = np.zeros(B)
            g, H = np.zeros((B, F)), np.tile(np.eye(F), (B, 1, 1))
            for b in range(B):
                own = run == b
                if not np.isfinite(solved.x[own]).all() or not np.isfinite(sigma[b][~np.isnan(sigma[b])]).all():
                    value[b] = np.inf
                    continue
                value[b] = -subjects.log_density(a[own], solved.row[own], sigma[b]).sum()
                if slopes and np.isfinite(value[b]):
                    _, by, _ = subjects.linearised(solved.points(own))
                    r, J = subjects.rows(a[own], solved.row[own], sigma[b])
                    pairs = zip(self.free, self.kinds, strict=True)
                    slope = np.array([natural_slope(k, theta[b, i]) for i, k in pairs])
                    JW = J[..., : a.shape[1]] @ (by * slope)
                    g[b], H[b] = np.einsum("mr,mrf->f", r, JW), np.einsum("mrf,mrh->fh", JW, JW)
        return np.where(np.isfinite(value), value, np.inf), g, H, sigma

    def search(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Ends (B, F) of random starts, with objectives (B,) and noise, until several agree that they are the best."""
        ends: list[tuple[Array, Array, Array]] = []
        for _ in range(_ROUNDS):
            w = self.guesses(rng)
            value = self.objective(w, chosen=self.chosen[:: max(1, len(self.chosen) // 6)])[0]
            ends.append(self.follow(_spread_out(w[np.argsort(value)], np.sort(value))))
            found = np.concatenate([value for _, value, _ in ends])
            if (found < found.min() + _SAME).sum() >= _AGREE:
                break
        w, value, sigma = (np.concatenate(parts) for parts in zip(*ends, strict=True))
        return w, value, sigma

    def _noise(self, solved: BatchSolution, a: Array, run: Index, B: int) -> Array:
        """The most likely noise of every run (B, columns), where it is estimated."""
        p, subjects = self.structure.problem, self.subjects
        sigma, predicted = np.tile(p.known_sigma, (B, 1)), subjects.predictions(a, solved.row)
        for m, column in enumerate(p.observed):
            if column.profiled and np.isnan(p.known_sigma[m]):
                here = subjects.column[solved.row] == m
                y = subjects.y[solved.row[here]]
                off = (column.family.transformed(y) - column.family.transformed(predicted[here])) ** 2
                count = np.maximum(np.bincount(run[here], minlength=B), 1)
                total = np.bincount(run[here], np.where(np.isfinite(off), off, np.inf), B)
                sigma[:, m] = np.sqrt(np.maximum(total / count, 1e-12 * np.nanmean(y**2) + 1e-300))
        return sigma

    def follow(self, w: Array) -> tuple[Array, Array, Array]:
        """Levenberg–Marquardt from every start side by side."""
        value, g, H, sigma = self.objective(w, slopes=True)
        damping, bounded = np.full(len(w), 1e-2), np.array([k != "normal" for k in self.kinds])
        for _ in range(_ITERATIONS):
            D = np.einsum("bii->bi", H) + 1e-8
            M = H + (damping[:, None] * D)[:, :, None] * np.eye(w.shape[1])
            step = -np.linalg.solve(M, g[..., None])[..., 0]
            step = np.where(bounded, np.clip(step, -_LARGEST_STEP, _LARGEST_STEP), step)
            new = self.objective(w + step, slopes=True)
            good = new[0] < value
            fall = np.where(good, value - new[0], 0.0)
            w = np.where(good[:, None], w + step, w)
            value, sigma = np.where(good, new[0], value), np.where(good[:, None], new[3], sigma)
            g, H = np.where(good[:, None], new[1], g), np.where(good[:, None, None], new[2], H)
            damping = np.where(good, damping * 0.2, damping * 5.0)
            if ((good & (fall < _SETTLED)) | (damping > 1e6)).all():
                break
        return w, value, sigma


def _known_centres(structure: Structure) -> dict[str, float]:
    """Effects whose centre is known, such as those of occasions: their values at it."""
    declared, names = structure.problem.model.declarations.effects, structure.names
    effects = [e for e in structure.effects if not any(n in names for n in declared.names_of_centre(e))]
    if not effects:
        return {}
    values = structure.means(_default(structure))[0].mean(0)
    place = {e.name: i for i, e in enumerate(structure.effects)}
    return {e.name: float(natural(e.family, values[place[e.name]])) for e in effects}


def _pool(structure: Structure, seed: int) -> list[tuple[dict[str, float], Array]]:
    """Parameters of the model and noise that fit all subjects as if they were one: the distinct best of many starts."""
    pooled, p = _Pooled.of(structure), structure.problem
    rng = np.random.default_rng([seed, 1])
    if all(q.name in p.start for q in structure.parameters if q.role in ("centre", "fixed")):
        means = structure.means(_default(structure))[0].mean(0)
        centre = {e.name: m for e, m in zip(structure.effects, means, strict=True)}
        start = {
            n: float(latent(k, np.array(p.start.get(n, 1.0)))) for n, k in zip(pooled.names, pooled.kinds, strict=True)
        }
        w = np.array([[centre.get(n, start[n]) for n in pooled.names]])
        value, _, _, sigma = pooled.objective(w)
    else:
        w, value, sigma = pooled.search(rng)
    worse = max(_WORSE, _WORSE_EACH * float(pooled.subjects.counts[pooled.chosen].sum()))
    found: list[tuple[dict[str, float], Array]] = []
    kept: list[Array] = []
    for i in np.argsort(value):
        near = any(np.abs((w[i] - other) / pooled.units).max() < _DISTINCT for other in kept)
        if value[i] > value.min() + worse or near or len(kept) == _MODES:
            continue
        kept.append(w[i])
        values = {n: float(natural(k, np.array(x))) for n, k, x in zip(pooled.names, pooled.kinds, w[i], strict=True)}
        found.append(({**values, **{n: float(x) for n, x in pooled.known.items()}}, sigma[i]))
    return found


def _spread_out(w: Array, value: Array) -> Array:
    """The best starts of those that lie apart (w is sorted by value), so that different modes are found."""
    unit = np.maximum(w.std(0), 1e-300)
    kept: list[Array] = []
    for own in w[np.isfinite(value)] if np.isfinite(value).any() else w:
        if len(kept) < _FOLLOWED and not any(np.abs((own - other) / unit).max() < _APART for other in kept):
            kept.append(own)
    return np.array(kept)
