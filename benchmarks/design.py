"""Check optimal designs by simulation: expected against simulated errors, against equally spaced times, two models.

    python benchmarks/design.py                # all three tables
    python benchmarks/design.py --draws 100    # with so many simulated data sets per row; 200 if not given

1. Six designs: expected relative standard errors and those of fits to simulated data.
2. Ten systems: the mean width of 95 % intervals in simulated data of the design and of equally spaced times.
3. Three pairs of models: how often the wrong one of two is rejected (difference of log-likelihoods above the 95 %
   point of its distribution where the simpler model is true) at the chosen times and at equally spaced ones.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.refinement import maximise_from_initial
from odinfer.optimal_design.basis import Basis
from odinfer.optimal_design.confirmation import confirmed, with_samples
from odinfer.optimal_design.information import Sample

warnings.simplefilter("ignore", od.InputWarning)


class System(NamedTuple):
    """A model as text, its values, the times at which it can be observed, and the number of samples."""

    name: str
    text: str
    theta: dict[str, float]
    x0: dict[str, float]
    last: float
    add: int


ORAL = "gut' = -ka*gut; body' = ka*gut - CL/V*body; gut(0) = 100; body(0) = 0; conc ~ normal(body/V, 0.05)"
SYSTEMS = (
    System("decay", "x' = -k*x; y ~ normal(x, 0.1)", {"k": 0.5}, {"x": 5.0}, 10.0, 6),
    System("logistic growth", "n' = r*n*(1 - n/K); n ~ normal(n, 0.05)", {"r": 0.9, "K": 10.0}, {"n": 0.5}, 12.0, 8),
    System("oral absorption", ORAL, {"ka": 1.2, "CL": 3.0, "V": 30.0}, {}, 24.0, 6),
    System(
        "two compartments", "c' = -(k + q)*c + p*e; e' = q*c - p*e; c(0) = 10; e(0) = 0; y ~ lognormal(c, 0.05)",
        {"k": 0.3, "q": 0.5, "p": 0.2}, {}, 24.0, 8,
    ),
    System(
        "enzyme kinetics", "s' = -v*s/(m + s); s(0) = 10; s ~ normal(s, 0.1)", {"v": 1.5, "m": 2.0}, {}, 15.0, 6
    ),
    System(
        "epidemic with counts", "S' = -b*S*I/1000; I' = b*S*I/1000 - g*I; S(0) = 995; I(0) = 5; cases ~ poisson(I)",
        {"b": 0.8, "g": 0.3}, {}, 40.0, 8,
    ),
    System(
        "predator and prey", "x' = a*x - b*x*y; y' = -c*y + d*x*y; x ~ normal(x, 0.1); y ~ normal(y, 0.1)",
        {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0}, {"x": 5.0, "y": 3.0}, 2.0, 10,
    ),
    System(
        "damped oscillator", "x' = v; v' = -w*x - d*v; x(0) = 1; v(0) = 0; x ~ normal(x, 0.05)",
        {"w": 4.0, "d": 0.4}, {}, 8.0, 6,
    ),
    System(
        "reaction chain", "a' = -k*a; b' = k*a - m*b; a(0) = 10; b(0) = 0; b ~ normal(b, 0.1)",
        {"k": 0.8, "m": 0.2}, {}, 20.0, 6,
    ),
    System(
        "infection in cells", "T' = -b*T*V; I' = b*T*V - d*I; V' = p*I - c*V; T(0) = 100; I(0) = 0; V(0) = 0.1; "
        "V ~ lognormal(V, 0.1)", {"b": 0.02, "d": 0.5, "p": 3.0, "c": 2.0}, {}, 15.0, 10,
    ),
)  # fmt: skip
PAIRS = (
    ("absorption or bolus", ORAL.replace("0.05)", "0.2)"), {"ka": 6.0, "CL": 3.0, "V": 30.0},
     "body' = -CL/V*body; body(0) = 100; conc ~ normal(body/V, 0.2)", 24.0, 6),
    ("saturation or first order", "s' = -v*s/(m + s); s(0) = 10; s ~ normal(s, 0.6)", {"v": 6.0, "m": 8.0},
     "s' = -k*s; s(0) = 10; s ~ normal(s, 0.6)", 15.0, 6),
    ("one or two exponentials", "c' = -(k + q)*c + p*e; e' = q*c - p*e; c(0) = 10; e(0) = 0; c ~ normal(c, 0.3)",
     {"k": 0.4, "q": 0.1, "p": 0.2}, "c' = -k*c; c(0) = 10; c ~ normal(c, 0.3)", 30.0, 6),
)  # fmt: skip


def spaced(design: od.Design, last: float) -> tuple[Sample, ...]:
    """As many samples at equal distances up to the last time."""
    times = np.linspace(0.0, last, len(design.samples) + 1)[1:]
    return tuple(replace(s, time=float(t)) for s, t in zip(design.samples, times, strict=True))


def designed(system: System, **more: Any) -> od.Design:
    model = od.Model.from_text(system.text, system.name)
    options = {"theta": system.theta, "x0": system.x0, "times": (0.0, system.last), "add": system.add}
    return od.design(model, **(options | more))


def errors_by_simulation(draws: int) -> None:
    print("\nExpected and simulated relative standard errors\n")
    print("| design | largest deviation | CPU s |\n|---|---|---|")
    for system in SYSTEMS[:6]:
        begin = time.process_time()
        table = designed(system, confirm=draws).confirmation
        gap = (table["simulated"] / table["expected"] - 1.0).to_numpy()
        worst = int(np.abs(gap).argmax())
        print(
            f"| {system.name} | {gap[worst]:+.0%} ({table.index[worst]}) | {time.process_time() - begin:.1f} |",
            flush=True,
        )


def widths_by_simulation(draws: int) -> None:
    print("\nWidth of intervals at the chosen times, relative to equally spaced ones\n")
    print("| system | samples | mean simulated width, chosen/equal | CPU s of the design |\n|---|---|---|---|")
    for system in SYSTEMS:
        begin = time.process_time()
        design = designed(system)
        seconds = time.process_time() - begin
        model = od.Model.from_text(system.text, system.name)
        basis = Basis.of_values(model, system.theta, system.x0, np.linspace(0.0, system.last, 101))
        found = []
        for samples in (design.samples, spaced(design, system.last)):
            table = confirmed(basis, samples, design.after, draws, np.random.default_rng(1))
            found.append(table["simulated"])
        ratio = float((found[0] / found[1]).dropna().mean())
        print(f"| {system.name} | {system.add} | {ratio:.2f} | {seconds:.1f} |", flush=True)


def log_likelihood(basis: Basis, samples: tuple[Sample, ...], y: list[np.ndarray]) -> float:
    """The highest log-likelihood of data at samples, from the basis' values."""
    problem = with_samples(basis, samples)
    own = replace(problem, data=problem.data.with_observations(y))
    batch = BatchLikelihood.of(own)
    found = maximise_from_initial(
        own, np.full(len(own.model.states), np.nan), batch.initial(basis.v), batch.likelihood.unknowns.phi(basis.v)
    )
    return -np.inf if found is None else found.loglik


