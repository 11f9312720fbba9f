"""Long series and many experiments: CPU seconds by part, peak memory, and how they grow.

Lotka–Volterra and FitzHugh–Nagumo with 3 % noise, from a good start: refinement, intervals, bands and files of N times;
then E experiments of 20 times that share θ. With `--odin` the whole default fit, too. Every case is a process of its
own, so that its memory is; the yardstick is the warm fit of 20 times in the same process.

    python benchmarks/long.py [--times 1000 10000 100000] [--experiments 1 10 100 1000] [--odin]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import odinfer as od
from odinfer.result.report import write_outputs
from odinfer.smoothing.units import Units
from odinfer.trajectory.refine import refine_from
from odinfer.uncertainty.maximum import Maximum

SYSTEMS = {"LV": od.systems.lotka_volterra, "FHN": od.systems.fitzhugh_nagumo}
PARTS = ("odin", "refinement", "intervals", "bands", "files")


def series(name: str, n: int, seed: int = 0) -> tuple[od.Data, np.ndarray]:
    """Data of n times and the states behind them."""
    system = SYSTEMS[name]
    t = np.linspace(system.t[0], system.t[-1], n)
    x = system.states(t)
    y = x + 0.03 * x.std(0) * np.random.default_rng(seed).normal(size=x.shape)
    return od.Data(t, y, states=system.model.states), x


def case(name: str, n: int, experiments: int, odin: bool) -> dict[str, float]:
    """CPU seconds by part, and megabytes."""
    spent: dict[str, float] = {}

    @contextmanager
    def timed(part: str) -> Iterator[None]:
        clock = time.process_time()
        yield
        spent[part] = spent.get(part, 0.0) + time.process_time() - clock

    system = SYSTEMS[name]
    small = od.Problem(system.model, series(name, 20)[0])
    od.fit(small)
    clock = time.process_time()
    od.fit(small)
    yardstick = time.process_time() - clock
    drawn = [series(name, n, seed) for seed in range(experiments)]
    data = drawn[0][0] if experiments == 1 else od.Data.join({f"e{i}": d for i, (d, _) in enumerate(drawn)})
    problem = od.Problem(system.model, data)
    theta = np.array([system.theta[p] for p in system.model.parameters])
    states = [(e.t, x) for e, (_, x) in zip(data.experiments, drawn, strict=True)]
    with np.errstate(all="ignore"):
        with timed("refinement"):
            found = refine_from(problem, theta, states)
            assert found is not None
            maximum = Maximum.of(problem, Units.of(problem).scale, found)
        with timed("intervals"):
            maximum.intervals()
        with timed("bands"):
            maximum.curves()
    if experiments == 1 and n > 20:
        start = dict(zip(system.model.parameters, (1.02 * theta).tolist(), strict=True))
        fit = od.fit(od.Problem(system.model, data, start=start), method=od.Trajectory(start="given"))
        with timed("files"), tempfile.TemporaryDirectory() as folder:
            write_outputs(fit, folder)
    if odin:
        with timed("odin"):
            od.fit(problem)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**spent, "memory": memory, "yardstick": yardstick}


def row(name: str, n: int, experiments: int, odin: bool) -> dict[str, float]:
    arguments = [sys.executable, __file__, "--case", name, str(n), str(experiments), *(["--odin"] if odin else [])]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(what: str, name: str, sizes: list[int], odin: bool) -> None:
    print(f"\n{name}: {what}")
    print("".join(f"{word:>12}" for word in (what, *PARTS, "all", "MB", "exponent", "x yardstick")))
    last: tuple[int, float] | None = None
    for size in sizes:
        found = row(name, size, 1, odin) if what == "times" else row(name, 20, size, odin)
        total = sum(found.get(part, 0.0) for part in PARTS)
        exponent = np.log(total / last[1]) / np.log(size / last[0]) if last else np.nan
        last = size, total
        seconds = "".join(f"{found[part]:12.2f}" if part in found else f"{'-':>12}" for part in PARTS)
        rest = f"{total:12.2f}{found['memory']:12.0f}{exponent:12.2f}{total / found['yardstick']:12.1f}"
        print(f"{size:12d}{seconds}{rest}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--experiments", type=int, nargs="*", default=[1, 10, 100, 1_000])
    parser.add_argument("--odin", action="store_true", help="the whole default fit, too")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        name, n, experiments = options.case
        print(json.dumps(case(name, int(n), int(experiments), options.odin)))
        return
    for name in SYSTEMS:
        if options.times:
            table("times", name, options.times, options.odin)
    if options.experiments:
        table("experiments", "LV", options.experiments, options.odin)


if __name__ == "__main__":
    main()
