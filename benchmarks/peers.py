"""Thirteen small systems beside CasADi with CVODES, lmfit and SciPy: CPU seconds until the right answer.

    python benchmarks/peers.py [--only NAME ...] [--draws 5] [--first 0] [--peers casadi lmfit scipy] [--python PYTHON]

Ours is a default fit with intervals and verdicts, in a warm process. Peers start ten times, log-uniformly in a box of
three decades around the truth, with the true noise known, and give estimates only: CPU seconds of all ten starts, and
of these per start that is right. An answer is right if its log-likelihood is within 0.1 of the best that is known: the
maximum found from the truth, or a better one found by ours.
`--python` names an interpreter that has `casadi` and `lmfit`; by default this one, and what it lacks is left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CLOSE = 0.1  # nats
STARTS, DECADES = 10, 1.5  # start points of a peer; half the width of their box
PEERS = ("casadi", "lmfit", "scipy")
_SECONDS = 100.0  # CPU seconds after which a peer begins no further start


@dataclass(frozen=True)
class System:
    """Equations with one text per state, true values, times, and the observed states with the sd of their noise.

    Attributes:
        free: whether the initial values are unknown, too.
        counts: the observed values are Poisson counts, with this expectation in place of the state.
    """

    rates: Mapping[str, str]
    theta: Mapping[str, float]
    x0: Mapping[str, float]
    t: np.ndarray
    noise: Mapping[str, float]
    free: tuple[str, ...] = ()
    counts: Mapping[str, str] = field(default_factory=dict)

    @property
    def truth(self) -> dict[str, float]:
        """The true values of the unknowns."""
        return {**self.theta, **{f"{x}(0)": self.x0[x] for x in self.free}}

    @property
    def text(self) -> str:
        """The model in the language of odinfer."""
        lines = [f"{x}' = {rate}" for x, rate in self.rates.items()]
        lines += [f"{x}(0) = {value!r}" for x, value in self.x0.items() if x not in self.free]
        return "\n".join(lines + [f"{x} ~ poisson({mean})" for x, mean in self.counts.items()])


def chain(n: int, observed: tuple[int, ...], rates: int) -> System:
    """A cascade of n states with so many different rates."""
    k = [f"k{(i * rates) // n + 1}" for i in range(n)]
    own = {"x1": f"-{k[0]}*x1"} | {f"x{i + 1}": f"{k[i - 1]}*x{i} - {k[i]}*x{i + 1}" for i in range(1, n)}
    theta = {f"k{i + 1}": 1.0 + 0.5 * np.sin(2.0 * i) for i in range(rates)}
    x0 = {x: 10.0 if x == "x1" else 0.0 for x in own}
    return System(own, theta, x0, np.linspace(0.5, 1.6 * n, 40), {f"x{i}": 0.05 for i in observed})


SYSTEMS = {
    "Lotka-Volterra": System(
        {"x": "a*x - b*x*y", "y": "d*x*y - c*y"}, {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0}, {"x": 5.0, "y": 3.0},
        np.linspace(0, 4, 21), {"x": 0.3, "y": 0.3}, ("x", "y"),
    ),
    "FitzHugh-Nagumo": System(
        {"V": "c*(V - V^3/3 + R)", "R": "-(V - a + b*R)/c"}, {"a": 0.2, "b": 0.2, "c": 3.0}, {"V": -1.0, "R": 1.0},
        np.linspace(0, 20, 41), {"V": 0.1, "R": 0.1}, ("V", "R"),
    ),
    "Michaelis-Menten": System(
        {"s": "-v*s/(k + s)", "p": "v*s/(k + s)"}, {"v": 1.0, "k": 2.0}, {"s": 8.0, "p": 0.0},
        np.linspace(0.5, 14, 22), {"s": 0.1, "p": 0.1},
    ),
    "logistic": System(
        {"n": "r*n*(1 - n/K)"}, {"r": 0.8, "K": 9.0}, {"n": 0.4}, np.linspace(0, 12, 25), {"n": 0.2}, ("n",),
    ),
    "Goodwin": System(
        {"X": "a/(1 + Z^10) - b*X", "Y": "c*X - b*Y", "Z": "d*Y - b*Z"}, {"a": 1.0, "b": 0.1, "c": 0.3, "d": 0.3},
        {"X": 0.2, "Y": 0.3, "Z": 1.2}, np.linspace(0, 150, 60), {"X": 0.05, "Y": 0.05, "Z": 0.05}, ("X", "Y", "Z"),
    ),
    "Lorenz": System(
        {"x": "s*(y - x)", "y": "x*(r - z) - y", "z": "x*y - b*z"}, {"s": 10.0, "r": 28.0, "b": 8.0 / 3.0},
        {"x": 2.0, "y": 3.0, "z": 15.0}, np.linspace(0, 3, 61), {"x": 0.5, "y": 0.5, "z": 0.5},
    ),
    "cascade of 10": chain(10, tuple(range(1, 11)), 10),
    "SIR, I only": System(
        {"S": "-b*S*I/763", "I": "b*S*I/763 - g*I"}, {"b": 1.6, "g": 0.45}, {"S": 760.0, "I": 3.0}, np.arange(15.0),
        {"I": 10.0}, ("S", "I"),
    ),
    "SEIR, counts": System(
        {"S": "-b*S*I/1e4", "E": "b*S*I/1e4 - k*E", "I": "k*E - g*I"}, {"b": 0.6, "k": 0.3, "g": 0.2},
        {"S": 9980.0, "E": 10.0, "I": 10.0}, np.arange(0.0, 90.0, 3.0), {"cases": 1.0}, ("E", "I"), {"cases": "3*k*E"},
    ),
    "repressilator": System(
        {f"m{i}": f"-m{i} + alpha/(1 + p{j}^n) + alpha0" for i, j in ((1, 3), (2, 1), (3, 2))}
        | {f"p{i}": f"-beta*(p{i} - m{i})" for i in (1, 2, 3)},
        {"alpha": 100.0, "alpha0": 1.0, "beta": 5.0, "n": 2.0},
        {"m1": 1.0, "m2": 1.0, "m3": 1.0, "p1": 2.0, "p2": 1.0, "p3": 3.0}, np.linspace(0, 20, 41),
        {"p1": 1.0, "p2": 1.0, "p3": 1.0}, ("m1", "m2", "m3"),
    ),
    "Robertson": System(
        {"A": "-k1*A + k3*B*C", "B": "k1*A - k3*B*C - k2*B^2", "C": "k2*B^2"}, {"k1": 0.04, "k2": 3e7, "k3": 1e4},
        {"A": 1.0, "B": 0.0, "C": 0.0}, np.geomspace(1e-5, 1e5, 40), {"A": 0.01, "B": 1e-6, "C": 0.01},
    ),
    "chain of 30": chain(30, (6, 12, 18, 24, 30), 30),
    "protein transduction": System(
        {"S": "-k1*S - k2*S*R + k3*RS", "dS": "k1*S", "R": "-k2*S*R + k3*RS + V*Rpp/(Km + Rpp)",
         "RS": "k2*S*R - k3*RS - k4*RS", "Rpp": "k4*RS - V*Rpp/(Km + Rpp)"},
        {"k1": 0.07, "k2": 0.6, "k3": 0.05, "k4": 0.3, "V": 0.017, "Km": 0.3},
        {"S": 1.0, "dS": 0.0, "R": 1.0, "RS": 0.0, "Rpp": 0.0},
        np.array([0, 1, 2, 4, 5, 7, 10, 15, 20, 30, 40, 50, 60, 80, 100.0]),
        {"S": 0.01, "dS": 0.01, "R": 0.01, "RS": 0.01, "Rpp": 0.01}, ("S", "R"),
    ),
}  # fmt: skip


def draw(system: System, draw_number: int) -> np.ndarray:
    """Observations (N, M) with noise."""
    import odinfer as od

    rng, model = np.random.default_rng([33, draw_number]), od.Model.from_text("\n".join(
        f"{x}' = {rate}" for x, rate in system.rates.items()))  # fmt: skip
    t = system.t if system.t[0] == 0 else np.append(0.0, system.t)
    x = od.simulate(model, system.theta, [*system.x0.values()], t)[len(t) - len(system.t) :]
    values = dict(zip(system.rates, x.T, strict=True))
    if system.counts:
        means = [eval(mean, {}, {**system.theta, **values}) for mean in system.counts.values()]
        return np.column_stack([rng.poisson(mean) for mean in means]).astype(float)
    return np.column_stack([values[name] + sd * rng.normal(size=len(x)) for name, sd in system.noise.items()])


def ours(system: System, y: np.ndarray) -> dict[str, float]:
    """CPU seconds of a default fit, its log-likelihood, and the best that is known."""
    import odinfer as od

    known = {} if system.counts else dict(system.noise)
    problem = od.Problem(od.Model.from_text(system.text), od.Data(system.t, y, states=[*system.noise]), sigma=known)
    begun = time.process_time()
    fit = od.fit(problem)
    seconds = time.process_time() - begun
    start = {name: system.truth[name] for name in problem.free if name in system.truth}
    told = od.Problem(problem.model, problem.data, sigma=known, start=start)
    states = {x: system.x0[x] for x in problem.model.states}
    best = od.fit(told, method=od.Trajectory(start="given", x0=states))
    found = [float(f.details.get("loglik", -np.inf)) for f in (fit, best)]
    return {"seconds": seconds, "loglik": found[0], "best": max(found)}


# Peers: a least-squares problem, solved from random start points.


def residuals_of(system: System, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Residuals by SciPy's LSODA as a function of the logarithms of the unknowns' sizes."""
    from scipy.integrate import odeint

    names, truth = [*system.rates], system.truth
    inner = [compile(rate.replace("^", "**"), "rate", "eval") for rate in system.rates.values()]
    t = system.t if system.t[0] == 0 else np.append(0.0, system.t)

    def residuals(logs: np.ndarray) -> np.ndarray:
        v = dict(zip(truth, np.sign([*truth.values()]) * np.exp(logs), strict=True))

        def field(x: np.ndarray, now: float) -> list[float]:
            own = v | dict(zip(names, x.tolist(), strict=True))
            return [eval(rate, {}, own) for rate in inner]

        x0 = [v.get(f"{x}(0)", system.x0[x]) for x in names]
        x = odeint(field, x0, t, rtol=1e-7, atol=1e-9 * max(map(abs, x0)), mxstep=5000)[len(t) - len(y) :]
        return scored(system, y, v | dict(zip(names, x.T, strict=True)))

    return residuals


