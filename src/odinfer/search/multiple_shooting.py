"""Multiple shooting: fit short windows of the data, then join them.

Cut into windows that each start anywhere, the data can be followed by nearly any θ, so that searches from far away come
near; growing together, the windows become one trajectory. Windows that hold something sudden are missed at first:
errors with heavy tails let them be missed without spoiling θ, and many random first states per window, which cost
little side by side, find those from which it happens in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import split_windows
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial
from odinfer.odin import startpoints
from odinfer.problem.observables import Observe
from odinfer.problem.problem import Problem
from odinfer.scaling.onset import onset
from odinfer.search.startpoints import difference_noise
from odinfer.search.trust_region import minimise_batch

Array = NDArray[np.float64]

# θ at first, of those followed further, and after what windows leave open is redrawn.
_STARTS, _KEPT, _DRAWN = 32, 12, 48
_STATES = 48  # first states that are tried for every window
_TRIAL_STEPS = 30  # per gap between observations, of a trial: solutions that take more blow up
_MOST = 180  # first states of all windows of one search
_ROUNDS = 20
_FEWEST = 5  # observations of any experiment
_WIDE = 10.0  # times the noise: where the tails of errors begin at first
_OPEN, _DECADES = 1.0, 6.0  # a parameter known no better, in e-folds, is redrawn, over so many decades
_WHOLE = 512  # first states that are tried in the end
_ALIKE, _CLOSE = 3, 0.05  # the best searches that must agree, relatively, for the model to be found wrong
_NONE = 4.0  # times the noise: a state that is never so far below zero may well be positive


def multiple_shooting(
    problem: Problem, scale: Array, guesses: Sequence[Array], seed: int | Sequence[int]
) -> TrajectoryOptimum | None:
    """The best trajectory that is found, or None.

    Args:
        scale: of the states (K,).
        guesses: φ (F,) to start from, besides random ones.
    """
    short = any(len(e.t) < _FEWEST for e in problem.data.experiments)
    if short or not BatchLikelihood.can(problem) or problem.model.declarations.columns or callable(problem.prior):
        return None
    rng, cut = np.random.default_rng([6, *np.atleast_1d(seed).tolist()]), Windows.of(problem)
    drawn = [*guesses, *startpoints.anywhere(problem, _STARTS, rng)][:_STARTS]
    theta = np.abs([problem.theta(phi) for phi in drawn])
    found = Searches(cut.whole.phi(theta), np.tile(cut.seen, (len(theta), 1, 1)))
    gaps = max(1, -(-len(cut.seen) * len(scale) // _MOST))
    found = cut.follow(found, cut.stage(gaps))
    gaps *= 2
    for width in (_WIDE, 1.0):
        found = cut.follow(found.best(_KEPT), cut.stage(gaps, width))
        if cut.is_contradicted(found, cut.stage(gaps, width)):
            return None
    found = cut.redraw(found.best(_KEPT // 2), cut.stage(gaps, 1.0), rng)
    while len(found.phi):
        stage = cut.stage(gaps, 1.0)
        found = cut.follow(cut.restart(found, stage, rng).best(_KEPT), stage)
        if len(stage.firsts) == len(problem.data.experiments):
            break
        gaps *= 2
    return cut.finish(found, scale, rng) if len(found.phi) else None


@dataclass(frozen=True)
class Searches:
    """B of them, best first where they have been followed: φ (B, F), and states (B, n, K) at all observations."""

    phi: Array
    states: Array

    def best(self, count: int) -> Searches:
        return Searches(self.phi[:count], self.states[:count])

    def take(self, value: Array) -> Searches:
        """Those of finite value (B,), best first."""
        order = [i for i in np.argsort(value) if np.isfinite(value[i])]
        return Searches(self.phi[order], self.states[order])


@dataclass(frozen=True, eq=False)
class Stage:
    """Windows of one length: how they are solved, and in which rows each starts."""

    solver: BatchLikelihood
    firsts: NDArray[np.int64]

    @property
    def gaps(self) -> int:
        """Gaps between observations in the longest window."""
        return max(len(e.t) for e in self.solver.problem.data.experiments) - 1

    def join(self, found: Searches) -> Array:
        """Unknowns (B, P)."""
        B, _, K = found.states.shape
        return np.concatenate([found.states[:, self.firsts].reshape(B, len(self.firsts) * K), found.phi], 1)


@dataclass(frozen=True, eq=False)
class Windows:
    """A problem to be cut.

    Attributes:
        whole: the problem with positive parameters on log scales.
        noise: of the states (K,), roughly.
        seen: what was observed (n, K) of all experiments, one after the other, with gaps filled.
        positive: which states may well be positive (K,).
    """

    problem: Problem
    whole: Problem
    noise: Array
    seen: Array
    positive: NDArray[np.bool_]

    @staticmethod
    def of(problem: Problem) -> Windows:
        scale = {name: "log" for name in problem.free if problem.limits(name)[1] > 0}
        noise, seen = difference_noise(problem), []
        for e in problem.data.experiments:
            known = [np.isfinite(y) for y in e.y.T]
            own = [np.interp(e.t, e.t[k], y[k]) if k.any() else 0.0 * e.t for k, y in zip(known, e.y.T, strict=True)]
            seen.append(np.stack(own, 1))
        every = np.concatenate(seen)
        positive = np.asarray((every > -_NONE * noise).all(0))
        every = np.clip(np.where(positive, np.abs(every), every), *problem.state_bounds)
        return Windows(problem, replace(problem, scale={**problem.scale, **scale}, start={}), noise, every, positive)

    def stage(self, gaps: int, width: float = 0.0) -> Stage:
        """Windows of so many gaps; errors with heavy tails from so many times the noise on, or with none."""
        data, firsts = split_windows(self.problem.data, gaps)
        named = list(zip(self.problem.columns, self.noise.tolist(), strict=True))
        if width == 0.0:
            return Stage(BatchLikelihood.of(replace(self.whole, data=data, sigma=dict(named))), firsts)
        tails = [Observe(name, f"student({name}, {width * sd!r}, 1)") for name, sd in named]
        return Stage(BatchLikelihood.of(replace(self.whole, data=data, sigma={}, observe=tails)), firsts)

    def follow(self, found: Searches, stage: Stage) -> Searches:
        """From there downhill."""
        if not len(found.phi):
            return found
        ends = minimise_batch(stage.solver, stage.join(found), rounds=_ROUNDS)
        u, states = stage.solver.likelihood.unknowns, found.states.copy()
        for e, row in enumerate(stage.firsts):
            states[:, row] = u.x0(ends.v, e)
        return Searches(u.phi(ends.v), states).take(ends.value)

    def is_contradicted(self, found: Searches, stage: Stage) -> bool:
        """Whether the best searches agree and miss the data of some state by more than the noise at most times.

        Sudden events are missed at few times. Windows that start anywhere come closer to the data than any trajectory.
        """
        if len(found.phi) < _ALIKE:
            return False
        x = stage.solver.solve(stage.join(found.best(_ALIKE))).trajectories.x
        x = x.reshape(_ALIKE, -1, *x.shape[1:])
        table = zip(stage.solver.field.table.rows, stage.solver.likelihood.y, strict=True)
        left = np.concatenate([np.abs(x[:, e][:, rows] - y) / self.noise for e, (rows, y) in enumerate(table)], 1)
        middle = np.nanmedian(left, 1).max(1)
        return bool(middle.min() > 1.0 and np.ptp(middle) < _CLOSE * middle.min())

    def restart(self, found: Searches, stage: Stage, rng: np.random.Generator) -> Searches:
        """The same with the best first state of every window among its own, what was seen, and random ones."""
        states, total = found.states.copy(), np.zeros(len(found.phi))
        for b, (phi, own) in enumerate(zip(found.phi, found.states, strict=True)):
            tried = np.stack([own, self.seen, *(self.states(rng) for _ in range(_STATES))])
            most = np.full((len(tried), len(stage.firsts)), _TRIAL_STEPS * stage.gaps)
            solved = stage.solver.solve(stage.join(Searches(np.tile(phi, (len(tried), 1)), tried)), most=most)
            for row, value in zip(stage.firsts, self._misfits(stage, solved.trajectories.x), strict=True):
                states[b, row] = tried[value.argmin(), row]
                total[b] += value.min()
        return Searches(found.phi, states).take(total)

    def _misfits(self, stage: Stage, x: Array) -> list[Array]:
        """What each of T trials leaves of every window, infinite where there is no trajectory: (T,) per window."""
        solver, found = stage.solver, []
        x = x.reshape(-1, len(stage.firsts), *x.shape[1:])
        for e, (rows, y) in enumerate(zip(solver.field.table.rows, solver.likelihood.y, strict=True)):
            with np.errstate(all="ignore"):
                left = np.where(np.isnan(y), 0.0, np.log1p(((x[:, e][:, rows] - y) / self.noise) ** 2)).sum((1, 2))
            found.append(np.where(np.isfinite(left), left, np.inf))
        return found

    def states(self, rng: np.random.Generator) -> Array:
        """Random states (n, K) near what was seen; positive ones below the noise may have any magnitude."""
        n, K = self.seen.shape
        x = self.seen + 0.4 * self.noise * rng.normal(size=(n, K))
        x = np.where(self.positive, np.abs(x), x)
        faint = self.positive & (self.seen < self.noise) & (rng.uniform(size=(n, K)) < 0.7)
        x = np.where(faint, self.noise * 10.0 ** rng.uniform(-3.0, 0.0, (n, K)), x)
        return np.asarray(np.clip(x, *self.problem.state_bounds))

    def redraw(self, found: Searches, stage: Stage, rng: np.random.Generator) -> Searches:
        """Many θ from a few, parameters that the windows leave open drawn anew from where they begin to matter on."""
        if not found.phi.size:  # no start succeeded, or no parameter is free
            return found
        solved = stage.solver.solve(stage.join(found))
        H = stage.solver.normal(solved, np.arange(len(found.phi)))[0].dense()
        F, phi, of = found.phi.shape[1], [], []
        for n in range(_DRAWN):
            b = n % len(found.phi)
            own, d = found.phi[b].copy(), np.sqrt(np.maximum(np.diag(H[b]), 1e-300))
            sound = np.nan_to_num(H[b] / np.outer(d, d))
            variance = np.linalg.pinv(sound, rcond=1e-10, hermitian=True).diagonal() / d**2
            loose = ((variance > _OPEN**2) | (d**2 < 1.0 / _OPEN**2))[-F:] & self.whole.is_log
            if n >= len(found.phi):
                for j in np.flatnonzero(loose):
                    begins = onset(self.problem, self.whole.theta(own), int(self.problem.free_index[j]), self.seen)
                    own[j] = np.log(10.0) * (begins + rng.uniform(0.0, _DECADES))
            phi.append(np.clip(own, *self.whole.phi_bounds))
            of.append(b)
        return Searches(np.stack(phi), found.states[of])

    def finish(self, found: Searches, scale: Array, rng: np.random.Generator) -> TrajectoryOptimum | None:
        """The best trajectory of the problem itself from where windows led, on a mesh."""
        solver, firsts = (
            BatchLikelihood.of(self.whole),
            np.cumsum([0, *(len(e.t) for e in self.problem.data.experiments)]),
        )
        stage, few = Stage(solver, firsts[:-1]), found.best(_KEPT // 2)
        tried = np.stack([few.states[n % len(few.phi)] if n < _KEPT else self.states(rng) for n in range(_WHOLE)])
        v = stage.join(Searches(few.phi[np.arange(_WHOLE) % len(few.phi)], tried))
        v = v[np.argsort(solver.solve(v).worth.value)[:_KEPT]]
        ends = minimise_batch(solver, np.concatenate([stage.join(found.best(_KEPT)), v]))
        own = BatchLikelihood.of(self.problem)
        for i in np.argsort(ends.value)[:_KEPT]:
            if not np.isfinite(ends.value[i]):
                break
            phi = self.problem.phi(self.whole.theta(solver.likelihood.unknowns.phi(ends.v[i])))
            at = own.likelihood.unknowns.join(solver.initial(ends.v[i]), np.clip(phi, *self.problem.phi_bounds))
            for paths in (s.paths(at) for s in (own, own.finer())):
                near = (
                    None
                    if paths is None
                    else maximise_from_initial(self.problem, scale, own.initial(at), phi, along=paths)
                )
                if near is not None:
                    return near
        return None
