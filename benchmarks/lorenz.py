"""Lorenz '96 with 10 to 10,000 states: seconds, memory, accuracy, and the exponent of time over the number of states.

    .venv/bin/python benchmarks/lorenz.py [--sizes 10,100,1000] [--seeds 1] [--first-seed 100] [--odin-only]

51 observations per state (0, 0.1, … 5), noise of standard deviation 1, default settings, one process and one thread
per size. Seconds include compilation. Those of the processor (`CPU s`, the whole fit) hardly depend on what else the
machine does, and the exponent is theirs; `eigh` is one numpy.linalg.eigh of a 200×200 matrix, in milliseconds around
the fit, to judge the machine by.
F is 8; RMSE is that of the states at the observed times, also in units of Gaussian process regression's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

FIELDS = ("K", "seed", "odin_s", "all_s", "cpu_s", "eigh_ms", "peak_mb", "F_odin", "F", "gp", "odin", "refined", "used")


def eigh_seconds() -> float:
    A, seconds = np.random.default_rng(0).normal(size=(200, 200)), []
    for _ in range(15):
        start = time.perf_counter()
        np.linalg.eigh(A + A.T)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def one(K: int, seed: int, refine: bool) -> dict[str, object]:
    """A fit of one draw in this process."""
    import resource

    import odinfer as od

    system, t = od.systems.lorenz96(K), 0.1 * np.arange(51)
    truth, data = system.states(t), system.sample(1.0, seed, t)
    problem = od.Problem(system.model, data)
    yard = [eigh_seconds()]
    start, cpu = time.perf_counter(), time.process_time()
    fit = od.fit(problem, method=od.Odin(refine=refine), seed=seed)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yard.append(eigh_seconds())

    def rmse(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean((x - truth) ** 2)))

    risk = od.Odin().risk(problem)
    rows = np.searchsorted(risk.t, t - 1e-9)
    last = fit.stages.get("refined", fit.stages["odin"])
    values = (
        K, seed, fit.stages["odin"].seconds, seconds, cpu, 1e3 * float(np.mean(yard)), peak,
        fit.stages["odin"].theta["F"], last.theta["F"],
        rmse(risk.units.user(risk.mean)[rows]), rmse(fit.stages["odin"].x[0]), rmse(last.x[0]),
        fit.details["stage_used"],
    )  # fmt: skip
    return dict(zip(FIELDS, values, strict=True))


def exponent(rows: list[dict[str, float]]) -> float:
    """Slope of log processor time over log K."""
    return float(np.polyfit(np.log([r["K"] for r in rows]), np.log([r["cpu_s"] for r in rows]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,20,50,100,200,500,1000")
    parser.add_argument("--seeds", type=int, default=1, help="draws per size")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--odin-only", action="store_true", help="without refinement")
    parser.add_argument("--one", nargs=2, type=int, metavar=("K", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.one, not options.odin_only)))
        return
    print(
        f"{'K':>6} {'ODIN s':>7} {'all s':>7} {'CPU s':>7} {'eigh':>5} {'peak MB':>8} {'F ODIN':>7} {'F':>7} "
        f"{'GP':>6} {'ODIN/GP':>8} {'refined/GP':>11}  used"
    )
    rows = []
    for K in map(int, options.sizes.split(",")):
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            command = [sys.executable, __file__, "--one", str(K), str(seed), *["--odin-only"] * options.odin_only]
            r = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            rows.append(r)
            print(
                f"{K:6d} {r['odin_s']:7.1f} {r['all_s']:7.1f} {r['cpu_s']:7.1f} {r['eigh_ms']:5.1f} "
                f"{r['peak_mb']:8.0f} {r['F_odin']:7.3f} {r['F']:7.3f} {r['gp']:6.3f} {r['odin'] / r['gp']:8.2f} "
                f"{r['refined'] / r['gp']:11.2f}  {r['used']}",
                flush=True,
            )
    if len({r["K"] for r in rows}) > 1:
        large = [r for r in rows if r["K"] >= 100]
        above = f", from 100 states on {exponent(large):.2f}" if len({r["K"] for r in large}) > 1 else ""
        print(f"exponent of processor time over K: {exponent(rows):.2f}{above}")
        first, last = rows[0], rows[-1]
        each = 1024 * (last["peak_mb"] - first["peak_mb"]) / (last["K"] - first["K"])
        print(f"memory per state: {each:.0f} kB")


if __name__ == "__main__":
    main()
