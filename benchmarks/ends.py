# ruff: noqa: E501  (a table of systems, one a line)
"""Is an end an end? The likelihood at every printed end of a 95 % interval, measured by other means.

    .venv/bin/python benchmarks/ends.py [--problems 200] [--workers 2] [--first-seed 0] [--real FOLDER] \\
        [--keep FILE]

Random problems: systems with parameters, initial values, noise and times drawn at random; or the data sets of a folder.
At every finite end of the default intervals and of the profiles the parameter is held and all else is fitted anew by
SciPy alone: equations read and differentiated by SymPy, states and sensitivities by LSODA, least squares with weights
that follow the residuals. The way there goes from the estimate outwards, and starts from the truth and from what the fit
knows nearby; where it ends off the mark, other starts are tried. Where the likelihood has fallen by less than 80 % or
by more than 125 % of what belongs to the interval, the end is wrong, unless the likelihood jumps from less to more than
all of it within .1 % of the distance from the estimate, to both sides of the end. At open ends the likelihood is asked at distances of up to 1,000 times the estimate: nowhere there may it have
fallen by more. Ends of which a warning says that they were given up are counted apart, and so are open ends to which
LSODA finds no solution at all. With `--keep`, every problem is a line of a file, and those that are there already are
not measured again.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import kept
from real import HIDDEN, REAL

# equations; ranges of parameters and initial values (uniform in the log), last time
FAMILIES: dict[str, tuple[str, dict[str, tuple[float, float]], list[tuple[float, float]], float]] = {
    "decay": ("x' = -k*x", {"k": (0.2, 2)}, [(1, 9)], 4),
    "relaxation": ("x' = k*(A - x)", {"k": (0.2, 2), "A": (2, 9)}, [(0.1, 1)], 5),
    "logistic": ("n' = r*n*(1 - n/K)", {"r": (0.5, 2), "K": (3, 30)}, [(0.2, 2)], 7),
    "michaelis-menten": ("s' = -v*s/(k + s)", {"v": (0.5, 2), "k": (0.2, 3)}, [(2, 6)], 6),
    "oscillator": ("x' = y; y' = -a*x - b*y", {"a": (1, 6), "b": (0.1, 0.8)}, [(1, 3), (0.1, 1)], 6),
    "two compartments": ("c' = -(e + p)*c + q*d; d' = p*c - q*d", {"e": (0.2, 1), "p": (0.2, 1), "q": (0.1, 1)}, [(5, 15), (0.1, 1)], 8),
    "predator": ("x' = a*x - b*x*y; y' = -c*y + d*x*y", {"a": (1, 3), "b": (0.5, 2), "c": (2, 5), "d": (0.5, 2)}, [(3, 6), (1, 4)], 2),
    "gompertz": ("v' = a*v*log(K/v); K > 0; v > 0", {"a": (0.2, 1), "K": (5, 30)}, [(0.5, 2)], 8),
    "saturating uptake": ("x' = a - v*x/(k + x)", {"a": (0.2, 1), "v": (1, 3), "k": (0.5, 3)}, [(0.1, 4)], 8),
    "epidemic": ("S' = -b*S*I; I' = b*S*I - g*I", {"b": (0.5, 1.5), "g": (0.1, 0.4)}, [(0.9, 1), (0.01, 0.05)], 25),
    "van der pol": ("x' = y; y' = m*(1 - x^2)*y - w*x", {"m": (0.3, 2), "w": (0.7, 2)}, [(1, 2), (0.1, 1)], 9),
    "brusselator": ("x' = A + x^2*y - (B + 1)*x; y' = B*x - x^2*y", {"A": (0.7, 1.2), "B": (1.5, 3)}, [(0.5, 2), (0.5, 2)], 10),
    "hill": ("x' = b + v*x^2/(K^2 + x^2) - d*x", {"b": (0.05, 0.3), "v": (2, 4), "K": (0.7, 1.5), "d": (0.7, 1.2)}, [(0.3, 1)], 8),
}  # fmt: skip
MODELS: dict[str, Any] = {}
_JUMP = 1e-3  # of the distance of an end: within this the likelihood may jump
_WORDS = ("exp", "log", "sqrt", "sin", "cos", "tanh", "t")


def right_side(text: str, states: Iterable[str], parameters: Iterable[str]) -> Callable[..., Any]:
    """Slopes of states and of their derivatives by x0 and θ, as a function of all of them, t and θ: for LSODA."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import sympy

    states, parameters = list(states), list(parameters)
    symbols = {name: sympy.Symbol(name) for name in [*states, *parameters, "t"]}
    lines = dict(re.findall(r"(\w+)'\s*=\s*([^;\n]+)", text))
    f = sympy.Matrix([sympy.sympify(lines[name].replace("^", "**"), locals=dict(symbols)) for name in states])
    x, theta = [symbols[name] for name in states], [symbols[name] for name in parameters]
    K, W = len(x), len(x) + len(theta)
    S = sympy.Matrix(K, W, lambda i, j: sympy.Symbol(f"S_{i}_{j}"))
    slope = f.jacobian(x) * S
    if theta:
        slope[:, K:] += f.jacobian(theta)
    of = sympy.lambdify([*x, *S, symbols["t"], *theta], [*f, *slope], modules="math", cse=True)

    def slopes(z: Any, t: float, theta: Any) -> Any:
        try:
            return of(*z.tolist(), t, *theta)
        except (ValueError, ZeroDivisionError, OverflowError):
            return [np.nan] * len(z)

    return slopes