def simulated(basis: Basis, samples: tuple[Sample, ...], draws: int, seed: int) -> list[list[np.ndarray]]:
    """Data sets of a model at samples."""
    problem = with_samples(basis, samples)
    batch = BatchLikelihood.of(problem, 1e-7, 20_000)
    states, phi = batch.states(batch.solve(basis.v[None]).trajectories), batch.likelihood.unknowns.phi(basis.v)
    rng = np.random.default_rng(seed)
    drawn = batch.likelihood.observation.draw(rng, 0, states[0], phi[None], np.sqrt(basis.noise), draws)
    return [[y] for y in drawn]


def detection_by_simulation(draws: int) -> None:
    from odinfer.optimal_design.entry import fitted_to_predictions

    print("\nHow often the wrong one of two models is rejected\n")
    print("| pair | samples | chosen times | equally spaced |\n|---|---|---|---|")
    for name, text, theta, other, last, add in PAIRS:
        right, wrong = od.Model.from_text(text, "right"), od.Model.from_text(other, "wrong")
        grid = np.linspace(0.0, last, 101)
        design = od.design(right, between=wrong, theta=theta, times=(0.0, last), add=add)
        true = Basis.of_values(right, theta, {}, grid)
        rival = fitted_to_predictions(wrong, true, grid)
        rates = []
        for samples in (design.samples, spaced(design, last)):
            gaps = []
            for basis in (rival, true):  # where the simpler model is true, and where it is not
                data = simulated(basis, samples, draws, 2)
                gaps.append([log_likelihood(true, samples, y) - log_likelihood(rival, samples, y) for y in data])
            rates.append(float(np.mean(np.array(gaps[1]) > np.quantile(gaps[0], 0.95))))
        print(f"| {name} | {add} | {rates[0]:.0%} | {rates[1]:.0%} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=("errors", "widths", "detection"))
    asked = parser.parse_args()
    parts = {"errors": errors_by_simulation, "widths": widths_by_simulation, "detection": detection_by_simulation}
    for name, run in parts.items():
        if asked.only in (None, name):
            run(asked.draws)


if __name__ == "__main__":
    main()
