"""Long series and many experiments: CPU seconds, peak memory, and how they grow.

Lotka–Volterra and FitzHugh–Nagumo with 3 % noise: the whole default fit (smoothing, ODIN, refinement, intervals, bands)
of N times, and its files; then E experiments of 20 times that share θ. Every case is a process of its own, so that its
memory is; the yardstick is the warm fit of 20 times in the same process.

    python benchmarks/long.py [--times 200 1000 10000 100000] [--experiments 1 10 100 1000]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

import odinfer as od
from odinfer.result.report import write_outputs

SYSTEMS = {"LV": od.systems.lotka_volterra, "FHN": od.systems.fitzhugh_nagumo}


def series(name: str, n: int, seed: int = 0) -> od.Data:
    system = SYSTEMS[name]
    t = np.linspace(system.t[0], system.t[-1], n)
    x = system.states(t)
    y = x + 0.03 * x.std(0) * np.random.default_rng(seed).normal(size=x.shape)
    return od.Data(t, y, states=system.model.states)


def case(name: str, n: int, experiments: int) -> dict[str, float]:
    """CPU seconds of the fit, its files and the yardstick, megabytes, and whether it converged."""
    model = SYSTEMS[name].model
    small = od.Problem(model, series(name, 20))
    od.fit(small)
    clock = time.process_time()
    od.fit(small)
    yardstick = time.process_time() - clock
    drawn = [series(name, n, seed) for seed in range(experiments)]
    data = drawn[0] if experiments == 1 else od.Data.join({f"e{i}": d for i, d in enumerate(drawn)})
    clock = time.process_time()
    fit = od.fit(model, data)
    seconds = time.process_time() - clock
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    clock = time.process_time()
    if experiments == 1:
        with tempfile.TemporaryDirectory() as folder:
            write_outputs(fit, folder)
    return {
        "fit": seconds, "MB": memory, "files": time.process_time() - clock,
        "all MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "yardstick": yardstick, "converged": float(fit.converged),
    }  # fmt: skip


def table(what: str, name: str, sizes: list[int]) -> None:
    print(f"\n{name}")
    words = (what, "fit s", "files s", "fit MB", "all MB", "exponent", "x N = 20", "converged", "ms / each")
    print("".join(f"{word:>12}" for word in words))
    last: tuple[int, float] | None = None
    for size in sizes:
        n, experiments = (size, 1) if what == "times" else (20, size)
        arguments = [sys.executable, __file__, "--case", name, str(n), str(experiments)]
        found = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
        exponent = np.log(found["fit"] / last[1]) / np.log(size / last[0]) if last else np.nan
        last = size, found["fit"]
        print(
            f"{size:12d}{found['fit']:12.2f}{found['files']:12.2f}{found['MB']:12.0f}{found['all MB']:12.0f}"
            f"{exponent:12.2f}{found['fit'] / found['yardstick']:12.1f}{'yes' if found['converged'] else 'no':>12}"
            f"{1e3 * found['fit'] / size:12.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, nargs="*", default=[200, 1_000, 10_000, 100_000])
    parser.add_argument("--experiments", type=int, nargs="*", default=[1, 10, 100, 1_000])
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        name, n, experiments = options.case
        print(json.dumps(case(name, int(n), int(experiments))))
        return
    for name in SYSTEMS:
        if options.times:
            table("times", name, options.times)
    if options.experiments:
        table("experiments", "LV", options.experiments)


if __name__ == "__main__":
    main()
