"""How often the test of a model rejects right models, and how often wrong ones, with CPU seconds of each fit.

60 right models are ten kinds of systems in six designs each (number of times and noise); 40 wrong models are ten
mistakes in four designs each. Every model is fitted to several draws of simulated data.

    python benchmarks/verdicts.py [--draws 4] [--wrong-draws 2] [--only KIND] [--json FILE]
"""

import argparse
import json
import time
from dataclasses import dataclass

import numpy as np

import odinfer as od
from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.diagnostics.model_test import ModelTest
from odinfer.diagnostics.verdicts import CONTRADICTS

# Number of times and noise, as a share of the standard deviation of a column.
DESIGNS = ((10, 0.05), (10, 0.2), (20, 0.02), (20, 0.1), (40, 0.05), (40, 0.2))
WRONG_DESIGNS = ((15, 0.02), (15, 0.1), (30, 0.05), (60, 0.1))


@dataclass(frozen=True)
class System:
    """Equations with parameters, initial values, a time span, and what is observed and how it scatters."""

    text: str
    theta: dict[str, float]
    x0: dict[str, float]
    span: float
    observed: tuple[str, ...] = ()
    noise: str = "normal"
    declarations: str = ""
    experiments: int = 1


RIGHT = {
    "decay": System("x' = -k*x", {"k": 0.7}, {"x": 3.0}, 5.0),
    "growth": System("N' = r*N*(1 - N/K)", {"r": 0.9, "K": 10.0}, {"N": 0.8}, 10.0),
    "predator-prey": System(
        "u' = a*u - b*u*v; v' = -c*v + d*u*v", {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0}, {"u": 5.0, "v": 3.0}, 2.0
    ),
    "oscillator": System("x' = y; y' = -k*x - d*y", {"k": 2.0, "d": 0.2}, {"x": 1.0, "y": 0.0}, 8.0),
    "chain": System("a' = -k*a; b' = k*a - m*b", {"k": 1.0, "m": 0.4}, {"a": 4.0, "b": 0.0}, 6.0),
    "saturation": System("s' = -V*s/(K + s)", {"V": 1.5, "K": 1.0}, {"s": 5.0}, 6.0),
    "hidden": System(
        "gut' = -ka*gut; c' = ka*gut - k*c; gut(t0) = 10; c(t0) = 0", {"ka": 1.5, "k": 0.3}, {}, 10.0, ("c",),
        declarations="log ka, k",
    ),
    "forced": System("x' = k*(1 + sin(2*t) - x)", {"k": 0.8}, {"x": 0.2}, 8.0),
    "counts": System(
        "S' = -b*S*I; I' = b*S*I - g*I; S(t0) = 500; I(t0) = 5", {"b": 0.003, "g": 0.5}, {}, 14.0, ("I",), "poisson",
        "1e-4 < b < 0.1; 0.01 < g < 10",
    ),
    "several": System("x' = -k*x + m", {"k": 0.8, "m": 0.5}, {"x": 3.0}, 5.0, experiments=3),
}  # fmt: skip

# A mistake: the system that made the data, and the equations that are fitted.
MISTAKES = {
    "one exponential for two": (
        System("a' = -k*a; b' = -m*b; x = a + b", {"k": 2.5, "m": 0.2}, {"a": 2.0, "b": 1.0}, 6.0, ("x",)), "x' = -k*x",
    ),
    "no limit to growth": (RIGHT["growth"], "N' = r*N"),
    "logistic for Gompertz": (
        System("N' = r*N*log(K/N)", {"r": 0.5, "K": 10.0}, {"N": 0.3}, 10.0), "N' = r*N*(1 - N/K)",
    ),
    "linear drag for quadratic": (System("v' = g - d*v^2", {"g": 9.8, "d": 0.3}, {"v": 0.0}, 2.0), "v' = g - d*v"),
    "first order for saturation": (RIGHT["saturation"], "s' = -V*s"),
    "first order for a lag": (
        System("a' = k*(1 - a); x' = k*(a - x)", {"k": 1.5}, {"a": 0.0, "x": 0.0}, 6.0, ("x",)), "x' = k*(m - x)",
    ),
    "no damping": (RIGHT["oscillator"], "x' = y; y' = -k*x"),
    "no forcing": (RIGHT["forced"], "x' = k*(m - x)"),
    "no predation": (RIGHT["predator-prey"], "u' = a*u - b*u^2; v' = -c*v + d*u*v"),
    "no return": (
        System("a' = -k*a + r*b; b' = k*a - r*b", {"k": 1.0, "r": 0.5}, {"a": 4.0, "b": 0.5}, 6.0),
        "a' = -k*a; b' = k*a",
    ),
}  # fmt: skip


