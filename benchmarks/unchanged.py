"""Are the numbers still the same? For changes that should alter none: what users see, before and after.

    python benchmarks/unchanged.py before.json                # on one state of the code
    python benchmarks/unchanged.py after.json before.json     # on the other: writes, then compares

Only the public API and the command are used, so that any state of the code can be asked. Compared are fits of every
method, their files, intervals, profiles, bootstraps, draws, forecasts, comparisons and what the command prints.
Differences are relative to the size of the array they are in; texts must be equal. Seconds are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import odinfer as od

LV, FHN, PT = od.systems.lotka_volterra, od.systems.fitzhugh_nagumo, od.systems.protein_transduction
_TIMES = re.compile(r"[\d.e+-]+ s\b")


def noisy(model: od.Model, theta: Any, x0: Any, t: Any, sd: float, seed: int, **more: Any) -> od.Data:
    x = od.simulate(model, theta, x0, t, **more)
    y = x + sd * x.std(0) * np.random.default_rng(seed).normal(size=x.shape)
    u = {name: (np.asarray(a), np.asarray(b)) for name, (a, b) in more.get("inputs", {}).items()}
    return od.Data(t, y, states=model.states, inputs=u)


def problems() -> Iterator[tuple[str, od.Problem]]:
    for system in (LV, FHN, PT):
        for level in system.levels:
            yield f"{system.model.name} {level:g}", od.Problem(system.model, system.sample(level, 7))
    yield "PT bounded", PT.problem(PT.sample(0.01, 8))
    logistic = od.Model.from_text("n' = r*n*(1 - n/K)\nlog K\nr ~ normal(1, 0.3)\n0 < n", name="logistic")
    yield (
        "prior, log scale",
        od.Problem(logistic, noisy(logistic, {"r": 1.1, "K": 5}, [0.5], np.linspace(0, 8, 15), 0.05, 1)),
    )
    parts = {n: LV.sample(0.2, s, t=np.linspace(0, 2, 12)) for n, s in (("a", 1), ("b", 2), ("c", 3))}
    yield "three experiments", od.Problem(LV.model, od.Data.join(parts), positive=True)
    y = LV.sample(0.1, 3).y.copy()
    y[0, 0] = y[3, 1] = y[4, 1] = y[-1, 0] = np.nan
    data = od.Data(LV.t, y, states=LV.model.states)
    yield "missing, fixed, at a bound", od.Problem(LV.model, data, fixed={"c": 4.0}, bounds={"a": (0.5, 1.9)})
    yield "known noise", od.Problem(LV.model, LV.sample(0.3, 5), sigma={"prey": 0.3})
    driven = od.Model.from_text("x' = -k*x + b*u\ninput u", name="driven")
    u = {"u": ([0.0, 2.0, 2.5, 6.0], [1.0, 1.0, 0.0, 0.0])}
    yield (
        "input",
        od.Problem(driven, noisy(driven, {"k": 0.8, "b": 2.0}, [0.2], np.linspace(0, 6, 20), 0.05, 2, inputs=u)),
    )
    wrong = od.Model.from_text("prey' = a*prey\npredator' = -c*predator + d*prey*predator", name="wrong")
    yield "wrong", od.Problem(wrong, LV.sample(0.1, 4))
    mm = od.Model.from_text("s' = -v*s/(k + s)", name="mm")
    yield (
        "poorly determined",
        od.Problem(mm, noisy(mm, {"v": 1, "k": 9}, [3.0], np.linspace(0, 6, 20), 0.05, 3), positive=True),
    )
    l96 = od.systems.lorenz96(20)
    yield "many states", od.Problem(l96.model, l96.sample(1.0, 1, t=np.linspace(0, 4, 50)))


def of_fit(fit: od.Fit) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        fit.save(Path(folder) / "fit.json")
        content = json.loads((Path(folder) / "fit.json").read_text())
        again = od.load(Path(folder) / "fit.json")
    assert again.summary() == fit.summary()
    return {"file": content, "summary": fit.summary(), "dataset": sorted(map(str, fit.to_xarray().variables))}


def of_fits() -> Iterator[tuple[str, Any]]:
    for name, problem in problems():
        fit = od.fit(problem, seed=3)
        yield f"fit/{name}", of_fit(fit)
        if fit.uncertainty is None:
            continue
        t = problem.data.experiments[0].t
        later = np.linspace(t[0], t[-1] + 0.3 * (t[-1] - t[0]), 9)
        parameter = problem.free[0]
        yield f"level/{name}", fit.interval(0.8)
        yield f"forecast/{name}", fit.forecast(later, observed=True).to_numpy()
        profile = fit.profile(parameter)
        yield f"profile/{name}", [profile.values, profile.likelihoods, profile.interval()]
        if "PT" not in name and "protein" not in name:
            boot = fit.bootstrap(30, seed=2, until=float(later[-1]))
            yield f"bootstrap/{name}", [boot.draws, boot.interval(), boot.band()]
    problem = od.Problem(LV.model, LV.sample(0.1, 7))
    fit = od.fit(problem)
    for target in ("trajectory", "odin"):
        draws = fit.sample(target, chains=2, draws=200, warm_up=200)
        yield f"sample/{target}", [draws.interval(), draws.status]


def of_methods() -> Iterator[tuple[str, Any]]:
    cases = {
        "LV": od.Problem(LV.model, LV.sample(0.1, 11), positive=True),
        "FHN": FHN.problem(FHN.sample(100.0, 11)),
        "PT": PT.problem(PT.sample(0.01, 11)),
    }
    odin = od.Odin()
    ways: dict[str, Any] = {
        "gpr": od.Gpr(), "two-step": od.TwoStep(), "spline": od.TwoStep(smoother="spline"),
        "trajectory": od.Trajectory.quick(), "rkg2": od.Rkg(variant=2), "rkg3": od.Rkg.quick(), "vgm": od.Vgm(),
        "fgpgm": od.Fgpgm.quick(), "agm": od.Agm.quick(), "lbfgsb": od.Odin(optimizer="lbfgsb", refine=False),
    }  # fmt: skip
    for case, problem in cases.items():
        for name, method in ways.items():
            try:
                yield f"method/{name}/{case}", of_fit(od.fit(problem, method=method, seed=1))
            except od.InputError as error:
                yield f"method/{name}/{case}", str(error)
        system = {"LV": LV, "FHN": FHN, "PT": PT}[case]
        yield f"method/paper/{case}", of_fit(od.fit(problem, method=od.Odin.paper(system), seed=1))
    assert odin == od.Odin()


def of_comparisons() -> Iterator[tuple[str, Any]]:
    right = LV.model
    wrong = od.Model.from_text("prey' = a*prey - b*prey\npredator' = -c*predator + d*prey*predator", name="wrong")
    found = od.compare([right, wrong], LV.sample(0.1, 21), draws=39, holdout="last", seed=5)
    table = {c: [*found.table[c]] for c in found.table.columns}
    yield "compare", [table, found.verdicts, found.summary(), found.gamma.to_numpy()]


def of_commands() -> Iterator[tuple[str, Any]]:
    def run(*arguments: str, cwd: str) -> str:
        here = "odinfer.apps.command.cli" if find_spec("odinfer.apps.command") else "odinfer.cli"
        code = f"from {here} import main; main()"
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True)
        return f"{done.returncode}\n{done.stdout}\n{done.stderr}"

    with tempfile.TemporaryDirectory() as cwd:
        yield "command/example", run("example", cwd=cwd)
        for name in ("lotka_volterra", "sir"):
            run("example", name, name, cwd=cwd)
            files = (f"{name}/{name}.ode", f"{name}/{name}.csv")
            yield f"command/check/{name}", run("check", *files, cwd=cwd)
            yield f"command/fit/{name}", run("fit", *files, "-o", "out", "--uncertainty", "profile", cwd=cwd)
            yield f"command/csv/{name}", (Path(cwd) / "out" / "states.csv").read_text()
            page = re.sub(r"base64,[A-Za-z0-9+/=]+", "picture", (Path(cwd) / "out" / "report.html").read_text())
            yield f"command/page/{name}", page
            yield f"command/files/{name}", sorted(p.name for p in (Path(cwd) / "out").iterdir())
        yield "command/simulate", run(
            "simulate", "lotka_volterra/lotka_volterra.ode", "--theta", "a=2,b=1,c=4,d=1", "--x0", "prey=5,predator=3",
            "--times", "0:2:5", "--noise", "0.1", cwd=cwd,
        )  # fmt: skip
        equations = "prey' = a*prey - b*prey*predator [- e*prey^2]\npredator' = -c*predator + d*prey*predator\n"
        (Path(cwd) / "m.ode").write_text(equations)
        yield "command/compare", run("compare", "m.ode", "lotka_volterra/lotka_volterra.csv", "--draws", "19", cwd=cwd)
        for bad in (("fit", "no.ode", "no.csv"), ("fit", "m.ode", "no.csv"), ("check", "m.ode", "m.ode")):
            yield f"command/bad/{' '.join(bad)}", run(*bad, cwd=cwd)


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Texts, and numbers in arrays as large as possible, by where they stand."""
    if name.rpartition("/")[2] in ("seconds", "version"):
        return
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        for key, part in value.items():
            yield from flat(part, f"{name}/{key}")
    elif isinstance(value, (list, tuple)):
        try:
            yield name, np.array(value, float).tolist() if value else []
        except (TypeError, ValueError):
            for i, part in enumerate(value):
                yield from flat(part, f"{name}/{i}")
    elif isinstance(value, str):
        yield name, _TIMES.sub("SECONDS", value)
    elif value is None or isinstance(value, (bool, int, float, np.number)):
        yield name, float("nan") if value is None else float(value)


