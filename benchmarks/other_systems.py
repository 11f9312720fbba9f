# ruff: noqa: E501  (a table of systems, one a line)
"""The same defaults on systems that were not used to choose them: one to six states, many fields.

    .venv/bin/python benchmarks/other_systems.py [--draws 20] [--workers 2]

Noise is 2 % and 10 % of each state's standard deviation. Columns: median error of the simulated trajectory (root
mean square, in units of the states' standard deviations) of the ODIN stage, of the default fit, and of maximum
likelihood from the truth; draws with a worse likelihood than the latter, draws in which the trajectory was not
accepted, and false alarms of γ.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

# name: equations, true parameters, initial values, last time, number of points
SYSTEMS: dict[str, tuple[str, dict[str, float], list[float], float, int]] = {
    "decay": ("x' = -k*x", {"k": 0.7}, [3.0], 5.0, 12),
    "logistic": ("n' = r*n*(1 - n/K)", {"r": 1.2, "K": 50.0}, [2.0], 8.0, 20),
    "gompertz": ("v' = a*v*log(K/v); K > 0; v > 0", {"a": 0.4, "K": 20.0}, [1.0], 12.0, 20),
    "harmonic, negative a": ("x' = v; v' = a*x + b*v", {"a": -4.0, "b": -0.3}, [2.0, 0.0], 6.0, 30),
    "pendulum": ("phi' = w; w' = -g*sin(phi) - d*w", {"g": 6.0, "d": 0.2}, [2.0, 0.0], 6.0, 40),
    "van der pol": ("x' = y; y' = m*(1 - x^2)*y - w*x", {"m": 1.5, "w": 1.0}, [1.0, 0.0], 12.0, 40),
    "duffing, driven": ("x' = v; v' = -d*v - a*x - b*x^3 + F*cos(1.2*t)", {"d": 0.3, "a": 1.0, "b": 0.5, "F": 0.8}, [1.0, 0.0], 15.0, 50),
    "brusselator": ("x' = A + x^2*y - B*x - x; y' = B*x - x^2*y", {"A": 1.0, "B": 3.0}, [1.0, 1.0], 15.0, 50),
    "sir": ("S' = -b*S*I; I' = b*S*I - g*I; R' = g*I", {"b": 0.5, "g": 0.15}, [0.99, 0.01, 0.0], 40.0, 25),
    "seir, counts": (
        "S' = -b*S*I/1000; E' = b*S*I/1000 - s*E; I' = s*E - g*I; R' = g*I",
        {"b": 0.9, "s": 0.3, "g": 0.2}, [990.0, 5.0, 5.0, 0.0], 60.0, 31,
    ),
    "michaelis-menten": ("S' = -V*S/(K + S); P' = V*S/(K + S)", {"V": 1.0, "K": 2.0}, [10.0, 0.0], 20.0, 20),
    "hill oscillator (goodwin)": (
        "X' = a/(1 + Z^9) - b*X; Y' = c*X - d*Y; Z' = e*Y - f*Z",
        {"a": 3.0, "b": 0.3, "c": 0.6, "d": 0.3, "e": 0.5, "f": 0.3}, [0.3, 0.5, 1.0], 40.0, 50,
    ),
    "two compartments": ("c' = -(ke + k12)*c + k21*p; p' = k12*c - k21*p", {"ke": 0.3, "k12": 0.5, "k21": 0.2}, [10.0, 0.0], 15.0, 16),
    "cascade, six states": (
        "a' = -k1*a; b' = k1*a - k2*b; c' = k2*b - k3*c; d' = k3*c - k4*d; e' = k4*d - k5*e; f' = k5*e",
        {"k1": 0.8, "k2": 0.5, "k3": 0.9, "k4": 0.4, "k5": 0.6}, [5.0, 0.0, 0.0, 0.0, 0.0, 0.0], 15.0, 25,
    ),
    "lorenz 63": ("x' = s*(y - x); y' = x*(r - z) - y; z' = x*y - b*z", {"s": 10.0, "r": 28.0, "b": 2.667}, [-8.0, 7.0, 27.0], 2.0, 60),
    "predator, slow units": ("H' = 0.002*a*H - b*H*L; L' = d*H*L - c*L", {"a": 14.0, "b": 0.0012, "d": 0.0009, "c": 0.021}, [30.0, 4.0], 800.0, 40),
}  # fmt: skip


def one(task: tuple[str, float, int]) -> dict[str, float]:
    import odinfer as od
    from odinfer.likelihood.refinement import refine_from

    name, noise, seed = task
    text, theta, x0, last, points = SYSTEMS[name]
    model = MODELS.setdefault(name, od.Model.from_text(text, name))
    t = np.linspace(0.0, last, points)
    x = od.simulate(model, theta, x0, t)
    scale = x.std(0)
    y = x + noise * scale * np.random.default_rng(seed).normal(size=x.shape)
    if "v > 0" in text:
        y = np.maximum(y, 0.05)
    problem = od.Problem(model, od.Data(t, y, states=model.states))
    clock = time.perf_counter()
    fit = od.fit(problem, seed=seed)
    seconds = time.perf_counter() - clock
    truth = np.array([theta[p] for p in model.parameters])
    best = refine_from(problem, truth, [(t, x)])

    def error(values: dict[str, float]) -> float:
        e = float(np.sqrt(np.mean(((od.simulate(model, values, x0, t, rtol=1e-7, atol=1e-9) - x) / scale) ** 2)))
        return e if np.isfinite(e) else np.inf

    return {
        "odin": error(fit.stages["odin"].theta),
        "default": error(fit.theta),
        "limit": error(dict(zip(model.parameters, problem.theta(best.phi), strict=True))) if best else np.nan,
        "worse": (fit.stages["refined"].objective if "refined" in fit.stages else np.inf)
        - (best.objective if best else np.inf),
        "kept": fit.details["stage_used"] == "odin",
        "alarm": any(v != "consistent" for v in fit.verdicts.values()),
        "seconds": seconds,
    }


MODELS: dict = {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(
        f"{'system':26} noise {'ODIN':>8} {'default':>8} {'limit':>8} {'worse':>6} {'kept':>5} {'alarm':>5} {'ms':>6}"
    )
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for name in SYSTEMS:
            if options.only not in name:
                continue
            for noise in (0.02, 0.1):
                rows = list(pool.map(one, [(name, noise, 100 + i) for i in range(options.draws)], chunksize=5))
                med = {k: np.median([r[k] for r in rows]) for k in ("odin", "default", "limit", "seconds")}
                print(
                    f"{name:26} {noise:5.2f} {med['odin']:8.4f} {med['default']:8.4f} {med['limit']:8.4f} "
                    f"{sum(r['worse'] > 1e-2 for r in rows):6d} {sum(r['kept'] for r in rows):5d} "
                    f"{sum(r['alarm'] for r in rows):5d} {1e3 * med['seconds']:6.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