class Judge:
    """The likelihood of a problem with Gaussian noise of unknown size, by SymPy and SciPy alone.

    Unknowns v are the free initial values of every experiment, then the free parameters on their own scales.
    """

    def __init__(self, text: str, problem: Any) -> None:
        model, data = problem.model, problem.data
        self.slopes = right_side(text, model.states, problem.parameters)
        self.parts = [(np.asarray(e.t), np.asarray(e.y)) for e in data.experiments]
        self.seen = [model.states.index(name) for name in data.states]
        known = re.findall(r"(\w+)\(0\)\s*=\s*([\d.]+)", text)
        self.x0 = np.array([dict(known).get(name, np.nan) for name in model.states], float)
        self.open = np.flatnonzero(np.isnan(self.x0))
        self.theta, self.free = problem.theta(np.zeros(len(problem.free))), list(problem.free_index)
        self.log = np.asarray(problem.is_log)
        self.before = len(self.open) * len(self.parts)
        bounds = [np.tile(ends[self.open], len(self.parts)) for ends in problem.state_bounds]
        self.bounds = [np.concatenate(both) for both in zip(bounds, problem.phi_bounds, strict=True)]
        self.size = np.nanmax([np.nanmax(np.abs(y)) for _, y in self.parts])
        self.n = np.array(sum((~np.isnan(y)).sum(0) for _, y in self.parts))

    def unknowns(self, x0: list[Any], phi: Any) -> Any:
        return np.concatenate([*(x[self.open] for x in x0), phi])

    def residuals(self, v: Any) -> tuple[Any, Any]:
        """What was seen (n, M) against v, and derivatives (n, M, U); infinite where there is no solution."""
        from scipy.integrate import odeint

        K, U, theta, phi = len(self.x0), len(v), self.theta.copy(), v[self.before :]
        theta[self.free] = np.where(self.log, np.exp(np.minimum(phi, 700.0)), phi)
        found, slopes, W = [], [], K + len(theta)
        by_phi = np.where(self.log, theta[self.free], 1.0)
        for e, (t, y) in enumerate(self.parts):
            x0, own = self.x0.copy(), slice(e * len(self.open), (e + 1) * len(self.open))
            x0[self.open] = v[own]
            start = np.concatenate([x0, np.eye(K, W).ravel()])
            # States must be exact; a derivative only leads the way.
            error = self.size * np.repeat([1e-9, 1e-5], [K, K * W])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                z, said = odeint(
                    self.slopes, start, t, (theta.tolist(),), rtol=1e-7, atol=error, full_output=True, mxstep=2000
                )
            z = z if said["message"] == "Integration successful." and np.isfinite(z).all() else np.full_like(z, np.inf)
            S, J = z[:, K:].reshape(-1, K, W), np.zeros((len(t), K, U))
            J[..., own], J[..., self.before :] = S[..., self.open], S[..., K:][..., self.free] * by_phi
            found.append(z[:, self.seen] - y)
            slopes.append(J[:, self.seen])
        return np.concatenate(found), np.concatenate(slopes)

    def objective(self, r: Any) -> float:
        """Minus the log-likelihood at the best noise."""
        rss = np.maximum(np.nansum(r**2, axis=0), 1e-300)
        return float(0.5 * (self.n * (np.log(2 * np.pi * rss / self.n) + 1)).sum())

    def fitted(self, v: Any, held: int | None = None, value: float = 0.0) -> tuple[float, Any]:
        """The least objective from v on, with one unknown held: least squares, weighted by the last residuals."""
        from scipy.optimize import least_squares

        v = v.copy()
        if held is not None:
            v[held] = value
        free = np.setdiff1d(np.arange(len(v)), [] if held is None else [held])
        low, high = (b[free] for b in self.bounds)
        inside = np.clip(v[free], low, high)
        lowest, best = np.inf, v

        for _ in range(8):
            v[free] = np.where((inside <= low) | (inside >= high), np.clip(inside, low + 1e-9, high - 1e-9), inside)
            r, _ = self.residuals(v)
            if not np.isfinite(r[~np.isnan(r)]).all():
                break
            now = self.objective(r)
            if now < lowest:
                best = v.copy()
            if now > lowest - 1e-3:
                break
            lowest = now
            sigma = np.sqrt(np.maximum(np.nansum(r**2, axis=0) / self.n, 1e-300))
            if not len(free):
                break

            @functools.lru_cache(maxsize=2)
            def of(w: tuple[float, ...], v: Any = v, sigma: Any = sigma) -> tuple[Any, Any]:
                full = v.copy()
                full[free] = w
                r, J = self.residuals(full)
                there = ~np.isnan(r)
                return (r / sigma)[there], (J / sigma[:, None])[there][:, free]

            found = least_squares(
                lambda w: of(tuple(w))[0], v[free], lambda w: of(tuple(w))[1], (low, high), x_scale="jac",
                xtol=1e-10, ftol=1e-7, gtol=1e-12, max_nfev=60,
            )  # fmt: skip
            inside = found.x
        return min(lowest, now if np.isfinite(now) else np.inf) if np.isfinite(lowest) else np.inf, best


