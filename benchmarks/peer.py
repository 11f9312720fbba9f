"""The peer on one PEtab problem: AMICI's compiled model, pyPESTO with fides, starts uniform within the bounds.

    python benchmarks/peer.py problem.yaml --starts 40 --best -138.222 [--seconds 300]

For an interpreter that has `amici`, `pypesto` and `fides`; odinfer is not needed. Prints one line of JSON: CPU seconds
of compiling the model and of all starts, how many starts there were, and how many ended within 0.1 of the best known
log-likelihood. `benchmarks/petab.py --peer` runs it beside our own fits.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

HIT = 0.1
_AT_ONCE = 4  # starts between two looks at the clock


def cpu() -> float:
    """CPU seconds of this process and of the compilers it has started."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", type=Path)
    parser.add_argument("--starts", type=int, default=40)
    parser.add_argument("--best", type=float, required=True)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.path.pop(0)  # this folder, in which petab.py is not the package that pyPESTO imports
    import numpy as np
    from pypesto.engine import SingleCoreEngine
    from pypesto.optimize import FidesOptimizer, minimize
    from pypesto.petab import PetabImporter
    from pypesto.startpoint import uniform

    np.random.seed(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        begun = cpu()
        importer = PetabImporter.from_yaml(str(given.problem), output_folder=f"{folder}/model", model_name="peer")
        problem = importer.create_problem()
        compiling = cpu() - begun
        begun, clock, found = cpu(), time.monotonic(), []
        optimizer = FidesOptimizer(options={"maxiter": 1000}, verbose=logging.CRITICAL)
        while len(found) < given.starts and time.monotonic() - clock < given.seconds:
            some = min(_AT_ONCE, given.starts - len(found))
            result = minimize(
                problem, optimizer=optimizer, n_starts=some, startpoint_method=uniform, engine=SingleCoreEngine(),
                progress_bar=False,
            )  # fmt: skip
            found += [float(value) for value in result.optimize_result.fval]
        seconds = cpu() - begun
    hits = sum(-value > given.best - HIT for value in found)
    best = -min(found)
    print(json.dumps({"compiling": compiling, "seconds": seconds, "starts": len(found), "hits": hits, "best": best}))


if __name__ == "__main__":
    main()
