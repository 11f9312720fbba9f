"""The search alone on published PEtab problems, from the bounds, against the seconds that a peer needs.

    .venv/bin/python benchmarks/petab_search.py FOLDER [--only NAME …] [--seeds 5] [--first 0]

FOLDER has a folder for each problem of the PEtab benchmark collection. Prints for every seed how far the log-likelihood
of the best trajectory (by `od.loglik`, which integrates independently of the search) lies below the best known one, the
CPU seconds, how many starts were followed, and how many led to the best. The peer is AMICI 1.0 with pyPESTO 0.7 and
fides, starts uniform within bounds: CPU seconds for one start that comes within 0.1 of the best (more than all that was
measured, where none did), and 31 for compiling the model.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import odinfer as od
from odinfer.problem.observables import need_times
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.search.multistart import search
from petab import BEST

PEER = {"Perelson": 0.5, "Bertozzi": 0.5, "Bruno": 1.4, "Rahman": 3.3, "Boehm": 20.0, "Crauste": 207.0,
        "Borghans": 80.0, "Elowitz": 102.0}  # fmt: skip
COMPILING = 31.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore", od.InputWarning)
    for seed in range(given.first, given.first + given.seeds):
        for path in sorted(given.folder.glob("*/*.yaml")):
            name = path.parent.name.partition("_")[0]
            if given.only and name not in given.only:
                continue
            try:
                problem = od.read_petab(path)
                need_times(problem)
            except od.InputError as error:
                print(f"{name}: refused: {error}")
                continue
            begun = time.process_time()
            found = search(problem, seed)
            seconds = time.process_time() - begun
            if found.best is None:
                print(f"{name} seed {seed}: nothing found, {seconds:.1f} CPU s", flush=True)
                continue
            u, best = ParameterVector(problem), found.best
            values = dict(zip(problem.parameters, problem.theta(best.phi), strict=True))
            values |= {f"sigma {c}": s for c, s, own in zip(problem.columns, best.sigma, problem.estimated_noise,
                                                            strict=True) if own}  # fmt: skip
            values |= dict(zip(u.names, u.join([p.x0 for p in best.paths], best.phi), strict=True)) if u.initial else {}
            reached = od.loglik(problem, values)
            peer = PEER.get(name)
            ratio = "" if peer is None else f", peer {peer + COMPILING:.0f} s: {seconds / (peer + COMPILING):.3f} of it"
            below = BEST.get(name, float("nan")) - reached
            print(f"{name} seed {seed}: {below:.4f} below the best, {seconds:.1f} CPU s, "
                  f"{len(found.objectives)} starts, {found.agreeing} agree{ratio}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
