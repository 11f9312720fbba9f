"""Define the cases of benchmarks/unchanged.py.

A case is a generator function without arguments. It yields pairs of a part name and a value. The driver stores an
`od.Fit` by its estimates, intervals and verdicts, and any other value as arrays and texts. Two prefixes of part names
select the comparison of the loose mode: `exact/` (relative difference 1e-6) and `interval/` (fractions of the interval
width). Other parts are compared in the bit-equal mode only.

The problems are in benchmarks/regression_problems.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import odinfer as od
from regression_problems import (
    FHN,
    LOGISTIC,
    LOGLIK_VALUES,
    LV,
    PROBLEMS,
    PT,
    normal,
    observed_problems,
    rounded,
    sir_hidden,
    trajectory,
)

Parts = Iterator[tuple[str, Any]]
Case = Callable[[], Parts]

SEED = 3  # of every fit


def read_fit(fit: Any) -> dict[str, Any]:
    """Read what the comparison needs from a fit. This is the only place that knows the attributes of `od.Fit`.

    Returns:
        loglik; theta: name → estimate; interval: name → (low, high) of 95 %; verdicts: state → verdict, and "model" for
        the model as a whole; status; warnings: their number.
    """
    try:
        interval = {name: (float(low), float(high)) for name, (low, high) in fit.interval(0.95).items()}
    except od.InputError:
        interval = {}
    test = fit.details.get("model_test") or {}
    rejected = test.get("p", 1.0) <= 0.05 and test.get("loudest", np.inf) > 1.0  # as in the summary of a fit
    whole = "contradicted" if rejected else "consistent" if fit.converged else "not judged"
    return {
        "loglik": float(fit.details.get("loglik", np.nan)),
        "theta": {name: float(value) for name, value in fit.theta.items()},
        "interval": interval,
        "verdicts": {**fit.verdicts, "model": whole},
        "status": str(fit.status),
        "warnings": len(fit.warnings),
    }


def is_fit(value: Any) -> bool:
    return isinstance(value, od.Fit)


def estimate(problem: od.Problem, **options: Any) -> od.Fit:
    return od.fit(problem, **{"seed": SEED, **options})


def limits(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Convert the table of a forecast to column → limits (N, 2)."""
    names = [c for c in table.columns if f"{c}_low" in table.columns]
    return {c: table[[f"{c}_low", f"{c}_high"]].to_numpy() for c in names}


def one_fit(pose: Callable[[], od.Problem]) -> Parts:
    fit = estimate(pose())
    yield "fit", fit
    yield "summary", fit.summary()


# Cases with several parts.


def lorenz96() -> Parts:
    system = od.systems.lorenz96(20)
    yield "fit", estimate(od.Problem(system.model, system.sample(1.0, 36, t=np.linspace(0, 3, 40))))


def triggered_event() -> Parts:
    text = "V' = drive - V\nspikes' = 0\nV(0) = 0; spikes(0) = 0\nwhen V > threshold: V = 0, spikes += 1\n"
    model = od.Model.from_text(text + "V ~ normal(V, 0.05)", name="neuron")
    theta, t = {"drive": 2.0, "threshold": 1.0}, np.linspace(0, 3, 16)
    x = od.simulate(model, theta, {}, t)
    yield "exact/simulate", x
    y = rounded(x[:, 0] + 0.05 * np.random.default_rng(37).normal(size=t.shape))
    problem = od.Problem(model, od.Data(t, y, states=["V"]))
    yield "exact/loglik", od.loglik(problem, theta)
    try:
        yield "fit", estimate(problem)
    except od.InputError as error:
        yield "fit refused", str(error)


def simulations() -> Parts:
    t = np.linspace(0, 6, 13)
    for system in (LV, FHN):
        yield f"exact/{system.model.name}", od.simulate(system.model, system.theta, system.x0, t)
    yield "exact/protein_transduction", od.simulate(PT.model, PT.theta, PT.x0, PT.t)
    text = "gut' = -k*gut\nblood' = k*gut - e*blood + drip\ninput drip\nat 0, 3: gut += 10\nbefore 5: blood = 0"
    drip = {"drip": ([0.0, 2.0, 4.0], [0.0, 1.0, 0.0])}
    yield "exact/events", od.simulate(od.Model.from_text(text), {"k": 1.0, "e": 0.3}, [0.0, 1.0], t, inputs=drip)
    blow_up = od.Model.from_text("x' = r*x^2")
    yield "exact/blow-up", od.simulate(blow_up, {"r": 1.0}, [0.5], t)
    text = "A' = -k1*A + k3*B*C\nB' = k1*A - k3*B*C - k2*B^2\nC' = k2*B^2"
    stiff = od.simulate(od.Model.from_text(text), {"k1": 0.04, "k2": 3e7, "k3": 1e4}, [1.0, 0, 0], [0, 1, 100, 1e4])
    yield "exact/stiff", stiff


