"""Pose the problems of benchmarks/regression_cases.py.

Simulated data are rounded to six digits, so that a change of the integrator does not change the data. Parameters of
`PROBLEMS` are positive, and most are estimated on a log scale. `observed_problems` has problems with every state
observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import odinfer as od

Values = dict[str, np.ndarray]

LV, FHN, PT = od.systems.lotka_volterra, od.systems.fitzhugh_nagumo, od.systems.protein_transduction


def rounded(values: Any) -> np.ndarray:
    """Round to six significant digits of the largest value."""
    y = np.asarray(values, float)
    unit = 10.0 ** (np.floor(np.log10(np.nanmax(np.abs(y)))) - 5)
    return np.round(y / unit) * unit


def trajectory(equations: str, theta: Mapping[str, float], x0: Any, t: Any, inputs: Any = None) -> Values:
    """Simulate the equations: state → values (N,)."""
    model = od.Model.from_text(equations)
    return dict(zip(model.states, od.simulate(model, theta, x0, t, inputs=inputs).T, strict=True))


def normal(x: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Add normal noise, with a standard deviation given as a share of that of x."""
    return rounded(x + share * x.std() * np.random.default_rng(seed).normal(size=x.shape))


def posed(text: str, t: Any, columns: Mapping[str, Any], name: str = "case", **options: Any) -> od.Problem:
    """Pose a problem from the text of a model and its columns of data; options are those of `od.Data`."""
    data = od.Data(t, np.column_stack(list(columns.values())), states=list(columns), **options)
    return od.Problem(od.Model.from_text(text, name=name), data)


# Problems whose fit is a case by itself: hidden states, noise, doses, events, experiments.

SIR = "S' = -b*S*I/N\nI' = b*S*I/N - g*I\n"
SIR_THETA = {"b": 1.6, "g": 0.45, "N": 763.0}
SIR_START = "S(0) = N - I(0)\n0 < I(0) < 50\nlog b, g, I(0)\nfixed N = 763\n"
LOGISTIC = "n' = r*n*(1 - n/K)\n"
PREY = "prey' = a*prey - b*prey*predator\npredator' = -c*predator + d*prey*predator\n"


def sir_hidden(name: str = "sir") -> od.Problem:
    t = np.arange(15.0)
    x = trajectory(SIR, SIR_THETA, [761.0, 2.0], t)
    return posed(SIR + SIR_START, t, {"I": normal(x["I"], 0.08, 1)}, name)


def michaelis_menten_product() -> od.Problem:
    text, t = "s' = -v*s/(k + s)\np' = v*s/(k + s)\n", np.linspace(0, 14, 22)
    x = trajectory(text, {"v": 1.0, "k": 2.0}, [8.0, 0.0], t)
    return posed(text + "s(0) = 8; p(0) = 0\nlog v, k", t, {"p": normal(x["p"], 0.02, 2)})


def prey_only() -> od.Problem:
    t = np.linspace(0, 4, 30)
    x = trajectory(PREY, LV.theta, LV.x0, t)
    return posed(PREY + "log a, c, d\nfixed b = 1\nprey > 0; predator > 0", t, {"prey": normal(x["prey"], 0.08, 3)})


def cascade_last() -> od.Problem:
    text = "a' = -k1*a\nb' = k1*a - k2*b\nc' = k2*b - k3*c\n"
    t = np.linspace(0, 16, 25)
    x = trajectory(text, {"k1": 1.5, "k2": 0.5, "k3": 0.15}, [5.0, 0.0, 0.0], t)
    order = "a(0) = 5; b(0) = 0; c(0) = 0\nlog k1, k2, k3\n0.8 < k1 < 10; 0.25 < k2 < 0.8; k3 < 0.25"
    return posed(text + order, t, {"c": normal(x["c"], 0.02, 4)})


def chain_of_twelve() -> od.Problem:
    lines = ["x1' = -k1*x1"]
    lines += [f"x{i}' = k{(i - 2) // 3 + 1}*x{i - 1} - k{(i - 1) // 3 + 1}*x{i}" for i in range(2, 13)]
    text, t = "\n".join(lines) + "\n", np.linspace(0.5, 20, 25)
    theta, x0 = {"k1": 0.8, "k2": 1.2, "k3": 0.6, "k4": 0.9}, [10.0] + [0.0] * 11
    x = trajectory(text, theta, x0, np.append(0, t))
    start = "\n".join(f"x{i}(0) = {10 if i == 1 else 0}" for i in range(1, 13)) + "\nlog k1, k2, k3, k4"
    return posed(text + start, t, {f"x{i}": normal(x[f"x{i}"][1:], 0.05, i) for i in (3, 6, 9, 12)})