def scored(system: System, y: np.ndarray, values: dict[str, Any]) -> np.ndarray:
    """Residuals whose halved squares add up to −log-likelihood and a constant: in units of the noise, or deviance."""
    if not system.counts:
        found = np.concatenate([(values[n] - y[:, i]) / sd for i, (n, sd) in enumerate(system.noise.items())])
    else:
        means = [np.maximum(eval(mean, {}, values), 1e-10) for mean in system.counts.values()]
        found = np.concatenate([deviance(y[:, i], mean) for i, mean in enumerate(means)])
    return np.where(np.isfinite(found), np.clip(found, -1e8, 1e8), 1e8)


def deviance(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        own = mean - y + np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / mean), 0.0)
    return np.sign(mean - y) * np.sqrt(2.0 * np.maximum(own, 0.0))


def casadi_functions(system: System, y: np.ndarray) -> tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]:
    """Residuals and their Jacobian by CVODES with forward sensitivities."""
    import casadi as ca

    states, unknown = ca.SX.sym("x", len(system.rates)), [*system.truth]
    logs = ca.SX.sym("p", len(unknown))
    signs = np.sign([*system.truth.values()])
    v = dict(zip(unknown, ca.vertsplit(signs * ca.exp(logs)), strict=True))
    v |= dict(zip(system.rates, ca.vertsplit(states), strict=True))
    rates = ca.vertcat(*(eval(rate.replace("^", "**"), {}, v) for rate in system.rates.values()))
    t = [float(s) for s in system.t]
    first = 0.0 if t[0] > 0 else t[0]
    options = {"reltol": 1e-7, "abstol": 1e-9 * max(map(abs, system.x0.values())), "max_num_steps": 5000}
    solve = ca.integrator("solve", "cvodes", {"x": states, "p": logs, "ode": rates}, first, t, options)
    p = ca.MX.sym("p", len(unknown))
    seen = dict(zip(unknown, ca.vertsplit(signs * ca.exp(p)), strict=True))
    x = solve(x0=ca.vertcat(*(seen.get(f"{x}(0)", value) for x, value in system.x0.items())), p=p)["xf"]
    seen |= dict(zip(system.rates, ca.vertsplit(x), strict=True))
    names = [*system.noise]
    columns = [eval(system.counts[n], {}, seen) if system.counts else seen[n] for n in names]
    predicted = ca.vertcat(*(column.T for column in columns))
    value, slope = ca.Function("value", [p], [predicted]), ca.Function("slope", [p], [ca.jacobian(predicted, p)])
    rows = y.T.ravel()
    sd = np.repeat([system.noise[n] for n in names], len(y))

    def residuals(at: np.ndarray) -> np.ndarray:
        try:
            mean = np.asarray(value(at)).ravel()
        except RuntimeError:
            return np.full(rows.shape, 1e8)
        own = deviance(rows, np.maximum(mean, 1e-10)) if system.counts else (mean - rows) / sd
        return np.where(np.isfinite(own), own, 1e8)

    def jacobian(at: np.ndarray) -> np.ndarray:
        try:
            mean, J = np.asarray(value(at)).ravel(), np.asarray(slope(at))
        except RuntimeError:
            return np.zeros((rows.size, len(at)))
        if not system.counts:
            return np.nan_to_num(J / sd[:, None])
        mean = np.maximum(mean, 1e-10)
        left = deviance(rows, mean)
        small = np.abs(left) < 1e-6
        by_mean = np.where(small, 1.0 / np.sqrt(mean), (1.0 - rows / mean) / np.where(small, 1.0, left))
        return np.nan_to_num(J * by_mean[:, None])

    return residuals, jacobian