def log_likelihoods() -> Parts:
    """Evaluate log-likelihoods at fixed values of the parameters."""
    for pose, values in LOGLIK_VALUES.items():
        yield f"exact/{pose.__name__}", od.loglik(pose(), values)


def fit_each() -> Parts:
    t, parts = np.linspace(0, 8, 12), {}
    for i, (r, K) in enumerate(((0.7, 6.0), (0.9, 10.0), (1.1, 8.0), (1.0, 7.0))):
        n = trajectory(LOGISTIC, {"r": r, "K": K}, [0.5], t)["n"]
        parts[f"plot {i + 1}"] = od.Data(t, normal(n, 0.04, 40 + i), states=["n"])
    fits = od.fit_each(od.Model.from_text(LOGISTIC + "log r, K"), od.Data.join(parts), seed=SEED)
    for name in parts:
        yield name, fits[name]
    table = fits.table()
    yield "table", {c: [*table[c]] for c in table.columns}


def compare_three() -> Parts:
    t = np.linspace(0, 10, 25)
    n = trajectory(LOGISTIC, {"r": 0.8, "K": 9.0}, [0.4], t)["n"]
    texts = {
        "logistic": LOGISTIC + "log r, K",
        "exponential": "n' = r*n\nlog r",
        "gompertz": "n' = r*n*log(K/n)\nlog r, K\nn > 0",
    }
    models = [od.Model.from_text(text, name=name) for name, text in texts.items()]
    found = od.compare(models, od.Data(t, normal(n, 0.05, 44), states=["n"]), draws=39, seed=SEED)
    yield from found.fits.items()
    yield "best", found.best
    yield "summary", found.summary()


def after_a_hidden_fit() -> Parts:
    """Compute forecasts, profiles, another level and a bootstrap of a fit with hidden states."""
    fit = estimate(sir_hidden())
    yield "fit", fit
    t = np.linspace(2, 20, 7)
    yield "interval/forecast", limits(fit.forecast(t))
    yield "interval/new observations", limits(fit.forecast(t, observed=True))
    yield "interval/states inside", limits(fit.predict([2.5, 7.5]))
    yield "interval/80 %", fit.interval(0.8)
    for name in ("b", "I(0)"):
        profile = fit.profile(name)
        yield "interval/profile", {name: profile.interval()}
        yield f"profile/{name}", [profile.values, profile.likelihoods]
    yield "bootstrap", fit.bootstrap(20, seed=2).interval()
    values = {"b": 1.6, "g": 0.45, "I_0": 2.0, "sigma_I": 6.0}
    with tempfile.TemporaryDirectory() as folder:
        yield "exact/petab round trip", od.loglik(od.read_petab(fit.to_petab(folder)), values)


SBML = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1"><model id="turnover">
<listOfCompartments><compartment id="cell" size="2" spatialDimensions="3" constant="true"/></listOfCompartments>
<listOfSpecies>
<species id="A" compartment="cell" initialConcentration="3" hasOnlySubstanceUnits="false" boundaryCondition="false"
 constant="false"/>
<species id="B" compartment="cell" initialConcentration="0" hasOnlySubstanceUnits="false" boundaryCondition="false"
 constant="false"/></listOfSpecies>