def poisson() -> od.Problem:
    t = np.arange(1.0, 16.0)
    x = trajectory(SIR, SIR_THETA, [761.0, 2.0], np.append(0, t))
    mean = 1.6 * x["S"][1:] * x["I"][1:] / 763
    cases = np.random.default_rng(5).poisson(rounded(mean))
    return posed(SIR + SIR_START + "cases ~ poisson(b*S*I/N)", t, {"cases": cases})


def negative_binomial() -> od.Problem:
    t = np.linspace(0, 9, 25)
    n = trajectory(LOGISTIC, {"r": 1.1, "K": 200.0}, [4.0], t)["n"]
    counts = np.random.default_rng(6).negative_binomial(8, 8 / (8 + rounded(n)))
    return posed(LOGISTIC + "count ~ negbinomial(n)\nlog r, K, n(0)\nn(0) < 100", t, {"count": counts})


def binomial() -> od.Problem:
    text, t = "p' = r*p*(1 - p)\n", np.linspace(0, 10, 18)
    p = trajectory(text, {"r": 0.8}, [0.03], t)["p"]
    counts = np.random.default_rng(7).binomial(40, rounded(p))
    return posed(text + "ill ~ binomial(40*p, 40)\nlog r, p(0)\np(0) < 0.9", t, {"ill": counts})


def two_decays(statement: str, draw: Callable[[np.ndarray, np.random.Generator], np.ndarray], seed: int) -> od.Problem:
    """Pose decay x → y with one noisy column y for a distribution of noise."""
    text, t = "x' = -k*x\ny' = k*x - d*y\n", np.linspace(0.3, 10, 24)
    x = trajectory(text, {"k": 0.9, "d": 0.3}, [6.0, 0.5], np.append(0, t))["y"][1:]
    values = rounded(draw(rounded(x), np.random.default_rng(seed)))
    return posed(text + "x(0) = 6; log k, d, y(0)\n0.5 < k\nd < 0.5\n" + statement, t, {"z": values})


def log_normal() -> od.Problem:
    return two_decays("z ~ lognormal(y)", lambda y, rng: y * np.exp(0.1 * rng.normal(size=y.shape)), 8)


def student() -> od.Problem:
    return two_decays("z ~ student(y)", lambda y, rng: y + 0.1 * rng.standard_t(4, size=y.shape), 9)


def laplace() -> od.Problem:
    return two_decays("z ~ laplace(y)", lambda y, rng: y + rng.laplace(0, 0.1, size=y.shape), 10)


def proportional_noise() -> od.Problem:
    statement = "z ~ normal(y, s0 + s1*y)\nfixed s0 = 0.02"
    return two_decays(statement, lambda y, rng: y + (0.02 + 0.08 * y) * rng.normal(size=y.shape), 11)


def scale_and_offset() -> od.Problem:
    statement = "z ~ normal(gain*y + offset)\nlog gain, offset\nfixed d = 0.3"
    return two_decays(statement, lambda y, rng: 20 * y + 5 + 1.5 * rng.normal(size=y.shape), 12)


def known_errors() -> od.Problem:
    t = np.linspace(0, 8, 15)
    sd = np.where(t < 4, 0.3, 0.1)
    y = rounded(5 * np.exp(-0.4 * t) + sd * np.random.default_rng(13).normal(size=t.shape))
    return posed("x' = -k*x\nlog k", t, {"x": y}, sd=sd[:, None])


def censored() -> od.Problem:
    t = np.linspace(0, 12, 25)
    y = rounded(5 * np.exp(-0.4 * t) * np.exp(0.15 * np.random.default_rng(14).normal(size=t.shape)))
    below = y < 0.2
    limit = np.where(below, -1, 0)[:, None]
    return posed("x' = -k*x\nlog k\nx > 0\nx ~ lognormal(x)", t, {"x": np.where(below, 0.2, y)}, limit=limit)


