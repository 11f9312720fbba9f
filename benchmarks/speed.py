"""Speed, as ratios to yardsticks measured in the same run.

    make bench        (or .venv/bin/python benchmarks/speed.py [--quick])

1. The warm ODIN stage whole (evidence, warp, γ, states, θ): milliseconds, multiples of one numpy.linalg.eigh of a
   200×200 matrix on one thread, and how many times faster than the authors' program (their seconds were measured
   where that eigh takes 4.1 ms, and are scaled by it).
2. Gauss–Newton against the paper's L-BFGS-B on the same risk from the same start; also times eleven where the
   authors add ten basin hops (FHN and PT).
3. A warm default fit against what a user would do instead: scipy's LSODA and least_squares from ten random starts.
4. The command from a cold shell against `import jax, pandas`, and its peak memory.
5. Uncertainty on LV (σ = 0.1): the default intervals and a bootstrap of 200 refits in units of a fit; NUTS with and
   without compilation, and its effective draws of θ per second against FGPGM's Metropolis sampler.
6. f and its Jacobians of models from text at 39, 390 and 3,000 points, and f at one point, against JAX.
7. Four candidates of Lotka–Volterra with verdicts: CPU seconds of `od.compare`, the first in a process and once more,
   in units of that eigh.
Compare ratios, not seconds, and only on a quiet machine.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

# Seconds of the authors' program per fit, low and high noise, and where one eigh takes 4.1 ms.
AUTHORS = {"lotka_volterra": (1.8, 2.1), "fitzhugh_nagumo": (2.2, 3.2), "protein_transduction": (2.8, 11.7)}
EIGH = 4.1e-3


def clock(run: Callable[[], object], repeats: int) -> float:
    """Median seconds of a call."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def eigh_seconds() -> float:
    A = np.random.default_rng(0).normal(size=(200, 200))
    return clock(lambda: np.linalg.eigh(A + A.T), 15)


def odin_stage(draws: int) -> None:
    import odinfer as od

    print("\n1. warm ODIN stage whole")
    print(f"{'':22} noise {'ms':>7} {'× eigh':>7} {'× faster than authors':>22}")
    for name, authors in AUTHORS.items():
        system = getattr(od.systems, name)
        for level in (0, 1):
            problems = [od.Problem(system.model, system.sample(system.levels[level], s)) for s in range(draws)]
            method = od.Odin()
            method.solve(problems[0], 0)
            yard = eigh_seconds()
            seconds = float(np.median([clock(functools.partial(method.solve, p, 1), 3) for p in problems]))
            yard = min(yard, eigh_seconds())
            print(
                f"{name:22} {'high' if level else 'low ':5} {1e3 * seconds:7.1f} {seconds / yard:7.1f} "
                f"{authors[level] / EIGH / (seconds / yard):22.0f}",
                flush=True,
            )


def optimisers(draws: int) -> None:
    import odinfer as od
    from odinfer.odin.startpoints import draw

    print("\n2. Gauss–Newton against L-BFGS-B: same risk, same start (medians)")
    head = f"{'':22} {'settings':9} {'GN ms':>7} {'L-BFGS-B ms':>12} {'ratio':>6} {'with its 10 hops':>18}"
    print(head + f" {'GN risk not above by 0.01':>26}")
    for name in AUTHORS:
        system = getattr(od.systems, name)
        presets = {"default": od.Odin(), "paper's": od.Odin.paper(system, hops=0)}
        hops = 0 if name == "lotka_volterra" else 10
        for label, method in presets.items():
            rows = []
            for seed in range(draws):
                data = system.sample(system.levels[0], seed)
                problem = system.problem(data) if label == "paper's" else od.Problem(system.model, data)
                risk = method.risk(problem)
                phi = draw(problem, 1, np.random.default_rng(seed))[0]
                method.minimise(risk, risk.mean, phi)
                start = time.perf_counter()
                gn = method.minimise(risk, risk.mean, phi)
                middle = time.perf_counter()
                paper = od.Odin.paper(system, hops=0, optimizer="lbfgsb").minimise(risk, risk.mean, phi)
                rows.append((middle - start, time.perf_counter() - middle, gn.risk - paper.risk))
            gn, paper, gap = np.array(rows).T
            ratio = float(np.median(paper / gn))
            print(
                f"{name:22} {label:9} {1e3 * np.median(gn):7.1f} {1e3 * np.median(paper):12.0f} {ratio:6.0f} "
                f"{(1 + hops) * ratio:18.0f} {np.sum(gap <= 0.01):22d} of {draws}",
                flush=True,
            )