<listOfParameters><parameter id="k" value="0.5" constant="true"/><parameter id="d" value="0.1" constant="true"/>
</listOfParameters>
<listOfReactions>
<reaction id="turn" reversible="false" fast="false">
<listOfReactants><speciesReference species="A" stoichiometry="1" constant="true"/></listOfReactants>
<listOfProducts><speciesReference species="B" stoichiometry="1" constant="true"/></listOfProducts>
<kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML">
<apply><times/><ci>cell</ci><ci>k</ci><ci>A</ci></apply></math></kineticLaw></reaction>
<reaction id="loss" reversible="false" fast="false">
<listOfReactants><speciesReference species="B" stoichiometry="1" constant="true"/></listOfReactants>
<kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML">
<apply><times/><ci>cell</ci><ci>d</ci><ci>B</ci></apply></math></kineticLaw></reaction>
</listOfReactions></model></sbml>
"""


def sbml() -> Parts:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "turnover.xml").write_text(SBML)
        model = od.read_sbml(Path(folder) / "turnover.xml")
    t = np.linspace(0, 12, 20)
    x = trajectory("A' = -k*A\nB' = k*A - d*B", {"k": 0.4, "d": 0.2}, [3.0, 0.0], t)
    yield "text", model.text
    yield "fit", estimate(od.Problem(model, od.Data(t, normal(x["B"], 0.04, 45), states=["B"]), positive=True))


def petab(folder: Path, name: str) -> Parts:
    """Fit a problem of the PEtab benchmark collection, and evaluate its nominal values."""
    home = next(p for p in sorted(folder.iterdir()) if p.name.startswith(name))
    problem = od.read_petab(next(iter(sorted(home.glob("*.yaml")))))
    table = pd.read_csv(next(iter(sorted(home.glob("param*.tsv")))), sep="\t").set_index("parameterId")
    values = {p: float(table.nominalValue[p]) for p in problem.free if p in table.index}
    if len(values) == len(problem.free):
        yield "exact/nominal loglik", od.loglik(problem, values)
    yield "fit", estimate(problem)


# Cases with every state observed, other methods, and the command.


def files_of(fit: od.Fit) -> dict[str, Any]:
    """Read the file of a fit, and check that it loads to the same summary."""
    with tempfile.TemporaryDirectory() as folder:
        fit.save(Path(folder) / "fit.json")
        content = json.loads((Path(folder) / "fit.json").read_text())
        loaded = od.load(Path(folder) / "fit.json")
    assert loaded.summary() == fit.summary()
    return {"file": content, "summary": fit.summary(), "dataset": sorted(map(str, fit.to_xarray().variables))}


def observed(pose: Callable[[], od.Problem], bootstrap: bool) -> Parts:
    problem = pose()
    fit = estimate(problem)
    yield "fit", fit
    yield "files", files_of(fit)
    if not read_fit(fit)["interval"]:
        return
    t = problem.data.experiments[0].t
    later = np.linspace(t[0], t[-1] + 0.3 * (t[-1] - t[0]), 9)
    yield "interval/80 %", fit.interval(0.8)
    forecast = fit.forecast(later, observed=True)
    yield "interval/forecast", limits(forecast)
    yield "forecast", forecast.to_numpy()
    profile = fit.profile(problem.free[0])
    yield "interval/profile", {problem.free[0]: profile.interval()}
    yield "profile", [profile.values, profile.likelihoods]
    if bootstrap:
        boot = fit.bootstrap(30, seed=2, until=float(later[-1]))
        yield "bootstrap", [boot.draws, boot.interval(), boot.band()]


def sampled(target: str) -> Parts:
    draws = od.fit(od.Problem(LV.model, LV.sample(0.1, 7))).sample(target, chains=2, draws=200, warm_up=200)
    yield "draws", [draws.interval(), draws.status]


METHODS: dict[str, Callable[[Any], Any]] = {
    "gpr": lambda s: od.Gpr(),
    "two-step": lambda s: od.TwoStep(),
    "spline": lambda s: od.TwoStep(smoother="spline"),
    "trajectory": lambda s: od.Trajectory.quick(),
    "rkg2": lambda s: od.Rkg(variant=2),
    "rkg3": lambda s: od.Rkg.quick(),
    "vgm": lambda s: od.Vgm(),
    "fgpgm": lambda s: od.Fgpgm.quick(),
    "agm": lambda s: od.Agm.quick(),
    "lbfgsb": lambda s: od.Odin(optimizer="lbfgsb", refine=False),
    "paper": lambda s: od.Odin.paper(s),
}
METHOD_PROBLEMS: dict[str, tuple[Any, Callable[[], od.Problem]]] = {
    "LV": (LV, lambda: od.Problem(LV.model, LV.sample(0.1, 11), positive=True)),
    "FHN": (FHN, lambda: FHN.problem(FHN.sample(100.0, 11))),
    "PT": (PT, lambda: PT.problem(PT.sample(0.01, 11))),
}


def by_method(method: str, case: str) -> Parts:
    system, pose = METHOD_PROBLEMS[case]
    try:
        fit = od.fit(pose(), method=METHODS[method](system), seed=1)
    except od.InputError as error:
        yield "refused", str(error)
        return
    yield "fit", fit
    yield "files", files_of(fit)


def compare_two() -> Parts:
    other = od.Model.from_text("prey' = a*prey - b*prey\npredator' = -c*predator + d*prey*predator", name="wrong")
    found = od.compare([LV.model, other], LV.sample(0.1, 21), draws=39, holdout="last", seed=5)
    yield from found.fits.items()
    table = {c: [*found.table[c]] for c in found.table.columns}
    yield "table", [table, found.verdicts, found.summary(), found.gamma.to_numpy()]


def run_command(*arguments: str, cwd: str) -> str:
    home = "odinfer.command.cli" if find_spec("odinfer.command") else "odinfer.cli"
    code = f"from {home} import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True)
    return f"{done.returncode}\n{done.stdout}\n{done.stderr}"


def command_fit(name: str) -> Parts:
    with tempfile.TemporaryDirectory() as cwd:
        run_command("example", name, name, cwd=cwd)
        files = (f"{name}/{name}.ode", f"{name}/{name}.csv")
        yield "check", run_command("check", *files, cwd=cwd)
        yield "fit", run_command("fit", *files, "-o", "out", "--uncertainty", "profile", cwd=cwd)
        yield "csv", (Path(cwd) / "out" / "states.csv").read_text()
        page = re.sub(r"base64,[A-Za-z0-9+/=]+", "picture", (Path(cwd) / "out" / "report.html").read_text())
        yield "page", page
        yield "names", sorted(p.name for p in (Path(cwd) / "out").iterdir())


def commands() -> Parts:
    with tempfile.TemporaryDirectory() as cwd:
        yield "example", run_command("example", cwd=cwd)
        run_command("example", "lotka_volterra", "lotka_volterra", cwd=cwd)
        yield "simulate", run_command(
            "simulate", "lotka_volterra/lotka_volterra.ode", "--theta", "a=2,b=1,c=4,d=1", "--x0", "prey=5,predator=3",
            "--times", "0:2:5", "--noise", "0.1", cwd=cwd,
        )  # fmt: skip
        equations = "prey' = a*prey - b*prey*predator [- e*prey^2]\npredator' = -c*predator + d*prey*predator\n"
        (Path(cwd) / "m.ode").write_text(equations)
        csv = "lotka_volterra/lotka_volterra.csv"
        yield "compare", run_command("compare", "m.ode", csv, "--draws", "19", cwd=cwd)
        for bad in (("fit", "no.ode", "no.csv"), ("fit", "m.ode", "no.csv"), ("check", "m.ode", "m.ode")):
            yield f"bad/{' '.join(bad)}", run_command(*bad, cwd=cwd)


def cases(petab_folder: Path | None = None) -> dict[str, Case]:
    """List all cases by name; those of PEtab only where their folder is given."""
    found: dict[str, Case] = {name: partial(one_fit, pose) for name, pose in PROBLEMS.items()}
    found |= {
        "size/lorenz96, 20 states": lorenz96,
        "course/triggered event": triggered_event,
        "simulate": simulations,
        "loglik": log_likelihoods,
        "each": fit_each,
        "compare/three": compare_three,
        "compare/two": compare_two,
        "hidden/after the fit": after_a_hidden_fit,
        "exchange/sbml": sbml,
    }
    if petab_folder is not None:
        found |= {f"petab/{name}": partial(petab, petab_folder, name) for name in ("Perelson", "Bertozzi", "Bruno")}
    for name, pose in observed_problems():
        found[f"observed/{name}"] = partial(observed, pose, "PT" not in name and "protein" not in name)
    found |= {f"sample/{target}": partial(sampled, target) for target in ("trajectory", "odin")}
    found |= {f"method/{m}/{case}": partial(by_method, m, case) for case in METHOD_PROBLEMS for m in METHODS}
    found |= {f"command/{name}": partial(command_fit, name) for name in ("lotka_volterra", "sir")}
    return found | {"command/other": commands}
