"""Published PEtab problems: is the likelihood right, and does a fit find the optimum?

    .venv/bin/python benchmarks/petab.py FOLDER [--only NAME …] [--fit] [--seeds 5] [--profiles] [--peer [PYTHON]] \\
        [--keep FILE]

FOLDER has a folder for each problem of the PEtab benchmark collection. First, the log-likelihood at the nominal values
beside the one that other simulators give; with `--fit`, the default fit from the bounds alone, its log-likelihood below
the best known one, and CPU seconds; with `--profiles` the CPU seconds of the profiles of all parameters, too. With
`--peer`, AMICI's compiled model and pyPESTO with fides follow starts of their own (benchmarks/peer.py), by this
interpreter or another one that has them; where neither has, the figures that were recorded earlier are printed as such.
The ratio is of CPU seconds: our whole fit by the peer's compilation and the starts that it needs for one hit. Fits that
are kept in FILE are not computed again, so that a benchmark that was stopped goes on; in the end it prints their table.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import kept
import odinfer as od
from odinfer.io.petab_reader import nominal

# Log-likelihoods at the nominal values, and the best known where it is another one.
NOMINAL = {
    "Armistead": 301.9162, "Bertozzi": -158.8643, "Boehm": -138.2220, "Borghans": 83.3237, "Brannmark": -141.8892,
    "Bruno": 46.6882, "Crauste": -190.9640, "Elowitz": 63.2028, "Fiedler": 58.5839, "Fujita": 53.0837,
    "Liu": -723.3575, "Perelson": -432.0385, "Rahman": -21.1535, "Zheng": 278.3335,
}  # fmt: skip
BEST = {**NOMINAL, "Perelson": -222.281}
# CPU seconds of the peer for one hit, recorded earlier on a machine of this kind (AMICI 1.0, pyPESTO 0.7, fides), where
# compiling a model took 29 to 34 more; None where no start hit.
RECORDED = {"Perelson": 0.5, "Bertozzi": 0.5, "Bruno": 1.4, "Rahman": 3.3, "Boehm": 20.0, "Crauste": None,
            "Borghans": None, "Elowitz": None}  # fmt: skip
STARTS, SECONDS = 60, 300.0  # of the peer
HIT = 0.1


def peer(python: str, path: Path, name: str) -> dict[str, float] | None:
    """What the peer needs for a problem, by an interpreter; None if it does not have the peer."""
    script, env = Path(__file__).with_name("peer.py"), {**os.environ, "OMP_NUM_THREADS": "1"}
    env["PATH"] = os.pathsep.join([str(Path(python).parent), env.get("PATH", "")])  # AMICI's own swig
    command = [
        python,
        str(script),
        str(path),
        f"--best={BEST[name]}",
        "--starts",
        str(STARTS),
        "--seconds",
        str(SECONDS),
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 and lines else None


def beside(python: str, path: Path, name: str, ours: list[float]) -> str:
    """A line about the peer, and the ratio of our seconds to its own."""
    found = peer(python, path, name)
    if found is None:
        each = RECORDED.get(name)
        told = "no hit" if name in RECORDED and each is None else f"{each} CPU s per hit" if each else "nothing"
        return f"  peer: not installed here; recorded earlier on a machine of this kind: {told}"
    hits, seconds = found["hits"], found["seconds"]
    each = seconds / hits if hits else float("inf")
    line = (f"  peer: {hits} of {found['starts']} starts hit, {each:.2f} CPU s per hit (best {found['best']:.3f}), "
            f"compiling {found['compiling']:.1f} CPU s")  # fmt: skip
    if ours:
        mine = statistics.median(ours)
        line += f"; ours {mine:.1f} CPU s: {mine / (each + found['compiling']):.2f} of the peer's"
    return line


def fitted(problem: od.Problem, name: str, seed: int, profiles: bool) -> dict[str, Any]:
    """What the default fit from a seed reaches, and its CPU seconds."""
    begun = time.process_time()
    fit = od.fit(problem, seed=seed)
    found: dict[str, Any] = {
        "problem": name,
        "seed": seed,
        "seconds": time.process_time() - begun,
        "status": fit.status,
    }
    found["loglik"] = fit.maximum().loglik if fit.uncertainty is not None else float("nan")
    if profiles and fit.uncertainty is not None:
        begun = time.process_time()
        for parameter in fit.uncertainty.names:
            fit.profile(parameter)
        found["profiles"] = time.process_time() - begun
    return found


def table(every: list[dict[str, Any]]) -> str:
    """All fits, problem by problem."""
    lines = ["| problem | best known | found | reached, worst and best | CPU seconds, median (range) |",
             "|---|---|---|---|---|"]  # fmt: skip
    for name in dict.fromkeys(own["problem"] for own in every):
        own = [one for one in every if one["problem"] == name]
        seconds, reached = [one["seconds"] for one in own], [one["loglik"] for one in own]
        hits = sum(value > BEST[name] - HIT for value in reached)
        lines.append(f"| {name} | {BEST[name]:.3f} | {hits} of {len(own)} | {min(reached):.3f}, {max(reached):.3f} | "
                     f"{statistics.median(seconds):.1f} ({min(seconds):.1f}–{max(seconds):.1f}) |")  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--profiles", action="store_true")
    parser.add_argument("--peer", nargs="?", const=sys.executable)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    done = kept.read(given.keep)
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
        ours = []
        for seed in range(given.seeds if given.fit else 0):
            own = next((one for one in done if (one["problem"], one["seed"]) == (name, seed)), None)
            if own is None:
                own = fitted(problem, name, seed, given.profiles)
                done.append(own)
                kept.add(given.keep, own)
            ours.append(own["seconds"])
            line = f"  seed {seed}: {BEST[name] - own['loglik']:.4f} below the best, {own['seconds']:.1f} CPU s"
            line += f", profiles {own['profiles']:.1f} CPU s" if "profiles" in own else ""
            print(f"{line}, {own['status']}", flush=True)
        if given.peer:
            print(beside(given.peer, path, name, ours), flush=True)
    if done:
        print(f"\n{table(done)}")


if __name__ == "__main__":
    main()