def difference(a: Any, b: Any) -> float:
    """Relative to the largest number of an array; infinite where shapes, texts or what is finite differ."""
    if isinstance(a, str) or isinstance(b, str):
        if a == b:
            return 0.0
        numbers = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
        if not (isinstance(a, str) and isinstance(b, str)) or numbers.sub("#", a) != numbers.sub("#", b):
            return np.inf
        return difference([float(v) for v in numbers.findall(a)], [float(v) for v in numbers.findall(b)])
    x, y = np.asarray(a, float), np.asarray(b, float)
    if x.shape != y.shape or not (np.isfinite(x) == np.isfinite(y)).all():
        return np.inf
    with np.errstate(invalid="ignore"):
        gap = np.abs(np.where(np.isfinite(x), x - y, 0.0))
    return float(gap.max(initial=0.0) / max(np.abs(y[np.isfinite(y)]).max(initial=0.0), 1e-300)) if gap.any() else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="where to write")
    parser.add_argument("before", type=Path, nargs="?", help="what to compare with")
    parser.add_argument("--only", default="", help="parts whose names hold this: fit, method, compare, command")
    parser.add_argument("--tolerance", type=float, default=1e-9)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for part in (of_fits, of_methods, of_comparisons, of_commands):
        if options.only in part.__name__:
            for name, value in part():
                found |= flat(value, name)
                print(name, file=sys.stderr, flush=True)
    options.out.write_text(json.dumps(found))
    if options.before is None:
        return
    before = json.loads(options.before.read_text())
    names = [n for n in (*before, *(k for k in found if k not in before)) if not options.only or n in found]
    worst: dict[str, tuple[float, str]] = {}
    for name in names:
        gap = difference(found[name], before[name]) if name in found and name in before else np.inf
        part = "/".join(name.split("/")[:2])
        worst[part] = max(worst.get(part, (0.0, "")), (gap, name))
    print(f"{len(names)} arrays and texts; largest relative difference by part, where above {options.tolerance:g}:")
    for part, (gap, name) in worst.items():
        if gap > options.tolerance:
            print(f"  {gap:8.1e}  {part:40s} {name}")
    print(f"{sum(gap <= options.tolerance for gap, _ in worst.values())} of {len(worst)} parts are the same")


if __name__ == "__main__":
    main()
