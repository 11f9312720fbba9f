"""Are the verdicts right? False alarms on right models, detection of wrong ones, and the ranking by BIC.

python benchmarks/selection.py alarms --draws 200      right models: how often is any equation accused?
python benchmarks/selection.py candidates --draws 100  the paper's four models of Lotka–Volterra
python benchmarks/selection.py power --draws 100       equations that are only a little wrong
"""

import argparse
import time
import warnings

import numpy as np

import odinfer as od
from odinfer.diagnostics.equation_test import judge
from odinfer.diagnostics.model_test import judge_model
from odinfer.model.model import Model
from odinfer.paper.systems import SYSTEMS, System

PREY, PREDATOR = "prey' = a*prey - b*prey*predator", "predator' = -c*predator + d*prey*predator"
WRONG_PREY, WRONG_PREDATOR = "prey' = a*prey^2 + b*predator", "predator' = -c*predator"
CANDIDATES = {
    "M11": (PREY, PREDATOR),
    "M01": (WRONG_PREY, PREDATOR),
    "M10": (PREY, WRONG_PREDATOR),
    "M00": (WRONG_PREY, WRONG_PREDATOR),
}
LV, PT = SYSTEMS["lotka_volterra"], SYSTEMS["protein_transduction"]


def _lv(name: str, text: str, **theta: float) -> System:
    return System(Model.from_text(text, name=name), theta, LV.x0, LV.t)


def _delayed(lag: float) -> System:
    """Predators that respond with a lag, as a chain of two hidden stages; only prey and predators are observed."""
    text = f"{PREY}\npredator' = -c*predator + d*w\nw' = (prey*predator - w)/{lag}"
    whole = System(
        Model.from_text(text, name="delayed"), {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0}, np.r_[LV.x0, 15.0], LV.t
    )
    return _Seen(whole.model, whole.theta, whole.x0, whole.t)


class _Seen(System):
    """A system of which only the first two states are observed."""

    def sample(self, noise: float, seed: int, t: np.ndarray | None = None) -> od.Data:
        return super().sample(noise, seed, t).select(LV.model.states)


# name → (truth, candidate without the subtlety, noise levels, the equations that are wrong)
SUBTLE = {
    "prey - 0.1 prey^2": (
        _lv("a", f"{PREY} - e*prey^2\n{PREDATOR}", a=2, b=1, e=0.1, c=4, d=1), LV.model, (0.1, 0.5), {"prey"},
    ),
    "prey - 0.3 prey^2": (
        _lv("a", f"{PREY} - e*prey^2\n{PREDATOR}", a=2, b=1, e=0.3, c=4, d=1), LV.model, (0.1, 0.5), {"prey"},
    ),
    "exponent 1.3 of predator": (
        _lv("b", f"prey' = a*prey - b*prey*predator^1.3\n{PREDATOR}", a=2, b=0.7, c=4, d=1),
        LV.model, (0.1, 0.5), {"prey"},
    ),
    "exponent 2 of predator": (
        _lv("b", f"prey' = a*prey - b*prey*predator^2\n{PREDATOR}", a=2, b=0.3, c=4, d=1),
        LV.model, (0.1, 0.5), {"prey"},
    ),
    "no saturation of Rpp (PT)": (
        PT, Model.from_text(str(PT.model.text).replace("k5*Rpp/(k6 + Rpp)", "k5*Rpp"), name="PT linear"), PT.levels,
        {"R", "Rpp"},
    ),
    "lag of 0.1 in predator": (_delayed(0.1), LV.model, (0.1, 0.5), {"predator"}),
    "lag of 0.3 in predator": (_delayed(0.3), LV.model, (0.1, 0.5), {"predator"}),
}  # fmt: skip


def _chosen(rows: dict, only: str) -> list:
    return [(name, row) for name, row in rows.items() if only in name]


def _judged(model: Model, data: od.Data, draws: int) -> tuple[dict[str, bool], float]:
    """Which equations are accused, and the p-value of the model as a whole."""
    problem = od.Problem(model, data)
    equations = {j.state: j.contradicts for j in judge(problem, od.Odin().search, draws=draws)}
    fit = od.fit(problem)
    return equations, judge_model(None if fit.uncertainty is None else fit.maximum(), 0, draws).p


def _own_seeds(first: int, name: str, noise: float) -> int:
    rows = [(row, level) for row, system in SYSTEMS.items() for level in system.levels]
    return first + 1000 * rows.index((name, noise))


def alarms(n: int, first: int, simulations: int, only: str) -> None:
    print("right models          noise   an equation accused   rejected as a whole   not followed   seconds")
    for name, system in _chosen(SYSTEMS, only):
        for noise in system.levels:
            clock = time.perf_counter()
            # Noise of its own in every row: the same seeds would be lucky or unlucky in all of them.
            seeds = range(_own_seeds(first, name, noise), _own_seeds(first, name, noise) + n)
            found = [_judged(system.model, system.sample(noise, seed), simulations) for seed in seeds]
            accused, rejected = sum(any(e.values()) for e, _ in found), sum(p <= 0.05 for _, p in found)
            lost, seconds = sum(np.isnan(p) for _, p in found), (time.perf_counter() - clock) / n
            counts = f"{accused:16d}/{n}{rejected:20d}/{n}{lost:12d}"
            print(f"{name:22s}{noise:6g}{counts}{seconds:14.2f}", flush=True)


def candidates(n: int, first: int, simulations: int, only: str) -> None:
    models = {name: Model.from_text("\n".join(text), name=name) for name, text in CANDIDATES.items()}
    for _, noise in _chosen({f"{level:g}": level for level in LV.levels}, only):
        right = {name: np.zeros(2) for name in models}
        lowest = 0
        for i in range(n):
            found = od.compare(list(models.values()), LV.sample(noise, first + i), draws=simulations)
            lowest += found.best == "M11"
            for name, verdicts in found.verdicts.items():
                truth = np.array([text in (WRONG_PREY, WRONG_PREDATOR) for text in CANDIDATES[name]])
                right[name] += (np.array(list(verdicts.values())) == "contradicts") == truth
        print(
            f"noise {noise:g}: lowest BIC is the true model in {lowest}/{n}; verdict right (prey, predator):", end=" "
        )
        print({name: [int(v) for v in count] for name, count in right.items()}, flush=True)


def power(n: int, first: int, simulations: int, only: str) -> None:
    print("what is wrong                  noise   a wrong equation accused   a right one   rejected as a whole")
    for name, (truth, model, levels, wrong) in _chosen(SUBTLE, only):
        for noise in levels:
            found = [_judged(model, truth.sample(noise, first + i), simulations) for i in range(n)]
            hits = sum(any(e[s] for s in wrong) for e, _ in found)
            strays = sum(any(v for s, v in e.items() if s not in wrong) for e, _ in found)
            # A model of which no trajectory follows the data needs no further test.
            rejected = sum(not p > 0.05 for _, p in found)
            print(f"{name:30s}{noise:6g}{hits:16d}/{n}{strays:16d}/{n}{rejected:16d}/{n}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("alarms", "candidates", "power"))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=80_000)
    parser.add_argument("--simulations", type=int, default=199)
    parser.add_argument("--only", default="", help="rows, or noise levels of candidates, whose name contains this")
    options = parser.parse_args()
    warnings.simplefilter("ignore", od.InputWarning)
    {"alarms": alarms, "candidates": candidates, "power": power}[options.what](
        options.draws, options.first_seed, options.simulations, options.only
    )
