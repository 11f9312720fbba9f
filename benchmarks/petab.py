"""Published PEtab problems: is the likelihood right, and does a fit find the optimum?

    .venv/bin/python benchmarks/petab.py FOLDER [--only NAME …] [--fit] [--seeds 5]

FOLDER has a folder for each problem of the PEtab benchmark collection. First, the log-likelihood at the nominal values
beside the one that other simulators give; with `--fit`, the default fit from the bounds alone, its log-likelihood below
the best known one, and CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import odinfer as od
from odinfer.exchange.petab import nominal

# Log-likelihoods at the nominal values, and the best known where it is another one.
NOMINAL = {
    "Armistead": 301.9162, "Bertozzi": -158.8643, "Boehm": -138.2220, "Borghans": 83.3237, "Brannmark": -141.8892,
    "Bruno": 46.6882, "Crauste": -190.9640, "Elowitz": 63.2028, "Fiedler": 58.5839, "Fujita": 53.0837,
    "Liu": -723.3575, "Perelson": -432.0385, "Rahman": -21.1535, "Zheng": 278.3335,
}  # fmt: skip
BEST = {**NOMINAL, "Perelson": -222.281}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore", od.InputWarning)
    print("| problem | states | experiments | log-likelihood | published | seconds |\n|---|---|---|---|---|---|")
    for path in sorted(given.folder.glob("*/*.yaml")):
        name = path.parent.name.partition("_")[0]
        if given.only and name not in given.only:
            continue
        try:
            begun = time.process_time()
            problem, values = od.read_petab(path), nominal(path)
            found = od.loglik(problem, values)
        except od.InputError as error:
            print(f"| {name} | | | refused: {error} | {NOMINAL.get(name, '-')} | |")
            continue
        seconds, m = time.process_time() - begun, problem.model
        print(f"| {name} | {len(m.states)} | {len(problem.data.experiments)} | {found:.4f} | "
              f"{NOMINAL.get(name, '-')} | {seconds:.2f} |", flush=True)  # fmt: skip
        for seed in range(given.seeds if given.fit else 0):
            begun = time.process_time()
            fit = od.fit(problem, seed=seed)
            seconds = time.process_time() - begun
            reached = fit.maximum().loglik if fit.uncertainty is not None else float("nan")
            print(
                f"  seed {seed}: {BEST[name] - reached:.4f} below the best, {seconds:.1f} CPU s, {fit.status}",
                flush=True,
            )


if __name__ == "__main__":
    main()
