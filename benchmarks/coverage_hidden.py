"""How often 95 % intervals hold the truth where states are hidden or noise is not Gaussian, over fresh draws.

    .venv/bin/python benchmarks/coverage_hidden.py [--draws 40] [--settings ...] [--start truth] [--beyond]

Columns: coverage of the parameters (mean, and the lowest of any one), of all states at the observation times, and with
--beyond of states and of new observations at two times beyond the data; fits that failed; draws with an open end. With
--start truth, fits are trajectory matching from the truth, which is faster than the search from many starts.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import odinfer as od
from odinfer.noise import FAMILIES


@dataclass(frozen=True)
class Setting:
    """Equations; declarations of noise and initial values; true values; times; the columns' noise.

    `noise` is, by column, the family, the predicted value as a function of the states, and further arguments.
    """

    equations: str
    declarations: str
    theta: dict[str, float]
    x0: dict[str, float]
    t: np.ndarray
    noise: dict[str, tuple]


SEIR = "S' = -b*S*I/1e4; E' = b*S*I/1e4 - k*E; I' = k*E - g*I"
BEGIN = "S(0) = 1e4 - E(0) - I(0); fixed k = 0.3; log b, g, E(0), I(0)\n"
EPIDEMIC = {"b": 0.6, "k": 0.3, "g": 0.2}, {"S": 9980.0, "E": 10.0, "I": 10.0}, np.arange(0.0, 91.0, 3.0)
SETTINGS = {
    "SIR, I only": Setting(
        "S' = -b*S*I/763; I' = b*S*I/763 - g*I", "log b, g; S > 0; I > 0", {"b": 1.8, "g": 0.5},
        {"S": 760.0, "I": 3.0}, np.linspace(0.0, 14.0, 29), {"I": ("normal", lambda x: x[:, 1], 12.0)},
    ),
    "FHN, V only": Setting(
        "V' = c*(V - V^3/3 + R); R' = -(V - a + b*R)/c", "", {"a": 0.2, "b": 0.2, "c": 3.0}, {"V": -1.0, "R": 1.0},
        np.linspace(0.0, 20.0, 41), {"V": ("normal", lambda x: x[:, 0], 0.2)},
    ),
    "SEIR, Poisson": Setting(
        SEIR, BEGIN + "cases ~ poisson(3*k*E)", *EPIDEMIC, {"cases": ("poisson", lambda x: 0.9 * x[:, 1])}
    ),
    "SEIR, negative binomial": Setting(
        SEIR, BEGIN + "cases ~ negbinomial(3*k*E, d)", {**EPIDEMIC[0], "d": 8.0}, *EPIDEMIC[1:],
        {"cases": ("negbinomial", lambda x: 0.9 * x[:, 1], 8.0)},
    ),
    "decay, log-normal": Setting(
        "A' = -k1*A; B' = k1*A - k2*B", "log k1, k2; A > 0; B > 0; A ~ lognormal(A); B ~ lognormal(B)",
        {"k1": 0.8, "k2": 0.3}, {"A": 10.0, "B": 2.0}, np.linspace(0.0, 8.0, 12),
        {"A": ("lognormal", lambda x: x[:, 0], 0.1), "B": ("lognormal", lambda x: x[:, 1], 0.1)},
    ),
    "Gompertz, log-normal": Setting(
        "N' = r*N*log(K/N)", "log r, K; N > 0; N ~ lognormal(N)", {"r": 0.5, "K": 10.0}, {"N": 0.3},
        np.linspace(0.0, 10.0, 12), {"N": ("lognormal", lambda x: x[:, 0], 0.1)},
    ),
    "logistic, 8 times": Setting(
        "N' = r*N*(1 - N/K)", "log r, K", {"r": 0.9, "K": 10.0}, {"N": 0.8}, np.linspace(0.0, 10.0, 8),
        {"N": ("normal", lambda x: x[:, 0], 0.3)},
    ),
}  # fmt: skip


def drawn(s: Setting, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Observations (N, M) at states x (N, K)."""
    found = []
    for family, mean, *more in s.noise.values():
        m = mean(x)
        found.append(FAMILIES[family].draw(rng, [m, *(np.full(len(m), v) for v in more)]))
    return np.stack(found, -1)


def one(s: Setting, seed: int, start: str, beyond: bool) -> dict[str, object] | None:
    """What is covered in one draw; None if the fit has no intervals."""
    plain = od.Model.from_text(s.equations)
    late = s.t[-1] + (s.t[-1] - s.t[0]) * np.array([0.05, 0.2])
    x = od.simulate(plain, {p: s.theta[p] for p in plain.parameters}, s.x0, np.append(s.t, late))
    y = drawn(s, x, np.random.default_rng(seed))
    data = od.Data(s.t, y[: len(s.t)], states=list(s.noise))
    truth = s.theta | {f"{state}(0)": value for state, value in s.x0.items()}
    model = od.Model.from_text(f"{s.equations}\n{s.declarations}")
    problem, method = od.Problem(model, data), None
    if start == "truth":
        problem = od.Problem(model, data, start={p: truth[p] for p in problem.free})
        method = od.Trajectory(start="given", x0=s.x0)
    fit = od.fit(problem, method=method, seed=seed)
    if fit.uncertainty is None:
        return None

    def inside(table, right: np.ndarray, names: list[str]) -> np.ndarray:
        low, high = (table[[f"{n}{end}" for n in names]].to_numpy() for end in ("_low", "_high"))
        return (low <= right) & (right <= high)

    intervals, states = fit.interval(), list(s.x0)
    row: dict[str, object] = {
        "theta": {p: low <= truth[p] <= high for p, (low, high) in intervals.items()},
        "states": inside(fit.forecast(s.t), x[: len(s.t)], states).mean(),
        "open": not np.isfinite(list(intervals.values())).all(),
    }
    if beyond:
        row["beyond"] = inside(fit.forecast(late), x[len(s.t) :], states).mean()
        row["new"] = inside(fit.forecast(late, observed=True), y[len(s.t) :], list(s.noise)).mean()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=900_000)
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--start", choices=("odin", "truth"), default="odin")
    parser.add_argument("--beyond", action="store_true")
    options = parser.parse_args()
    print("| setting | draws | parameters | lowest | states | beyond | new observations | failed | open | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.settings:
        clock = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seeds = range(options.first_seed, options.first_seed + options.draws)
            rows = [one(SETTINGS[name], seed, options.start, options.beyond) for seed in seeds]
        good = [row for row in rows if row is not None]
        each = {p: np.mean([row["theta"][p] for row in good]) for p in good[0]["theta"]}
        worst = min(each, key=each.get)
        cells = [f"{100 * np.mean(list(each.values())):.1f}", f"{worst} {100 * each[worst]:.1f}"]
        for key in ("states", "beyond", "new"):
            cells.append(f"{100 * np.mean([row[key] for row in good]):.1f}" if key in good[0] else "–")
        cells += [str(len(rows) - len(good)), str(sum(row["open"] for row in good))]
        seconds = (time.perf_counter() - clock) / len(rows)
        print(f"| {name} | {len(rows)} | {' | '.join(cells)} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
