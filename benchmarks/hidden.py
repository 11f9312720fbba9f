"""Finding the answer where states are hidden: the default search against the maximum found from the truth.

Usage: python benchmarks/hidden.py FOLDER|own [--only NAME ...] [--draws N] [--first K] [--seed S] [--verbose]

FOLDER holds draws as .npz files (arrays t, y (draws, times, columns), theta, x0, ...; NaN = not observed). With `own`,
the systems at the end of the list are drawn instead. Prints, for each set, how many draws reach the log-likelihood of
the maximum found from the truth to 0.1, how many exceed it, the seconds per fit, and how many starts were followed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import odinfer as od
from odinfer.likelihood.refinement import maximise_from_initial
from odinfer.observation import observation_of
from odinfer.ode.adaptive_mesh import integrated
from odinfer.search.multistart import search

CLOSE = 0.1

SEIR = """
S' = -b*S*I/1e4
E' = b*S*I/1e4 - k*E
I' = k*E - g*I
S(0) = 1e4 - E(0) - I(0)
log b, k, g, E(0), I(0)
"""
RESETS = "C' = k*E; C(0) = 0; at " + ", ".join(str(t) for t in range(3, 91, 3)) + ": C = 0\n"
REPRESSILATOR = "\n".join(
    [f"m{i}' = -m{i} + alpha/(1 + p{j}^n) + alpha0; p{i}' = -beta*(p{i} - m{i})" for i, j in ((1, 3), (2, 1), (3, 2))]
    + ["log alpha, alpha0, beta, n", "; ".join(f"m{i} > 0; p{i} > 0" for i in (1, 2, 3))]
)
PROTEIN = """
S' = -k1*S - k2*S*R + k3*RS
R' = -k2*S*R + k3*RS + V*Rpp/(Km + Rpp)
RS' = k2*S*R - k3*RS - k4*RS
Rpp' = k4*RS - V*Rpp/(Km + Rpp)
log k1, k2, k3, k4, V, Km
"""
FITZHUGH = "V' = c*(V - V^3/3 + R); R' = -(V - a + b*R)/c"


@dataclass(frozen=True)
class Case:
    """A set of draws: the model, the names of the columns, and the order of the truth's parameters and states."""

    text: str
    columns: tuple[str, ...]
    theta: tuple[str, ...]
    states: tuple[str, ...]
    log_data: bool = False  # the draws hold logs of what is observed


