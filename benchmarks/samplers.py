"""Speed of the samplers on Lotka–Volterra (σ = 0.1), all in the same run on one core.

    .venv/bin/python benchmarks/samplers.py [--seconds 3]

1. Sweeps per second of FGPGM's random walk over all its chains, and as multiples of a sweep written in numpy.
2. Effective draws of θ per second, of the random walk and of NUTS: the ratio is how much sooner NUTS reaches the same
   Monte-Carlo error.
3. Iterations per second of AGM, and the paper's 300,000 of them against the paper's 4,548 s.
Everything is compiled before it is measured. Compare ratios, and only on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np

PAPER_AGM_SECONDS, PAPER_AGM_ITERATIONS = 4548.0, 300_000


def numpy_sweeps_per_second(problem, gamma: float, seconds: float) -> float:
    """The yardstick: the same single-site sweep as a plain loop that evaluates the whole density for every move."""
    from odinfer.paper.fgpgm import Fgpgm

    risk = Fgpgm().search(gamma).engine(problem)
    (block,), rng, units = risk.blocks, np.random.default_rng(0), risk.units
    smoother = block.smoother
    S = (smoother.Q * smoother.w[:, None]) @ np.swapaxes(smoother.Q, 1, 2) + gamma * np.eye(len(risk.t))
    L = np.linalg.inv(S)

    def level(z, theta):
        x = units.mean[:, None] + units.scale[:, None] * z
        f = np.stack([theta[0] * x[0] - theta[1] * x[0] * x[1], -theta[2] * x[1] + theta[3] * x[0] * x[1]])
        r = f * (units.time / units.scale)[:, None] - (smoother.D @ z[..., None])[..., 0]
        quadratic = np.vdot(z, (smoother.C_inv @ z[..., None])[..., 0]) + np.vdot(r, (L @ r[..., None])[..., 0])
        return -0.5 * (quadratic + (block.weight * (z - block.y) ** 2).sum())

    state = np.r_[risk.mean.T.ravel(), 2.0, 1.0, 4.0, 1.0]
    size, count = risk.mean.size, 0
    value = level(state[:size].reshape(2, -1), state[size:])
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for i in range(len(state)):
            trial = state.copy()
            trial[i] += 0.05 * rng.normal()
            new = level(trial[:size].reshape(2, -1), trial[size:])
            if np.log(rng.random()) < new - value:
                state, value = trial, new
        count += 1
    return count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="for the yardstick")
    seconds = parser.parse_args().seconds

    import odinfer as od
    from odinfer.paper.agm import Agm
    from odinfer.paper.fgpgm import Fgpgm

    system = od.systems.lotka_volterra
    problem = od.Problem(system.model, system.sample(0.1, 0), positive=True)
    gamma = Fgpgm().gamma
    yardstick = numpy_sweeps_per_second(problem, gamma, seconds)
    print(f"{'':34} {'per second':>11} {'ratio':>8}")
    print(f"{'sweeps, numpy':34} {yardstick:11.0f} {1:8.1f}")

    walk = Fgpgm(sampler="metropolis")
    nuts = Fgpgm(sampler="nuts")
    rate = {}
    for name, method in (("random walk", walk), ("NUTS", nuts)):
        method.fit(problem)
        fit = method.fit(problem, seed=1)
        rate[name] = min(fit.details["ess"].values()) / fit.details["seconds"]
        if method is walk:
            sweeps = sum(method.lengths) * method.chains / fit.details["seconds"]
            print(f"{f'sweeps, {method.chains} chains':34} {sweeps:11.0f} {sweeps / yardstick:8.1f}")
    for name, value in rate.items():
        print(f"{'effective draws of θ, ' + name:34} {value:11.1f} {value / rate['random walk']:8.1f}", flush=True)

    agm = Agm.paper(system)
    agm.fit(problem)
    fit = agm.fit(problem, seed=1)
    per_second = fit.details["iterations"] / fit.details["seconds"]
    speedup = per_second * PAPER_AGM_SECONDS / PAPER_AGM_ITERATIONS
    print(f"{'AGM iterations (ratio: paper)':34} {per_second:11.0f} {speedup:8.0f}")


if __name__ == "__main__":
    main()