def peer(name: str, system: System, y: np.ndarray, seed: int) -> dict[str, float]:
    """CPU seconds of ten starts, and how many of them led to what the truth, or any of them, leads to."""
    from scipy.optimize import least_squares

    jacobian: Any
    begun = time.process_time()
    residuals, jacobian = residuals_of(system, y), "2-point"
    if name == "casadi":
        residuals, jacobian = casadi_functions(system, y)
    rng, middle, found = np.random.default_rng([7, seed]), np.log(np.abs([*system.truth.values()])), []
    while len(found) < STARTS and time.process_time() - begun < _SECONDS:
        at = middle + np.log(10.0) * rng.uniform(-DECADES, DECADES, len(middle))
        try:
            if name == "lmfit":
                import lmfit

                given = lmfit.Parameters()
                for i, value in enumerate(at):
                    given.add(f"p{i}", value)
                end = lmfit.minimize(lambda own: residuals(np.array([*own.valuesdict().values()])), given)
                found.append(0.5 * float(end.chisqr))
            else:
                found.append(float(least_squares(residuals, at, jacobian, x_scale="jac", max_nfev=200).cost))
        except (ValueError, RuntimeError, ArithmeticError, np.linalg.LinAlgError):
            found.append(np.inf)
    seconds = time.process_time() - begun
    least = min([least_squares(residuals, middle, jacobian, x_scale="jac").cost, *found])
    return {"seconds": seconds, "hits": int(sum(value < least + CLOSE for value in found)), "starts": len(found)}