CASES = {
    "fhn41_Vonly": Case(FITZHUGH, ("V",), ("a", "b", "c"), ("V", "R")),
    "fhn41_VR": Case(FITZHUGH, ("V", "R"), ("a", "b", "c"), ("V", "R")),
    "hes1_Hhidden": Case(
        "P' = -a*P*H + b*M - c*P; M' = -d*M + e/(1 + P^2); H' = -a*P*H + f/(1 + P^2) - g*H\n"
        "log a, b, c, d, e, f, g; P > 0; M > 0; H > 0; P ~ lognormal(P); M ~ lognormal(M)",
        ("P", "M"), tuple("abcdefg"), ("P", "M", "H"), log_data=True,
    ),
    "sir_Ionly": Case(
        "S' = -b*S*I/763; I' = b*S*I/763 - g*I; log b, g; S > 0; I > 0", ("I",), ("b", "g"), ("S", "I")
    ),
    "seir_incidence": Case(SEIR + "h ~ normal(k*E)", ("h",), ("b", "k", "g"), ("S", "E", "I")),
    "seir_counts_poisson": Case(
        SEIR + RESETS + "cases ~ poisson(C)", ("cases",), ("b", "k", "g"), ("S", "E", "I", "C")
    ),
    "repressilator_mRNAhidden": Case(
        REPRESSILATOR, ("p1", "p2", "p3"), ("alpha0", "n", "beta", "alpha"), ("m1", "m2", "m3", "p1", "p2", "p3")
    ),
    "repressilator_proteinhidden": Case(
        REPRESSILATOR + "\nm1(0) = 0; m2(0) = 0; m3(0) = 0; p1(0) = 2; p2(0) = 1; p3(0) = 3",
        ("m1", "m2", "m3"), ("alpha0", "n", "beta", "alpha"), ("m1", "m2", "m3", "p1", "p2", "p3"),
    ),
    "pt_dS_RS_hidden": Case(
        PROTEIN + "S(0) = 1; R(0) = 1; RS(0) = 0; Rpp(0) = 0",  # without dS, which nothing depends on
        ("S", "R", "Rpp"), ("k1", "k2", "k3", "k4", "V", "Km"), ("S", "R", "RS", "Rpp"),
    ),
    "seir_fenrir_IR": Case(
        "S' = -b*S*E; E' = b*S*E - g*E; I' = g*E - l*I; R' = l*I\n"
        "S(0) = 1 - E(0) - I(0); R(0) = 0; log b, g, l, E(0), I(0)", ("I", "R"), ("b", "g", "l"), ("S", "E", "I", "R"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Own:
    """A system to draw from: the model, its truth, times, and the columns with the sd of their noise, if it has one."""

    text: str
    theta: dict[str, float]
    x0: dict[str, float]
    t: np.ndarray
    columns: dict[str, float]
    doses: tuple[tuple[float, float], ...] = ()


OWN = {
    "prey only": Own(
        "prey' = a*prey - b*prey*predator; predator' = c*prey*predator - d*predator\n"
        "log a, b, c, d; prey > 0; predator > 0",
        {"a": 1.0, "b": 0.2, "c": 0.1, "d": 0.6}, {"prey": 10.0, "predator": 2.0}, np.linspace(0, 30, 41),
        {"prey": 0.8},
    ),
    "brusselator, x only": Own(
        "x' = a + x^2*y - (b + 1)*x; y' = b*x - x^2*y; log a, b; x > 0; y > 0",
        {"a": 1.0, "b": 2.6}, {"x": 1.0, "y": 1.0}, np.linspace(0, 20, 41), {"x": 0.15},
    ),
    "enzyme, product only": Own(
        "S' = -kf*E*S + kr*C; E' = -kf*E*S + (kr + kc)*C; C' = kf*E*S - (kr + kc)*C; P' = kc*C\n"
        "S(0) = 10; E(0) = 1; C(0) = 0; P(0) = 0; log kf, kr, kc",
        {"kf": 0.6, "kr": 0.5, "kc": 1.2}, {"S": 10.0, "E": 1.0, "C": 0.0, "P": 0.0}, np.linspace(0.5, 20, 25),
        {"P": 0.15},
    ),
    "two compartments, plasma only": Own(
        "plasma' = -(ke + k12)*plasma + k21*tissue; tissue' = k12*plasma - k21*tissue\n"
        "plasma(0) = 0; tissue(0) = 0; c ~ lognormal(plasma/V); log ke, k12, k21, V",
        {"ke": 0.3, "k12": 0.8, "k21": 0.4, "V": 12.0}, {"plasma": 0.0, "tissue": 0.0},
        np.array([0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24]), {"c": 0.1}, ((0.0, 100.0),),
    ),
    "virus only": Own(
        "T' = -beta*T*V; I' = beta*T*V - delta*I; V' = p*I - c*V\n"
        "T(0) = 4e8; I(0) = 0; log beta, delta, p, c, V(0); fixed c = 3; V ~ lognormal(V)",
        {"beta": 3e-5, "delta": 3.0, "p": 0.012, "c": 3.0, "V(0)": 0.1}, {"T": 4e8, "I": 0.0, "V": 0.1},
        np.arange(1.0, 9.0, 0.5), {"V": 0.4},
    ),
    "reports of an epidemic": Own(
        "S' = -b*S*I/5000; I' = b*S*I/5000 - g*I; S(0) = 5000 - I(0); n ~ negbinomial(rho*g*I)\n"
        "log b, g, rho, I(0); fixed g = 0.25",
        {"b": 0.55, "g": 0.25, "rho": 0.3, "I(0)": 5.0, "k(n)": 8.0}, {"S": 4995.0, "I": 5.0},
        np.arange(0.0, 60.0, 2.0), {"n": 1.0},
    ),
    "spring, position only": Own(
        "x'' = -k*x - c*x'", {"k": 2.0, "c": 0.15}, {"x": 1.0, "x_dot": 0.0}, np.linspace(0, 25, 60), {"x": 0.1},
    ),
    "goodwin, end product only": Own(
        "X' = a/(1 + Z^10) - b*X; Y' = c*X - b*Y; Z' = d*Y - b*Z; log a, b, c, d; X > 0; Y > 0; Z > 0",
        {"a": 1.0, "b": 0.1, "c": 0.3, "d": 0.3}, {"X": 0.2, "Y": 0.3, "Z": 1.2}, np.linspace(0, 150, 60), {"Z": 0.05},
    ),
}  # fmt: skip


def own_problems(name: str, draws: range) -> Iterator[tuple[od.Problem, dict[str, float]]]:
    own = OWN[name]
    model = od.Model.from_text(own.text, name)
    some = 1.0 + np.arange(len(own.t))[:, None] % 2 * np.ones(len(own.columns))
    blank = od.Problem(model, od.Data(own.t, some, list(own.columns), doses=own.doses))
    truth = own.theta | own.x0
    theta = np.array([truth[n] for n in blank.parameters])
    x0 = np.array([own.x0[s] for s in model.states])
    path = integrated(blank, 0, theta, x0, np.full(len(x0), np.nan))
    assert path is not None
    x, phi = path.at(own.t)[0][None], blank.phi(theta)[None]
    for k in draws:
        rng, sigma = np.random.default_rng([770, k]), np.array(list(own.columns.values()))
        y = observation_of(blank).draw(rng, 0, x, phi, sigma, 1)[0]
        yield od.Problem(model, od.Data(own.t, y, list(own.columns), doses=own.doses)), truth


def problems(name: str, folder: Path, draws: range) -> Iterator[tuple[od.Problem, dict[str, float]]]:
    case = CASES[name]
    found = np.load(folder / f"{name}.npz", allow_pickle=True)
    theta = dict(zip(map(str, found["theta_names"]), found["theta"], strict=True))
    rename = dict(zip(theta, case.theta, strict=True)) if set(theta) != set(case.theta) else {n: n for n in theta}
    theta = {rename[n]: float(v) for n, v in theta.items()}
    known = dict(zip(map(str, found["states"]), map(float, found["x0"]), strict=True))
    x0 = {s: known[s] for s in case.states}
    model = od.Model.from_text(case.text, name)
    for k in draws:
        y = np.asarray(found["y"][k], float)
        y = np.exp(y) if case.log_data else y
        yield od.Problem(model, od.Data(found["t"][-len(y) :], y, states=case.columns)), theta | x0


def from_truth(problem: od.Problem, truth: dict[str, float]) -> float:
    """The log-likelihood, with the prior, of the maximum found from the truth."""
    theta = np.array([truth.get(n, truth.get(n.removesuffix("(0)"), 1.0)) for n in problem.parameters])
    phi = np.clip(problem.phi(theta), *problem.phi_bounds)
    free = np.array([truth[s] for s in problem.model.states])[problem.model.free_initial]
    x0 = [problem.condition(e).initial(problem.theta_of(e, phi)[None], free[None])[0]
          for e in range(len(problem.data.experiments))]  # fmt: skip
    best = maximise_from_initial(problem, np.full(len(problem.model.states), np.nan), x0, phi)
    return -np.inf if best is None else -best.objective


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    print(f"{'set':30} reached  better  seconds (median, most)  starts (median)")
    own = options.folder == "own"
    for name in options.only or list(OWN if own else CASES):
        reached, better, seconds, starts = 0, 0, [], []
        draws = range(options.first, options.first + options.draws)
        drawn = own_problems(name, draws) if own else problems(name, Path(options.folder), draws)
        for k, (problem, truth) in zip(draws, drawn, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reference = from_truth(problem, truth)
                clock = time.perf_counter()
                ways = search(problem, options.seed)
                seconds.append(time.perf_counter() - clock)
            value = -np.inf if ways.best is None else -ways.best.objective
            starts.append(len(ways.objectives))
            reached += value > reference - CLOSE
            better += value > reference + CLOSE
            if options.verbose:
                print(f"  {name} {k}: {value:.3f} against {reference:.3f}, {seconds[-1]:.1f} s, "
                      f"{len(ways.objectives)} starts, {ways.agreeing} agree", flush=True)  # fmt: skip
        print(f"{name:30} {reached:3}/{len(draws)}  {better:5}  {np.median(seconds):6.1f} {max(seconds):6.1f}"
              f"           {np.median(starts):5.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