def bolus() -> od.Problem:
    ka, ke, t = 1.2, 0.15, np.array([0.5, 1, 2, 4, 6, 8, 11.5, 12.5, 13, 14, 16, 20, 24, 30])

    def conc(s: np.ndarray) -> np.ndarray:
        return np.where(s > 0, 100 * ka / (ka - ke) * (np.exp(-ke * s) - np.exp(-ka * s)), 0) / 20

    y = conc(t) + 0.5 * conc(t - 12)
    y = rounded(y * np.exp(0.08 * np.random.default_rng(15).normal(size=t.shape)))
    text = (
        "gut' = -ka*gut\nblood' = ka*gut - ke*blood\nconc ~ lognormal(blood/V)\ngut(0) = 0; blood(0) = 0\nlog ka, ke, V"
    )
    return posed(text + "\nka > 0.4; ke < 0.4", t, {"conc": y}, doses=[(0, 100, "gut"), od.Dose(12, 50, "gut")])


def infusion() -> od.Problem:
    """Pose two subjects with infusions, from a table with columns of doses."""
    rows, rng = [], np.random.default_rng(16)
    for subject, rate in ((1, 20.0), (2, 40.0)):
        rows.append({"ID": subject, "time": 0.0, "amt": 5 * rate, "cmt": "blood", "rate": rate})
        for t in (1.0, 2, 3, 5, 6, 8, 10, 13, 17):
            mean = rate / (0.25 * 10) * (np.exp(-0.25 * max(t - 5, 0)) - np.exp(-0.25 * t))
            rows.append({"ID": subject, "time": t, "conc": float(np.round(mean + 0.1 * rng.normal(), 4))})
    data = od.read_csv(pd.DataFrame(rows))
    text = "blood' = -ke*blood\nconc ~ normal(blood/V)\nblood(0) = 0\nlog ke, V"
    return od.Problem(od.Model.from_text(text, name="infusion"), data)


def timed_event() -> od.Problem:
    t = np.linspace(0, 24, 25)
    text = "x' = r*x*(1 - x/K)\nat 12: x = share*x\n"
    x = trajectory(text, {"r": 0.7, "K": 9.0, "share": 0.2}, [0.5], t)["x"]
    return posed(text + "log r, K, x(0)\n0 < share < 1", t, {"x": normal(x, 0.05, 17)})


def step_input() -> od.Problem:
    t = np.linspace(0, 12, 25)
    text, u = "T' = -k*(T - room) + h*on\nstep on\n", ([0.0, 3.0, 7.0], [0.0, 1.0, 0.0])
    x = trajectory(text, {"k": 0.4, "h": 5.0, "room": 18.0}, [20.0], t, {"on": u})["T"]
    return posed(text + "log k, h, room", t, {"T": normal(x, 0.05, 18)}, inputs={"on": u})


def time_switch() -> od.Problem:
    t = np.linspace(0, 20, 21)
    text = "x' = where(t > 8, v, 0) - k*x\n"
    x = trajectory(text, {"v": 2.0, "k": 0.3}, [4.0], t)["x"]
    return posed(text + "x(0) = 4\nlog v, k", t, {"x": normal(x, 0.05, 19)})


def local_parameters() -> od.Problem:
    t, parts = np.linspace(0, 8, 12), {}
    for i, (name, K) in enumerate({"dry": 6.0, "wet": 10.0, "shade": 8.0}.items()):
        n = trajectory(LOGISTIC, {"r": 0.9, "K": K}, [0.5], t)["n"]
        parts[name] = od.Data(t, normal(n, 0.04, 20 + i), states=["n"])
    return od.Problem(od.Model.from_text(LOGISTIC + "local K\nshared n(0)\nlog r, K, n(0)"), od.Data.join(parts))


def tied_initial_values() -> od.Problem:
    text = "A' = -k*A\nB' = k*A - d*B\n"
    t = np.linspace(0, 9, 20)
    x = trajectory(text, {"k": 0.6, "d": 0.25}, [8.0, 2.0], t)
    start = "A(0) = total - B(0)\nB(0) ~ normal(2, 0.5)\nB(0) > 0\nlog k, d, total"
    return posed(text + start, t, {"A": normal(x["A"], 0.04, 24), "B": normal(x["B"], 0.04, 25)})


def preequilibrated() -> od.Problem:
    t = np.linspace(0, 10, 20)
    x = 4 + 6 * (1 - np.exp(-0.5 * t))  # balance p/k = 4 until time 0, then (p + q)/k = 10
    text = "x' = p + where(t > 0, q, 0) - k*x\nx(-1000) = p/k\nlog p, q, k"
    return posed(text, t, {"x": normal(x, 0.04, 26)})