def scipy_instead(t: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    """Trajectory matching as a user would write it: ten random starts, θ and x0 free."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import least_squares

    def field(_: float, x: np.ndarray, a: float, b: float, c: float, d: float) -> list[float]:
        return [a * x[0] - b * x[0] * x[1], -c * x[1] + d * x[0] * x[1]]

    def residual(v: np.ndarray) -> np.ndarray:
        run = solve_ivp(field, (t[0], t[-1]), v[4:], "LSODA", t_eval=t, args=tuple(v[:4]), rtol=1e-6, atol=1e-8)
        return (run.y.T - y).ravel() if run.y.shape[1] == len(t) else np.full(y.size, 1e3)

    rng = np.random.default_rng(seed)
    best = min(
        (
            least_squares(
                residual, np.r_[np.abs(rng.normal(size=4)), y[0]], bounds=(0, 100), x_scale="jac", max_nfev=200
            )
            for _ in range(10)
        ),
        key=lambda r: r.cost,
    )
    return best.x[:4], 2 * best.cost


def against_scipy(draws: int) -> None:
    import warnings

    import odinfer as od

    warnings.simplefilter("ignore")
    print("\n3. a warm default fit of LV (σ = 0.1) against scipy LSODA + least_squares from 10 random starts")
    system = od.systems.lotka_volterra
    od.fit(system.model, system.sample(0.1, 999))
    ours, theirs, failed, lost = [], [], 0, 0
    for seed in range(draws):
        data = system.sample(0.1, seed)
        problem = od.Problem(system.model, data)
        start = time.perf_counter()
        fit = od.fit(problem, seed=seed)
        middle = time.perf_counter()
        _, cost = scipy_instead(data.t, data.y, seed)
        theirs.append(time.perf_counter() - middle)
        ours.append(middle - start)
        x = fit.experiments["1"].x
        failed += not fit.converged or float(((x - data.y) ** 2).sum()) > 2 * 0.01 * data.y.size
        lost += cost > 2 * 0.01 * data.y.size
    print(
        f"   ours {1e3 * np.median(ours):.0f} ms, {failed} of {draws} failed; scipy {1e3 * np.median(theirs):.0f} ms, "
        f"{lost} of {draws} failed; ratio {np.median(theirs) / np.median(ours):.0f}"
    )


def cold_shell(repeats: int) -> None:
    print("\n4. `odinfer fit` on LV from a cold shell against `import jax, pandas`")
    command = Path(sys.executable).with_name("odinfer")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([command, "example", "lotka_volterra", folder], check=True, capture_output=True)
        files = [f"{folder}/lotka_volterra.ode", f"{folder}/lotka_volterra.csv", "-o", f"{folder}/out"]
        # Bytecode is there after the first run, which does not count, as after an installation.
        env = os.environ | {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        yard, cold, peak = [], [], 0.0
        for _ in range(repeats + 1):
            ours = process([command, "fit", *files], env)
            yard.append(process([sys.executable, "-c", "import jax, pandas"], env)[1:])
            peak, cold = max(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024), [*cold, ours]
    (first, wall, cpu), (yard_wall, yard_cpu) = np.min(cold[1:], 0), np.min(yard[1:], 0)
    print(
        f"   import {yard_wall:.2f} s; answer {first:.2f} s ({first / yard_wall:.1f} ×), all files {wall:.2f} s "
        f"({wall / yard_wall:.1f} ×; in CPU seconds {cpu / yard_cpu:.1f} ×); peak memory {peak:.0f} MB"
    )


def process(command: list[object], env: dict[str, str]) -> tuple[float, float, float]:
    """Seconds until a command printed its first line, until it ended, and CPU seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, env=env) as running:
        assert running.stdout is not None
        running.stdout.readline()
        first = time.perf_counter() - start
        running.stdout.read()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if running.returncode:
        raise RuntimeError(f"{command} failed")
    return first, seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def uncertainty(repeats: int) -> None:
    import odinfer as od

    print("\n5. uncertainty, LV (σ = 0.1), one core")
    system = od.systems.lotka_volterra
    problem = od.Problem(system.model, system.sample(0.1, 0), positive=True)
    fit = od.fit(problem)
    maximum = fit.maximum()
    maximum.intervals()
    whole = clock(lambda: od.fit(problem), 2 * repeats)
    alone = clock(maximum.intervals, 2 * repeats)
    print(
        f"   fit {1e3 * whole:.0f} ms, of which intervals {1e3 * alone:.0f} ms: + {100 * alone / (whole - alone):.0f} %"
    )
    fit.bootstrap(200)
    boot = clock(lambda: fit.bootstrap(200), 3)
    print(f"   bootstrap of 200 refits {boot:.2f} s: {boot / whole:.0f} fits' worth")
    first = clock(lambda: fit.sample(), 1)
    drawn = fit.sample(seed=1)
    walk = od.Fgpgm(sampler="metropolis")
    walk.fit(problem)
    other = walk.fit(problem, seed=1)
    ours = min(drawn.ess.values()) / drawn.seconds
    theirs = min(other.details["ess"].values()) / other.details["seconds"]
    print(
        f"   NUTS 4 × 1,000 draws {first:.1f} s with compilation, {drawn.seconds:.1f} s without; R-hat at most "
        f"{max(drawn.r_hat.values()):.3f}; effective draws per second {ours:.0f}, Metropolis {theirs:.1f}: "
        f"× {ours / theirs:.0f}"
    )


