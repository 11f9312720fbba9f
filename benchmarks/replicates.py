"""Replicates kept one by one against their means: noise, coverage of 95 % intervals, accusations and seconds.

python benchmarks/replicates.py [--draws 60] [--times 10] [--replicates 3] [--seed 5]
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import odinfer as od
from odinfer.diagnostics.verdicts import CONTRADICTS

SYSTEMS = {"lotka_volterra": 0.1, "fitzhugh_nagumo": 0.2}  # and the standard deviation of the noise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("draws", 60), ("times", 10), ("replicates", 3), ("seed", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    warnings.simplefilter("ignore", od.InputWarning)
    columns = ("system", "policy", "noise", "its estimate", "covered", "without intervals", "accused", "median s")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name, sd in SYSTEMS.items():
        system, rng = getattr(od.systems, name), np.random.default_rng(given.seed)
        truth = dict(system.theta)
        t = np.linspace(system.t[0], system.t[-1], given.times)
        x = np.repeat(od.simulate(system.model, truth, system.x0, t), given.replicates, axis=0)
        found: dict[str, list[tuple[float, float, bool, float]]] = {"keep": [], "mean": []}
        for _ in range(given.draws):
            y = x + sd * rng.normal(size=x.shape)
            for policy, rows in found.items():
                data = od.Data(np.repeat(t, given.replicates), y, system.model.states, replicates=policy)
                start = time.process_time()
                fit = od.fit(system.model, data)
                seconds = time.process_time() - start
                ends = fit.interval() if fit.uncertainty else {}
                inside = np.mean([low <= truth[p] <= high for p, (low, high) in ends.items()]) if ends else np.nan
                accused = any(verdict == CONTRADICTS for verdict in fit.verdicts.values())
                rows.append((float(np.mean(list(fit.sigma.values()))), float(inside), accused, seconds))
        for policy, rows in found.items():
            noise, covered, accused, seconds = np.array(rows, float).T
            shown = f"{noise.mean():.3f} | {np.nanmean(covered):.3f} | {np.isnan(covered).sum()} | {accused.sum():.0f}"
            print(f"| {name} | {policy} | {sd} | {shown} | {np.median(seconds):.2f} |", flush=True)


if __name__ == "__main__":
    main()
