"""Do the 95 % bands of unknown functions hold the true functions?

    python benchmarks/unknown_functions.py --draws 6
    python benchmarks/unknown_functions.py --systems held-out

Eighteen systems: inputs, rates and laws of growth with several shapes, observed with normal, lognormal, binomial,
Poisson and negative binomial noise, some through hidden states. Method and settings were chosen on the first nine; the
others are held out. Of every band, the share of 41 points within the data's range counts at which it holds the truth.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import odinfer as od

Array = NDArray[np.float64]
POINTS, MARGIN = 41, 0.03  # of the range at both ends, beyond which there is no point


class System(NamedTuple):
    """A model with ? and the function that stands there.

    Attributes:
        true: the model with the function, x0 its initial values.
        function: of t or of a state, as the text of `model` has it.
        times: last time and number of times.
        column, draw: what is observed, from states (N, K) and values (N,) of the function.
    """

    name: str
    true: str
    x0: list[float]
    model: str
    function: Callable[[Array], Array]
    times: tuple[float, int]
    column: str
    draw: Callable[[Array, Array, np.random.Generator], Array]
    of_time: bool = True


def normal(k: int, sd: float) -> Callable[[Array, Array, np.random.Generator], Array]:
    return lambda x, _, rng: x[:, k] + sd * rng.normal(size=len(x))


def binomial(k: int, n: int) -> Callable[[Array, Array, np.random.Generator], Array]:
    return lambda x, _, rng: rng.binomial(n, x[:, k]).astype(float)


def bump(t: Array, height: float, middle: float, width: float, base: float) -> Array:
    return base + height * np.exp(-0.5 * ((t - middle) / width) ** 2)


def step(t: Array, before: float, after: float, when: float, width: float) -> Array:
    return after + (before - after) / (1 + np.exp((t - when) / width))


TUNED = (
    System("growth that declines with density", "n' = n*1.2*(1 - n/10)", [0.5], "n' = n*?(n); ?(n) decreasing",
           lambda n: 1.2 * (1 - n / 10), (8, 40), "n", normal(0, 0.15), False),
    System("repressed production", "x' = 4/(1 + (x/3)^3) - 0.4*x", [0.2], "x' = ?(x) - 0.4*x; ?(x) decreasing",
           lambda x: 4 / (1 + (x / 3) ** 3), (8, 40), "x", normal(0, 0.08), False),
    System("production that is switched off", "x' = 3/(1 + (x/4)^10) - 0.2*x", [0.2],
           "x' = ?(x) - 0.2*x; ?(x) decreasing >= 0", lambda x: 3 / (1 + (x / 4) ** 10), (8, 40), "x", normal(0, 0.1),
           False),
    System("loss that falls", "y' = 5 - (0.1 + 0.8/(1 + exp((t - 6)/0.7)))*y", [6], "y' = 5 - ?(t)*y; ?(t) decreasing",
           lambda t: step(t, 0.9, 0.1, 6, 0.7), (15, 40), "y", normal(0, 0.5)),
    System("saturated uptake", "x' = 2 - 3*x/(1 + x)", [0.1], "x' = 2 - ?(x); ?(x) increasing",
           lambda x: 3 * x / (1 + x), (10, 40), "x", normal(0, 0.03), False),
    System("epidemic, binomial", "S' = -b*S*I; I' = b*S*I - 0.2*I; b = 0.35 + 0.2*sin(t/6)", [0.99, 0.01],
           "S' = -?(t)*S*I; I' = ?(t)*S*I - 0.2*I; ?(t) >= 0; S(0) = 0.99; I(0) = 0.01; pos ~ binomial(500*I, 500)",
           lambda t: 0.35 + 0.2 * np.sin(t / 6), (40, 41), "pos", binomial(1, 500)),
    System("epidemic, Poisson", "S' = -b*S*I/10000; I' = b*S*I/10000 - 0.2*I; b = 0.15 + 0.3/(1 + exp((t - 28)/3))",
           [9990, 10], "S' = -new; I' = new - 0.2*I; new = ?(t)*S*I/10000; ?(t) >= 0; S(0) = 9990; I(0) = 10; "
           "c ~ poisson(new)", lambda t: step(t, 0.45, 0.15, 28, 3), (60, 61), "c",
           lambda x, b, rng: rng.poisson(b * x[:, 0] * x[:, 1] / 10000).astype(float)),
    System("input of a hidden state", "x' = 2*exp(-0.5*((t - 5)/2)^2) + 0.5 - 0.5*x; y' = x - y", [1, 1],
           "x' = ?(t) - 0.5*x; y' = x - y; x(0) = 1; y(0) = 1", lambda t: bump(t, 2, 5, 2, 0.5), (15, 41), "y",
           normal(1, 0.05)),
    System("input switched on and off", "g' = 2/(1 + exp(-(t - 4)/0.3))/(1 + exp((t - 9)/0.3)) - 0.8*g; "
           "c' = 0.8*g - 0.3*c", [0, 0], "g' = ?(t) - 0.8*g; c' = 0.8*g - 0.3*c; g(0) = 0; c(0) = 0",
           lambda t: 2 / (1 + np.exp(-(t - 4) / 0.3)) / (1 + np.exp((t - 9) / 0.3)), (20, 50), "c", normal(1, 0.1)),
)  # fmt: skip
HELD_OUT = (
    System("loss that falls, lognormal", "y' = -(0.05 + 0.6*exp(-t/3))*y", [50],
           "y' = -?(t)*y; ?(t) decreasing >= 0; y ~ lognormal(y, s)", lambda t: 0.05 + 0.6 * np.exp(-t / 3), (15, 36),
           "y", lambda x, _, rng: x[:, 0] * np.exp(0.04 * rng.normal(size=len(x)))),
    System("recruitment (Ricker)", "p' = p*1.5*exp(-p/4) - 0.3*p", [0.3], "p' = p*?(p) - 0.3*p; ?(p) decreasing",
           lambda p: 1.5 * np.exp(-p / 4), (12, 36), "p", normal(0, 0.1), False),
    System("occupancy, binomial", "p' = (0.5 + 0.3*cos(t/5))*p*(1 - p) - 0.2*p", [0.3],
           "p' = ?(t)*p*(1 - p) - 0.2*p; p(0) = 0.3; seen ~ binomial(80*p, 80)", lambda t: 0.5 + 0.3 * np.cos(t / 5),
           (40, 41), "seen", binomial(0, 80)),
    System("transmission that falls, binomial",
           "S' = -b*S*I; I' = b*S*I - 0.25*I; b = 0.2 + 0.35/(1 + exp((t - 20)/2))", [0.995, 0.005],
           "S' = -?(t)*S*I; I' = ?(t)*S*I - 0.25*I; S(0) = 0.995; I(0) = 0.005; pos ~ binomial(1000*I, 1000)",
           lambda t: step(t, 0.55, 0.2, 20, 2), (45, 46), "pos", binomial(1, 1000)),
    System("forced oscillator", "x' = v; v' = -4*x - 0.4*v + 1.5*sin(0.9*t)", [1, 0],
           "x' = v; v' = -4*x - 0.4*v + ?(t); x(0) = 1; v(0) = 0; x ~ normal(x, s)", lambda t: 1.5 * np.sin(0.9 * t),
           (12, 61), "x", normal(0, 0.04)),
    System("infusion into a hidden compartment", "g' = 0.5 + 3*exp(-0.5*((t - 6)/1.5)^2) - g; c' = g - 0.3*c", [0, 0],
           "g' = ?(t) - 1.0*g; c' = g - 0.3*c; ?(t) >= 0; g(0) = 0; c(0) = 0; c ~ normal(c, s)",
           lambda t: bump(t, 3, 6, 1.5, 0.5), (18, 45), "c", normal(1, 0.1)),
    System("growth, negative binomial", "n' = 0.6*n*(1 - (n/80)^2)", [4], "n' = ?(n); c ~ negbinomial(n, 10)",
           lambda n: 0.6 * n * (1 - (n / 80) ** 2), (12, 37), "c",
           lambda x, _, rng: rng.negative_binomial(10, 10 / (10 + x[:, 0])).astype(float), False),
    System("mortality that rises, Poisson", "y' = -0.02*exp(0.15*t)*y", [400],
           "y' = -?(t)*y; ?(t) increasing >= 0; y(0) = 400; y ~ poisson(y)", lambda t: 0.02 * np.exp(0.15 * t),
           (18, 37), "y", lambda x, _, rng: rng.poisson(x[:, 0]).astype(float)),
    System("input that decays, hidden chain", "a' = 4*exp(-t/5) - a; b' = a - 0.5*b", [0, 0],
           "a' = ?(t) - a; b' = a - 0.5*b; ?(t) decreasing >= 0; a(0) = 0; b(0) = 0", lambda t: 4 * np.exp(-t / 5),
           (16, 41), "b", normal(1, 0.08)),
)  # fmt: skip


def held(system: System, draw: int) -> float:
    """The share of the true function that the band of one data set holds."""
    t = np.linspace(0.0, system.times[0], system.times[1])
    x = np.asarray(od.simulate(od.Model.from_text(system.true), {}, system.x0, t))
    argument = t if system.of_time else x[:, 0]
    rng = np.random.default_rng([draw, sum(map(ord, system.name))])
    y = system.draw(x, system.function(argument), rng)
    try:
        fit = od.fit(od.Model.from_text(system.model), od.Data(t, y, states=[system.column]))
    except od.InputError as error:
        print(f"{system.name}, draw {draw}: {error}", flush=True)
        return 0.0
    low, high = argument.min(), argument.max()
    at = np.linspace(low + MARGIN * (high - low), high - MARGIN * (high - low), POINTS)
    band, truth = fit.unknown["?"].at(at), system.function(at)
    return float(((band["low"] <= truth) & (truth <= band["high"])).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", choices=("all", "tuned", "held-out"), default="all")
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="the first draw; settings were chosen on those from 20 on")
    parser.add_argument("--only", nargs="*", default=[""], help="systems whose names begin so")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", od.InputWarning)
    print("| systems | system | true function in the band | lowest | CPU s of a fit |\n|---|---|---|---|---|")
    for kind, systems in (("tuned", TUNED), ("held-out", HELD_OUT)):
        for system in systems if asked.systems in ("all", kind) else ():
            if not any(system.name.startswith(o) for o in asked.only):
                continue
            clock = time.process_time()
            shares = [held(system, draw) for draw in range(asked.first, asked.first + asked.draws)]
            seconds = (time.process_time() - clock) / asked.draws
            numbers = f"{np.mean(shares):.0%} | {min(shares):.0%} | {seconds:.1f}"
            print(f"| {kind} | {system.name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
