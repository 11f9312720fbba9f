"""Is an end an end? The likelihood at every printed end of a 95 % interval, measured by other means.

    .venv/bin/python benchmarks/ends.py [--problems 200] [--workers 2] [--first-seed 0]

Random problems: families of equations with parameters, initial values, noise and times drawn at random. At every finite
end of the default intervals and of the profiles the parameter is held and all else is fitted anew by SciPy's least
squares on LSODA's trajectories, from the point the package found and from others around it. Where the likelihood then
has fallen by less than 80 % or by more than 125 % of what belongs to the interval, the end is wrong. Open ends are
asked ten times as far out as the estimate: there the likelihood must not have fallen by more.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

# equations; ranges of parameters and initial values (uniform in the log), last time
FAMILIES: dict[str, tuple[str, dict[str, tuple[float, float]], list[tuple[float, float]], float]] = {
    "decay": ("x' = -k*x", {"k": (0.2, 2)}, [(1, 9)], 4),
    "relaxation": ("x' = k*(A - x)", {"k": (0.2, 2), "A": (2, 9)}, [(0.1, 1)], 5),
    "logistic": ("n' = r*n*(1 - n/K)", {"r": (0.5, 2), "K": (3, 30)}, [(0.2, 2)], 7),
    "michaelis-menten": ("s' = -v*s/(k + s)", {"v": (0.5, 2), "k": (0.2, 3)}, [(2, 6)], 6),
    "oscillator": ("x' = y; y' = -a*x - b*y", {"a": (1, 6), "b": (0.1, 0.8)}, [(1, 3), (0.1, 1)], 6),
    "two compartments": ("c' = -(e + p)*c + q*d; d' = p*c - q*d", {"e": (0.2, 1), "p": (0.2, 1), "q": (0.1, 1)},
                         [(5, 15), (0.1, 1)], 8),
    "predator": ("x' = a*x - b*x*y; y' = -c*y + d*x*y", {"a": (1, 3), "b": (0.5, 2), "c": (2, 5), "d": (0.5, 2)},
                 [(3, 6), (1, 4)], 2),
    "gompertz": ("v' = a*v*log(K/v); K > 0; v > 0", {"a": (0.2, 1), "K": (5, 30)}, [(0.5, 2)], 8),
    "saturating uptake": ("x' = a - v*x/(k + x)", {"a": (0.2, 1), "v": (1, 3), "k": (0.5, 3)}, [(0.1, 4)], 8),
}  # fmt: skip
MODELS: dict[str, Any] = {}


def one(task: tuple[str, int]) -> dict[str, Any]:
    import odinfer as od
    from odinfer.problem.unknowns import Unknowns

    name, seed = task
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
    problem = od.Problem(model, od.Data(t, y, states=model.states))
    rows: dict[str, Any] = {"name": name, "seed": seed, "ends": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = od.fit(problem, seed=seed)
        if fit.uncertainty is None:
            return rows
        best, u = fit.maximum(), Unknowns(problem)
        fall = best.info.fall(u.unit(u.phi_index), 0.95)
        n = problem.count

        def residuals(v: Any) -> Any:
            found = od.simulate(model, problem.theta(u.phi(v)), u.x0(v, 0), t, rtol=1e-9, atol=1e-11)
            return np.nan_to_num(found - y, nan=1e3)

        def objective(r: Any) -> float:
            rss = np.maximum((r**2).sum(0), 1e-300)
            return float(0.5 * (n * (np.log(2 * np.pi * rss / n) + 1)).sum())

        top = best.objective

        def held(j: int, value: float, starts: list[Any]) -> float:
            """Twice the fall of the likelihood, fitted anew with parameter j held: least squares, reweighted."""
            from scipy.optimize import least_squares

            free = np.delete(np.arange(u.size), u.phi_index[j])
            lowest = np.inf
            for v in starts:
                v = np.clip(v, u.low, u.high)
                v[u.phi_index[j]] = value
                sigma = best.sigma
                for _ in range(6):

                    def of(w: Any, v: Any = v, sigma: Any = sigma) -> Any:
                        full = v.copy()
                        full[free] = w
                        return (residuals(full) / sigma).ravel()

                    inside = np.clip(v[free], u.low[free] + 1e-12, u.high[free] - 1e-12)
                    bounds, scale = (u.low[free], u.high[free]), np.maximum(np.abs(inside), 1e-3)
                    found = least_squares(of, inside, bounds=bounds, x_scale=scale, xtol=1e-10, ftol=1e-10, max_nfev=60)
                    v[free] = found.x
                    r = residuals(v)
                    before, sigma = sigma, np.sqrt(np.maximum((r**2).mean(0), 1e-300))
                    if np.abs(np.log(sigma / before)).max() < 1e-4:
                        break
                lowest = min(lowest, objective(r) - top)
            return 2.0 * lowest

        at = u.join([p.x0 for p in best.refined.paths], best.phi)
        for j, parameter in enumerate(problem.free):
            profile = fit.profile(parameter)
            for kind, ends in (("default", fit.interval()[parameter]), ("profile", profile.interval())):
                for side, end in zip((-1, 1), ends, strict=True):
                    estimate = fit.theta[parameter]
                    far = estimate + side * 9.0 * abs(estimate)
                    value = float(end) if np.isfinite(end) else far
                    low, high = problem.limits(parameter)
                    if value <= low or value >= high:
                        continue
                    others = [at * (1.0 + 0.3 * s * rng.normal(size=len(at))) for s in (0.0, 1.0, 1.0)]
                    drop = held(j, value, others)
                    rows["ends"].append((parameter, kind, side, end, drop / fall[j]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    names = list(FAMILIES)
    tasks = [(names[i % len(names)], options.first_seed + i) for i in range(options.problems)]
    clock = time.perf_counter()
    total, wrong, none = 0, [], 0
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for row in pool.map(one, tasks):
            none += not row["ends"]
            for parameter, kind, side, end, share in row["ends"]:
                total += 1
                bad = share > 1.25 if np.isinf(end) else not 0.8 <= share <= 1.25
                if bad:
                    wrong.append((row["name"], row["seed"], parameter, kind, side, float(end), round(share, 3)))
                    print(*wrong[-1], flush=True)
    print(f"{total} ends of {len(tasks)} problems, {none} of which have no interval: {len(wrong)} are wrong")
    print(f"{time.perf_counter() - clock:.0f} s")


if __name__ == "__main__":
    main()