def second_order() -> od.Problem:
    t = np.linspace(0, 8, 30)
    text = "x'' = -k*x - c*x'\n"
    x = trajectory(text, {"k": 4.0, "c": 0.3}, [2.0, 0.0], t)["x"]
    return posed(text + "log k, c", t, {"x": normal(x, 0.05, 27)})


def unidentified_product() -> od.Problem:
    text, t = "x' = -k*x\ny' = r*x - d*y\n", np.linspace(0, 8, 20)
    x = trajectory(text, {"k": 0.5, "r": 1.0, "d": 1.5}, [4.0, 0.0], t)["y"]
    return posed(text + "y(0) = 0\nlog k, r, d, x(0)\nk < 1; d > 1", t, {"y": normal(x, 0.03, 28)})


def wrong_growth() -> od.Problem:
    t = np.linspace(0, 8, 16)
    n = trajectory(LOGISTIC, {"r": 0.8, "K": 5.0}, [0.5], t)["n"]
    return posed("n' = r*n\nz ~ normal(gain*n)\nn(0) = 0.5\nlog r, gain", t, {"z": normal(2 * n, 0.03, 46)})


def oscillation() -> od.Problem:
    t = np.linspace(0, 10, 40)
    y = rounded(3 + 2 * np.sin(1.3 * t) + 0.05 * np.random.default_rng(29).normal(size=t.shape))
    return posed("x' = -k*x + s*h\nh' = -g*h\nlog k, s, g, x(0)\nh(0) = 1", t, {"x": y})


def robertson() -> od.Problem:
    text = "A' = -k1*A + k3*B*C\nB' = k1*A - k3*B*C - k2*B^2\nC' = k2*B^2\n"
    t, theta = np.logspace(-4, 4, 25), {"k1": 0.04, "k2": 3e7, "k3": 1e4}
    x = trajectory(text, theta, [1.0, 0.0, 0.0], np.append(0, t))
    columns = {s: normal(v[1:], 0.03, 30 + i) for i, (s, v) in enumerate(x.items())}
    return posed(
        text + "A(0) = 1; B(0) = 0; C(0) = 0\nlog k1, k2, k3\nstart k1 = 0.1; start k2 = 1e7; start k3 = 3e4",
        t,
        columns,
    )


def replicates() -> od.Problem:
    t = np.repeat(np.linspace(0, 8, 10), 3)
    n = trajectory(LOGISTIC, {"r": 0.9, "K": 7.0}, [0.5], np.unique(t))["n"]
    return posed(LOGISTIC + "log r, K", t, {"n": normal(np.repeat(n, 3), 0.05, 33)})


def long_series(system: Any, seed: int, last: float) -> od.Problem:
    """Pose 10,000 observations of a system with two states."""
    t = np.linspace(0, last, 5000)
    x = system.states(t)
    y = x + 0.1 * x.std(0) * np.random.default_rng(seed).normal(size=x.shape)
    return od.Problem(system.model, od.Data(t, rounded(y), states=system.model.states), positive=True)


PROBLEMS: dict[str, Callable[[], od.Problem]] = {
    "hidden/sir, infected only": sir_hidden,
    "hidden/michaelis-menten, product only": michaelis_menten_product,
    "hidden/lotka-volterra, prey only": prey_only,
    "hidden/cascade, last state only": cascade_last,
    "hidden/chain of 12, four observed": chain_of_twelve,
    "hidden/second order": second_order,
    "hidden/unidentified product": unidentified_product,
    "hidden/wrong model": wrong_growth,
    "hidden/failed fit": oscillation,
    "noise/poisson": poisson,
    "noise/negative binomial": negative_binomial,
    "noise/binomial": binomial,
    "noise/log-normal": log_normal,
    "noise/student": student,
    "noise/laplace": laplace,
    "noise/proportional": proportional_noise,
    "noise/scale and offset": scale_and_offset,
    "noise/known errors": known_errors,
    "noise/censored": censored,
    "noise/replicates": replicates,
    "course/bolus": bolus,
    "course/infusion": infusion,
    "course/timed event": timed_event,
    "course/step input": step_input,
    "course/time switch": time_switch,
    "course/local parameters": local_parameters,
    "course/tied initial values": tied_initial_values,
    "course/preequilibrated": preequilibrated,
    "size/stiff": robertson,
    "size/10000 values, lotka-volterra": partial(long_series, LV, 34, 20.0),
    "size/10000 values, fitzhugh-nagumo": partial(long_series, FHN, 35, 60.0),
}


