"""How CPU seconds and memory of a default fit grow with experiments, cycles and hidden states.

    .venv/bin/python benchmarks/scale.py experiments 1000   # of Lotka–Volterra, 20 times each
    .venv/bin/python benchmarks/scale.py times 100000       # of Lotka–Volterra over 200 cycles
    .venv/bin/python benchmarks/scale.py chain 30           # states and rates, of which five states are observed

One size a run, since memory is that of the process. Seconds are those of the whole fit, and those before its intervals.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import odinfer as od
import peers
from odinfer import systems
from odinfer.uncertainty.maximum import Maximum

LV = systems.lotka_volterra


def experiments(size: int) -> od.Problem:
    """So many draws of the paper's system."""
    return od.Problem(LV.model, od.Data.join({f"e{i}": LV.sample(0.1, i) for i in range(size)}))


def times(size: int) -> od.Problem:
    """So many times within 400 time units."""
    t = np.linspace(0.0, 400.0, size)
    x = od.simulate(LV.model, {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0}, [5.0, 3.0], t)
    y = x + 0.1 * np.random.default_rng(0).normal(size=x.shape)
    return od.Problem(LV.model, od.Data(t, y, states=LV.model.states))


def chain(size: int) -> od.Problem:
    """A cascade of so many states with as many rates."""
    system = peers.chain(size, tuple(round(size * share / 5) for share in range(1, 6)), size)
    data = od.Data(system.t, peers.draw(system, 0), states=[*system.noise])
    return od.Problem(od.Model.from_text(system.text), data, sigma=dict(system.noise))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = {"experiments": experiments, "times": times, "chain": chain}
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("size", type=int)
    args = parser.parse_args()
    problem, before, intervals = kinds[args.kind](args.size), [], Maximum.intervals
    begun = time.process_time()

    def told(self: Maximum, *level: float) -> Any:
        before.append(time.process_time() - begun)
        return intervals(self, *level)

    Maximum.intervals = told  # type: ignore[method-assign]
    fit = od.fit(problem)
    seconds, memory = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"{args.kind} {args.size}: {seconds:.1f} CPU s, {before[0] if before else np.nan:.1f} before the intervals, "
        f"{memory:.0f} MB, log-likelihood {fit.details['loglik']:.2f}"
    )


if __name__ == "__main__":
    main()
