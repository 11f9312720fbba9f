"""The paper's preset against the authors' program, draw by draw.

    .venv/bin/python benchmarks/authors.py DATA

DATA is a folder with what their program returned (authors_runs.json) and the draws it was given (paper_draws/*.npz:
t, y (draws, K, N)); neither is part of this package. Per setting it prints how far the evidence of our
hyperparameters lies above theirs at worst (nats, summed over states), in how many draws our risk is not above theirs
by more than 0.1, and in how many of the draws where both agree to 0.01 all parameters agree within 2 %.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import odinfer as od
from odinfer.gp.evidence import Hyperparameters, Series, log_evidence
from odinfer.gp.smoother import smooth_states
from odinfer.gp.standardisation import Units

# setting: system, the order of the parameters in the authors' program
SETTINGS = {
    "lv_sigma0.1": ("lotka_volterra", "a b c d"),
    "lv_sigma0.5": ("lotka_volterra", "a b c d"),
    "fhn_snr100": ("fitzhugh_nagumo", "a b c"),
    "fhn_snr10": ("fitzhugh_nagumo", "a b c"),
    "pt_sigma0.001": ("protein_transduction", "k1 k2 k3 k4 k5 k6"),
    "pt_sigma0.01": ("protein_transduction", "k1 k2 k3 k4 k5 k6"),
}


def evidence_gain(problem: od.Problem, method: od.Odin, theirs: dict) -> float:
    """Evidence of our hyperparameters minus that of theirs, summed over states."""
    units = Units.of(problem, method.scale_time)
    ours = smooth_states(problem, units, method.kernel, method.shared, method.hyper_bounds, True, False)
    y = units.standard(problem.data.y).T
    t = units.standard_time(problem.data.t, problem.data.t[0])
    gain = 0.0
    for k, h in enumerate(ours):
        shape = (theirs["gp_a"][k], theirs["gp_b"][k]) if "gp_a" in theirs else (theirs["gp_lengthscales"][k],)
        their = Hyperparameters(h.kernel, shape, theirs["gp_variances"][k], theirs["gp_noise_var"][k], 0.0)
        gain += log_evidence(h, [Series(t, y[k])]) - log_evidence(their, [Series(t, y[k])])
    return gain


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
    runs = json.loads((folder / "authors_runs.json").read_text())["authors_odin"]
    head = f"{'setting':14} {'draws':>5} {'evidence gain ≥':>16} {'risk not above':>15}"
    print(f"{head} {'risks agree':>12} {'θ agrees':>9}")
    for setting, (name, order) in SETTINGS.items():
        system = getattr(od.systems, name)
        draws = np.load(folder / "paper_draws" / f"{setting}.npz")
        rows = []
        for run in runs[setting]:
            data = od.Data(draws["t"], draws["y"][run["seed"]].T, states=system.model.states)
            problem, method = system.problem(data), od.Odin.paper(system)
            fit = od.fit(problem, method=method, seed=run["seed"])
            theta = [abs(fit.theta[p] - v) <= 0.02 * abs(v) for p, v in zip(order.split(), run["theta"], strict=True)]
            above = 0.5 * fit.stages["odin"].objective - run["risk"]  # theirs is half the paper's risk
            rows.append((evidence_gain(problem, method, run), above, all(theta)))
        gain, above, theta = np.array(rows).T
        agree = np.abs(above) < 0.01
        print(
            f"{setting:14} {len(rows):5d} {gain.min():16.1e} {np.sum(above <= 0.1):15d} {agree.sum():12d} "
            f"{int(theta[agree].sum()):9d}",
            flush=True,
        )


if __name__ == "__main__":
    main()