def ask_peer(python: str, name: str, system: str, y: np.ndarray, seed: int) -> dict[str, float] | None:
    """Run a peer in an interpreter of its own; None if that lacks it."""
    given = json.dumps({"peer": name, "system": system, "y": y.tolist(), "seed": seed})
    done = subprocess.run([python, __file__, "--worker"], input=given, capture_output=True, text=True)
    if done.returncode:
        print(f"    {name}: {done.stderr.strip().splitlines()[-1]}")
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--peers", nargs="*", default=[], choices=PEERS)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.worker:
        task = json.load(sys.stdin)
        print(json.dumps(peer(task["peer"], SYSTEMS[task["system"]], np.array(task["y"]), task["seed"])))
        return
    ours(SYSTEMS["logistic"], draw(SYSTEMS["logistic"], 999))  # what is compiled or loaded at first
    for name, system in SYSTEMS.items():
        if given.only and name not in given.only:
            continue
        seconds, hits, lines = 0.0, 0, {p: np.zeros(3) for p in given.peers}
        for i in range(given.first, given.first + given.draws):
            y = draw(system, i)
            own = ours(system, y)
            seconds += own["seconds"]
            hits += own["loglik"] > own["best"] - CLOSE
            for p in given.peers:
                if (answer := ask_peer(given.python, p, name, y, i)) is not None:
                    lines[p] += [answer["seconds"], answer["hits"], answer["starts"]]
        row = f"{name:22} ours {seconds / max(hits, 1):7.2f} s ({hits} of {given.draws})"
        for p, (used, right, starts) in lines.items():
            one = used / right if right else np.inf
            row += f"   {p} {used / given.draws:7.2f} s, {one:.2f} s a right start ({right:.0f} of {starts:.0f})"
        print(row, flush=True)


if __name__ == "__main__":
    main()