def drops(judge: Judge, top: float, best: Any, j: int, targets: list[float]) -> Iterator[float]:
    """Twice the fall of the likelihood with unknown j at each of some values, one after the other from the estimate on."""
    at, v = best[j], best
    for target in targets:
        for share in (0.4, 0.7, 1.0):
            value = at + share * (target - at)
            lowest, found = min((judge.fitted(w, j, value) for w in (v, moved(judge, v, j, value))), key=lambda f: f[0])
            v = found if np.isfinite(lowest) else v
        at = target
        yield 2.0 * (lowest - top)


def moved(judge: Judge, v: Any, j: int, value: float) -> Any:
    """Where all other unknowns go, to first order, as unknown j goes to a value and the fit stays the best."""
    r, J = judge.residuals(v)
    there = ~np.isnan(r)
    if not (np.isfinite(r[there]).all() and np.isfinite(J[there]).all()):
        return v
    J = (J / np.sqrt(np.maximum(np.nansum(r**2, axis=0) / judge.n, 1e-300))[:, None])[there]
    size = np.maximum(np.linalg.norm(J, axis=0), 1e-300)
    others = np.delete(np.arange(len(v)), j)
    w = v.copy()
    w[others] -= np.linalg.lstsq(J[:, others] / size[others], J[:, j] * (value - v[j]), rcond=1e-9)[0] / size[others]
    return w


def random_problem(name: str, seed: int) -> tuple[str, Any, Any]:
    """Equations, problem, and the truth: initial values and parameters."""
    import odinfer as od

    rng = np.random.default_rng([seed, len(name)])
    text, ranges, initial, last = FAMILIES[name]
    model = MODELS.setdefault(name, od.Model.from_text(text, name))
    theta = {n: float(np.exp(rng.uniform(*np.log(r)))) for n, r in ranges.items()}
    x0 = [float(np.exp(rng.uniform(*np.log(r)))) for r in initial]
    t = np.sort(rng.uniform(0, last, int(rng.integers(8, 25))))
    t[0] = 0.0
    x = od.simulate(model, theta, x0, t)
    y = x + rng.choice([0.02, 0.05, 0.15]) * x.std(0) * rng.normal(size=x.shape)
    if "v > 0" in text:
        y = np.maximum(y, 0.02)
    problem = od.Problem(model, od.Data(t, y, states=model.states), scale=dict.fromkeys(ranges, "log"))
    return text, problem, np.array([*x0, *(theta[n] for n in problem.free)])