LOGLIK_VALUES: dict[Callable[[], od.Problem], dict[str, float]] = {
    sir_hidden: {"b": 1.6, "g": 0.45, "I(0)": 2.0},
    poisson: {"b": 1.6, "g": 0.45, "I(0)": 2.0},
    negative_binomial: {"r": 1.1, "K": 200.0, "n(0)": 4.0, "k(count)": 8.0},
    binomial: {"r": 0.8, "p(0)": 0.03},
    student: {"k": 0.9, "d": 0.3, "y(0)": 0.5, "sd(z)": 0.1},
    laplace: {"k": 0.9, "d": 0.3, "y(0)": 0.5, "b(z)": 0.1},
    log_normal: {"k": 0.9, "d": 0.3, "y(0)": 0.5},
    censored: {"k": 0.4, "x(0)": 5.0},
    bolus: {"ka": 1.2, "ke": 0.15, "V": 20.0},
    infusion: {"ke": 0.25, "V": 10.0},
    local_parameters: {"r": 0.9, "n(0)": 0.5, "K[dry]": 6.0, "K[wet]": 10.0, "K[shade]": 8.0},
    preequilibrated: {"p": 2.0, "q": 3.0, "k": 0.5},
    robertson: {"k1": 0.04, "k2": 3e7, "k3": 1e4},
}


# Problems with every state observed.


def noisy(model: od.Model, theta: Any, x0: Any, t: Any, sd: float, seed: int, **more: Any) -> od.Data:
    x = od.simulate(model, theta, x0, t, **more)
    y = x + sd * x.std(0) * np.random.default_rng(seed).normal(size=x.shape)
    u = {name: (np.asarray(a), np.asarray(b)) for name, (a, b) in more.get("inputs", {}).items()}
    return od.Data(t, y, states=model.states, inputs=u)


def observed_problems() -> Iterator[tuple[str, Callable[[], od.Problem]]]:
    for system in (LV, FHN, PT):
        for level in system.levels:
            yield f"{system.model.name} {level:g}", lambda s=system, v=level: od.Problem(s.model, s.sample(v, 7))
    yield "PT bounded", lambda: PT.problem(PT.sample(0.01, 8))
    for pose in (prior, three_experiments, missing_values, known_noise, driven, wrong, poorly_determined, many_states):
        yield pose.__name__.replace("_", " "), pose


def prior() -> od.Problem:
    model = od.Model.from_text(LOGISTIC + "log K\nr ~ normal(1, 0.3)\n0 < n", name="logistic")
    return od.Problem(model, noisy(model, {"r": 1.1, "K": 5}, [0.5], np.linspace(0, 8, 15), 0.05, 1))


def three_experiments() -> od.Problem:
    parts = {n: LV.sample(0.2, s, t=np.linspace(0, 2, 12)) for n, s in (("a", 1), ("b", 2), ("c", 3))}
    return od.Problem(LV.model, od.Data.join(parts), positive=True)


def missing_values() -> od.Problem:
    y = LV.sample(0.1, 3).y.copy()
    y[0, 0] = y[3, 1] = y[4, 1] = y[-1, 0] = np.nan
    data = od.Data(LV.t, y, states=LV.model.states)
    return od.Problem(LV.model, data, fixed={"c": 4.0}, bounds={"a": (0.5, 1.9)})


def known_noise() -> od.Problem:
    return od.Problem(LV.model, LV.sample(0.3, 5), sigma={"prey": 0.3})


def driven() -> od.Problem:
    model = od.Model.from_text("x' = -k*x + b*u\ninput u", name="driven")
    u = {"u": ([0.0, 2.0, 2.5, 6.0], [1.0, 1.0, 0.0, 0.0])}
    return od.Problem(model, noisy(model, {"k": 0.8, "b": 2.0}, [0.2], np.linspace(0, 6, 20), 0.05, 2, inputs=u))


def wrong() -> od.Problem:
    model = od.Model.from_text("prey' = a*prey\npredator' = -c*predator + d*prey*predator", name="wrong")
    return od.Problem(model, LV.sample(0.1, 4))


def poorly_determined() -> od.Problem:
    model = od.Model.from_text("s' = -v*s/(k + s)", name="mm")
    return od.Problem(model, noisy(model, {"v": 1, "k": 9}, [3.0], np.linspace(0, 6, 20), 0.05, 3), positive=True)


def many_states() -> od.Problem:
    system = od.systems.lorenz96(20)
    return od.Problem(system.model, system.sample(1.0, 1, t=np.linspace(0, 4, 50)))