def field(repeats: int) -> None:
    import odinfer as od
    from odinfer.model.vector_field import TracedField

    print("\n6. f and its Jacobians by the text itself / by JAX, µs; then f alone at one point")
    for name in ("lotka_volterra", "protein_transduction"):
        model, line = getattr(od.systems, name).model, ""
        for M in (39, 390, 3000, 1):
            x = np.random.default_rng(0).uniform(0.2, 2.0, (M, len(model.states)))
            at = np.arange(float(M)), x, np.broadcast_to(0.7, (M, len(model.parameters))), np.zeros((M, 0))
            asked = [f.evaluate if M == 1 else f.linearise for f in (model.derivatives, TracedField(model))]
            own, jax = (min(clock(functools.partial(ask, *at), 200) for _ in range(repeats)) for ask in asked)
            line += f"   {1e6 * own:4.0f} / {1e6 * jax:4.0f} (ratio {jax / own:.1f})"
        print(f"{name:22}{line}")


# Lotka–Volterra's candidates: nested ones that all fit; the paper's, two of their equations wrong; and eight that
# differ in optional terms, one of them saturating.
COMPARISON = """
import sys, time
import odinfer as od
data = od.systems.lotka_volterra.sample(0.1, 1)
prey, predator = "prey' = a*prey - b*prey*predator", "predator' = -c*predator + d*prey*predator"
texts = {
    "nested": [(p, q) for p in (prey, prey + " - e*prey^2") for q in (predator, predator + " - g*predator^2")],
    "paper": [(p, q) for p in (prey, "prey' = a*prey^2 + b*predator") for q in (predator, "predator' = -c*predator")],
    "eight": [prey + " [- e*prey/(h + prey)] [- f*prey^2]\\n" + predator + " [- g*predator^2]"],
}[sys.argv[1]]
if len(texts) == 1:
    models = od.candidates(texts[0], "candidate")
else:
    models = [od.Model.from_text("\\n".join(text), name=f"candidate {i}") for i, text in enumerate(texts)]
for _ in range(2):
    start = time.process_time()
    od.compare(models, data)
    print(time.process_time() - start)
"""


def comparison(repeats: int) -> None:
    print("\n7. candidates of LV with verdicts, the first comparison in a process and the second")
    A, units = np.random.default_rng(0).normal(size=(200, 200)), []
    for _ in range(50):  # in CPU seconds, too: it may share its core
        start = time.process_time()
        np.linalg.eigh(A + A.T)
        units.append(time.process_time() - start)
    unit = min(units)
    for which in ("nested", "paper", "eight"):
        run = [sys.executable, "-c", COMPARISON, which]
        told = [subprocess.run(run, check=True, capture_output=True, text=True).stdout.split() for _ in range(repeats)]
        first, again = np.min(np.array(told, float), 0)
        print(
            f"   {which:8}{first:6.2f} and {again:.2f} CPU s: {first / unit:.0f} and {again / unit:.0f} eigh of "
            f"{1e3 * unit:.1f} ms",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    parser.add_argument("--only", type=int, help="one of the seven parts")
    options = parser.parse_args()
    draws = 3 if options.quick else 10
    print(f"one numpy.linalg.eigh of a 200×200 matrix: {1e3 * eigh_seconds():.1f} ms")
    parts = {1: odin_stage, 2: optimisers, 3: against_scipy, 4: cold_shell, 5: uncertainty, 6: field, 7: comparison}
    for number, part in parts.items():
        if options.only in (None, number):
            part(draws if number < 4 else min(draws, 5))


if __name__ == "__main__":
    main()