def measured(text: str, problem: Any, seed: int = 0, profiles: bool = True, truth: Any = None) -> dict[str, Any]:
    """Every end of a problem's intervals with what the likelihood has fallen there, as a share of what it should."""
    import odinfer as od

    rows: dict[str, Any] = {"ends": [], "gain": 0.0, "given up": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = od.fit(problem, seed=seed)
        rows["status"] = str(fit.status)
        if fit.uncertainty is None:
            return rows
        best, judge, is_log = fit.maximum(), Judge(text, problem), problem.is_log
        u = best.likelihood.unknowns
        fall = best.info.fall(u.unit(u.phi_index), 0.95)
        v = best.profile_origin
        top, v = judge.fitted(v)
        rows["gain"] = best.objective - top
        claims = dict(_claims(best, [] if truth is None else [truth]))
        given_up = [note for note in fit.warnings if "could not be computed" in note]
        for j, parameter in enumerate(problem.free):
            kinds = {"default": fit.interval()[parameter]}
            if profiles:
                kinds["profile"] = fit.profile(parameter).interval()
            for s, side in enumerate((-1, 1)):
                where = f"{'lower' if side < 0 else 'upper'} confidence limit of {parameter} "
                if any(where in note for note in given_up):
                    rows["given up"] += 1
                    continue
                own = {k: -np.inf if is_log[j] and ends[s] == 0.0 else ends[s] for k, ends in kinds.items()}
                rows["ends"] += _one_side(judge, top, v, j, side, own, problem, fall[j], seed, claims[j, side])
    return rows


def _claims(best: Any, more: list[Any]) -> Iterator[tuple[tuple[int, int], list[Any]]]:
    """By parameter and side, all unknowns at the end and on the way there, as the fit has found them, and others: starts
    like others."""
    limits, F = best.limits, len(best.phi)
    for i, w in enumerate(limits.points):
        yield (i % F, -1 if i < F else 1), [w, *more, *limits.found.visited]


def _one_side(
    judge: Judge, top: float, v: Any, j: int, side: int, ends: dict[str, float], problem: Any, fall: float, seed: int,
    claims: Any,
) -> list[Any]:  # fmt: skip
    name, is_log, place = problem.free[j], bool(judge.log[j]), judge.before + j
    own = (lambda x: float(np.log(x))) if is_log else float
    low, high = problem.limits(name)
    far = [v[place] + side * (np.log(f) if is_log else f * abs(v[place])) for f in (2.0, 10.0, 100.0, 1000.0)]
    rows, known = [], {}
    for kind, end in sorted(ends.items(), key=lambda item: abs(item[1])):
        if end in (low, high) and np.isfinite(end):
            continue  # a bound: nothing to measure but that the likelihood has not fallen too far on the way
        if end in known:
            rows.append((name, kind, side, end, known[end]))
            continue
        is_open = np.isinf(end)
        targets = far if is_open else [own(end)]
        shares = [drop / fall for drop in drops(judge, top, v, place, targets)]
        if not is_open:
            starts = [claims[1], *_closest(claims[1:], place, targets[0], 3)] if len(claims) > 1 else []
            shares = [min([*shares, *(2.0 * (judge.fitted(w, place, targets[0])[0] - top) / fall for w in starts)])]
        share = max(shares)
        if (not is_open and not 0.9 <= share <= 1.1) or (is_open and share > 1.0):
            at = targets[int(np.argmax(shares))]
            again = [_again(judge, top, v, place, at, fall, seed, share, claims)]
            # What was lost on the way is asked for at all distances, and the worst of them counts.
            again += [_again(judge, top, v, place, t, fall, seed, s, claims)
                      for t, s in zip(targets, shares, strict=True) if t != at and s > 1.0]  # fmt: skip
            share = max(again)
        if not is_open and wrong(end, share):
            sides = [targets[0] + s * _JUMP * (targets[0] - v[place]) for s in (-1, 1)]
            inner, outer = (_again(judge, top, v, place, t, fall, seed, np.inf, claims) for t in sides)
            share = np.nan if inner < 1.0 < outer else share
        known[end] = share
        rows.append((name, kind, side, end, share))
    return rows


def _closest(every: list[Any], place: int, target: float, count: int) -> list[Any]:
    return sorted(every, key=lambda w: abs(w[place] - target))[:count]


def _again(
    judge: Judge, top: float, v: Any, place: int, target: float, fall: float, seed: int, share: float, claims: Any
) -> float:
    """The least share from other starts: where the fit says the end is, on the way there, from around the maximum and
    the end, outwards in short steps, and inwards from the end."""
    rng = np.random.default_rng([seed, place])
    claim, *on_the_way = claims
    closest = _closest(on_the_way, place, target, 3)
    way = abs(claim[place] - v[place]) or 1.0
    starts = [
        claim,
        *closest,
        *(moved(judge, w, place, target) for w in closest),
        *(_between(v, claim, s) for s in {0.5, min(1.0, abs(target - v[place]) / way)}),
    ]
    starts += [w * np.exp(0.5 * rng.normal(size=len(v))) for w in (v, claim, v, claim, v, claim)]
    found = share
    for start in starts:
        found = min(found, 2.0 * (judge.fitted(start, place, target)[0] - top) / fall)
    if found > 1.0:
        *_, slow = drops(judge, top, v, place, list(np.linspace(v[place], target, 9)[1:]))
        found = min(found, slow / fall)
    if found > 1.0:
        *_, inwards = drops(judge, top, claim, place, _inwards(claim[place], target))
        found = min(found, inwards / fall)
    return found


def _inwards(far: float, target: float) -> list[float]:
    """From far out to a target, in steps of a factor of three at most where both have one sign."""
    if far * target <= 0:
        return [target]
    steps = max(1, int(np.ceil(abs(np.log(far / target)) / np.log(3.0))))
    return [*(far * (target / far) ** (np.arange(1, steps) / steps)).tolist(), target]


def _between(one: Any, two: Any, share: float) -> Any:
    """Unknowns between two sets: on a log scale where these have one sign."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(one * two > 0, one * np.abs(two / one) ** share, one + share * (two - one))


def one(task: tuple[str, int, str]) -> dict[str, Any]:
    name, seed, folder = task
    if folder:
        import odinfer as od

        text = (REAL | HIDDEN)[name]
        data = od.read_csv(Path(folder) / f"{name}.csv")
        problem, truth = od.Problem(od.Model.from_text(text, name), data), None
    else:
        text, problem, truth = random_problem(name, seed)
    clock = time.process_time()
    return {
        "name": name,
        "seed": seed,
        **measured(text, problem, seed, truth=truth),
        "seconds": time.process_time() - clock,
    }


def wrong(end: float, share: float) -> bool:
    return bool(1.25 < share < np.inf if np.isinf(end) else share < 0.8 or share > 1.25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="", help="systems whose name contains this")
    parser.add_argument(
        "--real", default="", help="a folder with the data sets named above, instead of random problems"
    )
    parser.add_argument("--keep", type=Path, help="file in which every problem is kept as it comes")
    options = parser.parse_args()
    names = [name for name in (REAL | HIDDEN if options.real else FAMILIES) if options.only in name]
    count = len(names) if options.real else options.problems
    tasks = [
        (names[i % len(names)], options.first_seed + (0 if options.real else i), options.real) for i in range(count)
    ]
    clock = time.perf_counter()
    shares, bad, none, open_, missed, given_up, unknown, jumps = [], 0, 0, 0, 0, 0, 0, 0
    for row in kept.rows(one, tasks, ("name", "seed"), options.workers, options.keep):
        if not row["ends"]:
            none += 1
            print(f"{row['name']} {row['seed']}: no intervals; {row['status']}", flush=True)
        given_up += row["given up"]
        if row["gain"] > 0.05:
            missed += 1
            print(f"{row['name']} {row['seed']}: a likelihood {row['gain']:.2f} nats higher is near", flush=True)
        for parameter, kind, _, end, share in row["ends"]:
            open_ += bool(np.isinf(end))
            unknown += bool(np.isinf(end) and np.isinf(share))
            jumps += bool(np.isnan(share))
            shares += [] if np.isinf(end) or np.isnan(share) else [share]
            if wrong(end, share):
                bad += 1
                where = f"{row['name']} {row['seed']}: {kind} end {end:.4g} of {parameter}"
                print(f"{where}: the likelihood falls by {share:.2f} of what it should", flush=True)
    print(
        f"{given_up} ends were given up, with a warning; no solution was found towards {unknown} of the open ones; "
        f"at {jumps} ends the likelihood jumps"
    )
    found = np.abs(np.array(shares) - 1.0)
    print(
        f"{len(shares)} finite and {open_} open ends of {len(tasks)} problems ({none} without intervals, {missed} not at the maximum): {bad} are wrong"
    )
    if len(found):
        print(
            f"error of the fall at finite ends: median {np.median(found):.3f}, 95 % below {np.quantile(found, 0.95):.3f}, largest {found.max():.3f}"
        )
    print(f"{time.perf_counter() - clock:.0f} s")


if __name__ == "__main__":
    main()