def simulated(system, n, noise, seed):
    """Data (od.Data) of a system at n times, with noise relative to the spread of each column."""
    rng = np.random.default_rng([seed, n, int(1e4 * noise)])
    model = od.Model.from_text(system.text.replace("; x = a + b", ""))
    t = np.linspace(0.0, system.span, n)
    columns = system.observed or model.states
    parts = {}
    for i in range(system.experiments):
        start = {name: value * (1.0 + 0.5 * i) for name, value in system.x0.items()}
        x = dict(zip(model.states, od.simulate(model, system.theta, start, t).T, strict=True))
        if "x = a + b" in system.text:
            x["x"] = x["a"] + x["b"]
        clean = np.stack([x[name] for name in columns], -1)
        if system.noise == "poisson":
            y = rng.poisson(np.maximum(clean, 0.0)).astype(float)
        else:
            y = clean + noise * clean.std(0) * rng.normal(size=clean.shape)
        parts[f"e{i}"] = od.Data(t, y, states=list(columns))
    return parts["e0"] if len(parts) == 1 else od.Data.join(parts)


def statement(system):
    """The equations of a right model as a user would write them."""
    said = [system.text, system.declarations] if system.declarations else [system.text]
    if system.noise == "poisson":
        said.append(f"{system.observed[0]} ~ poisson({system.observed[0]})")
    return "; ".join(said)


def judged(text, data, seed=0):
    """Fit, and return (rejected, p, CPU seconds)."""
    clock = time.process_time()
    fit = od.fit(od.Model.from_text(text, name="candidate"), data, seed=seed)
    seconds = time.process_time() - clock
    whole = ModelTest.of(fit.details.get("model_test"))
    rejected = CONTRADICTS in fit.verdicts.values() or whole.contradicts(FALSE_ALARMS)
    return bool(rejected), float(whole.p), seconds


def measured(kinds, draws, only):
    """One row per kind: name, number of fits, rejections, CPU seconds (mean and largest), p-values."""
    for name, (system, text, designs) in kinds.items():
        if only and only not in name:
            continue
        found = [judged(text, simulated(system, n, s, 100 * i), i) for n, s in designs for i in range(draws)]
        rejected, p, seconds = (np.array(column) for column in zip(*found, strict=True))
        yield name, len(found), int(rejected.sum()), float(seconds.mean()), float(seconds.max()), p.tolist()


def table(title, rows):
    print(f"\n{title}\n")
    print("| kind | fits | rejected | CPU s (mean) | CPU s (most) |\n|---|---|---|---|---|")
    kept = []
    for row in rows:
        kept.append(row)
        name, n, rejected, mean, most, _ = row
        print(f"| {name} | {n} | {rejected} | {mean:.2f} | {most:.1f} |", flush=True)
    n, rejected = sum(row[1] for row in kept), sum(row[2] for row in kept)
    if n:
        print(f"| **all** | {n} | {rejected} ({100 * rejected / n:.1f} %) | | |", flush=True)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--wrong-draws", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    right = {name: (system, statement(system), DESIGNS) for name, system in RIGHT.items()}
    wrong = {name: (system, text, WRONG_DESIGNS) for name, (system, text) in MISTAKES.items()}
    found = {
        "right": table("Right models", measured(right, options.draws, options.only)),
        "wrong": table("Wrong models", measured(wrong, options.wrong_draws, options.only)),
    }
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
