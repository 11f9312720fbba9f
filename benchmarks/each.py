"""Many series, one model: what fitting each on its own costs, in units of one warm fit of the same run.

    .venv/bin/python benchmarks/each.py                  # 1,000 series of Lotka–Volterra with 20 points
    .venv/bin/python benchmarks/each.py --series 100

Rows are one worker process, two of them, the same again with everything in the store, and the page.
Other work on the machine shows in the load, and in CPU seconds that fall short of wall seconds times workers.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import odinfer as od

MODEL = """
prey' = a*prey - b*prey*predator
predator' = -c*predator + d*prey*predator
"""


def series(count: int) -> od.Data:
    """Draws whose parameters scatter by 10 % about those of the paper, with its noise of 0.1."""
    rng = np.random.default_rng(0)
    model, t = od.Model.from_text(MODEL), np.linspace(0.0, 2.0, 20)
    parts = {}
    for i in range(count):
        theta = dict(zip("abcd", np.array([2.0, 1.0, 4.0, 1.0]) * np.exp(0.1 * rng.normal(size=4)), strict=True))
        x = od.simulate(model, theta, [5.0, 3.0], t)
        parts[f"{i:04d}"] = od.Data(t, x + 0.1 * rng.normal(size=x.shape), states=model.states)
    return od.Data.join(parts)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it gives, wall seconds, and CPU seconds of this process and of those that it started and that ended."""

    def cpu() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used)

    wall, before = time.perf_counter(), cpu()
    found = work()
    return found, time.perf_counter() - wall, cpu() - before


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--series", type=int, default=1000)
    count = options.parse_args().series
    model, data = od.Model.from_text(MODEL), series(count)
    single = [od.Problem(model, data.only(e.name)) for e in data.experiments[:20]]
    od.fit(single[0])
    costs = [timed(lambda p=p: od.fit(p))[1:] for p in single]
    unit, unit_cpu = (float(v) for v in np.mean(costs, 0))
    print(f"{count} series; load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores")
    print(f"one warm fit, mean of {len(single)}: {unit:.3f} s, {unit_cpu:.3f} s of CPU\n")
    print(f"{'':22}{'wall s':>9}{'CPU s':>9}{'CPU of a fit, per series':>26}")

    def row(what: str, wall: float, cpu: float) -> None:
        print(f"{what:22}{wall:9.1f}{cpu:9.1f}{cpu / count / unit_cpu:26.3f}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        walls, fits = {}, None
        for workers in (1, 2):
            store = Path(folder) / str(workers)
            fits, walls[workers], cpu = timed(lambda w=workers, s=store: od.fit_each(model, data, workers=w, store=s))
            row(f"{workers} worker{'s' * (workers > 1)}", walls[workers], cpu)
        row("again, from the store", *timed(lambda: od.fit_each(model, data, workers=2, store=Path(folder) / "2"))[1:])
        page = Path(folder) / "page.html"
        row("table and page", *timed(lambda: fits.save(page))[1:])
        log = (Path(folder) / "2" / "runs.sqlite").stat().st_size
        print(f"\ntwo workers are {walls[1] / walls[2]:.2f} times as fast as one; load now {os.getloadavg()[0]:.1f}")
        print(f"page {page.stat().st_size / 1e6:.2f} MB, store {log / 1e6:.1f} MB, {len(fits.failed)} failed, "
              f"{len(fits.contradicted)} contradicted, {len(fits.outliers)} outliers")  # fmt: skip


if __name__ == "__main__":
    main()
