"""Population models: exact and approximate likelihoods of known data, CPU seconds, and coverage of 95 % intervals.

python benchmarks/population.py table FOLDER      FOLDER has Theoph.csv, Phenobarb.csv and warfarin.csv of R's packages,
                                                  and Oral_1CPT.csv and Infusion_1CPTMM.csv of nlmixr2data
python benchmarks/population.py coverage N        N simulated studies of two designs
python benchmarks/population.py subjects          CPU seconds against the number of subjects
python benchmarks/population.py seeds FOLDER N    maxima from N random seeds
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import odinfer as od
from odinfer.population.estimate import estimate
from odinfer.population.structure import Structure

ORAL = "gut' = -ka*gut; body' = ka*gut - CL/V*body; gut(0) = 0; body(0) = 0"
EFFECTS = "".join(f"; {p} ~ lognormal({p}_pop, omega_{p}) by subject" for p in ("ka", "CL", "V"))
PROPORTIONAL = "; conc ~ normal(body/V, b*body/V + 1e-6); log b"
NONMEM = {"ID": "id", "TIME": "time", "DV": "conc", "AMT": "amt", "EVID": "evid", "MDV": "mdv", "CMT": "cmt"}


def problems(folder: Path) -> dict[str, od.Problem]:
    """The problems of the table by name."""
    theoph = pd.read_csv(folder / "Theoph.csv").rename(columns={"Subject": "subject", "Time": "time"})
    theoph["amt"] = theoph["Dose"].where(theoph["time"] == 0)
    theoph = theoph[["subject", "time", "amt", "conc"]]
    additive, two = "; conc ~ normal(body/V)", "; log a, b"
    found = {
        "theophylline, additive": posed(ORAL + EFFECTS + additive, theoph),
        "theophylline, additive, full Ω": posed(ORAL + EFFECTS + additive + "; correlated all", theoph),
        "theophylline, sd = a + b f": posed(ORAL + EFFECTS + "; conc ~ normal(body/V, a + b*body/V)" + two, theoph),
    }
    pheno = pd.read_csv(folder / "Phenobarb.csv").rename(columns={"Subject": "subject", "dose": "amt"})
    one = "body' = -CL/V*body; body(0) = 0; conc ~ normal(body/V)"
    two_effects = "".join(f"; {p} ~ lognormal({p}_pop, omega_{p}) by subject" for p in ("CL", "V"))
    found["phenobarbital"] = posed(one + two_effects, pheno[["subject", "time", "amt", "conc"]])
    war = pd.read_csv(folder / "warfarin.csv")
    war = war[war["dvid"] == "cp"].rename(columns={"dv": "conc"})[["id", "time", "amt", "evid", "conc", "wt"]]
    weight = EFFECTS.replace("(CL_pop", "(CL_pop*(wt/70)^0.75").replace("(V_pop", "(V_pop*(wt/70)")
    found["warfarin, weight"] = posed(ORAL + weight + "; conc ~ normal(body/V, a + b*body/V)" + two, war)
    oral = single_dose(folder / "Oral_1CPT.csv")
    found["one compartment, oral, 120 subjects"] = posed(ORAL + EFFECTS + PROPORTIONAL, oral)
    michaelis = "body' = -VM*(body/V)/(KM + body/V); body(0) = 0" + PROPORTIONAL
    michaelis += "".join(f"; {p} ~ lognormal({p}_pop, omega_{p}) by subject" for p in ("VM", "KM", "V"))
    infusion = single_dose(folder / "Infusion_1CPTMM.csv", "RATE")
    found["Michaelis–Menten, infusion, 120 subjects"] = posed(michaelis, infusion)
    return found


def seeds(folder: Path, count: int) -> None:
    """How far the maxima from different seeds lie apart: in log-likelihood, and in standard errors of the estimates."""
    print("| data | seeds | same maximum | log-likelihood | standard errors | CPU s each |\n|---|---|---|---|---|---|")
    for name, problem in problems(folder).items():
        structure, clock = Structure.of(problem), time.process_time()
        with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
            found = [estimate(structure, seed) for seed in range(count)]
        values = np.array([own.marginal.value for own in found])
        best = found[int(values.argmax())]
        se = np.sqrt(np.diag(best.covariance))
        alike = [own for own in found if own.structure.names == best.structure.names]
        apart = max(float((np.abs(own.v - best.v) / se).max()) for own in alike)
        same = int((values > values.max() - 0.01).sum())
        each = (time.process_time() - clock) / count
        print(f"| {name} | {count} | {same} | {np.ptp(values):.1e} | {apart:.1e} | {each:.1f} |", flush=True)


def single_dose(path: Path, *more: str) -> pd.DataFrame:
    table = pd.read_csv(path)
    return table[table["SD"] == 1][[*NONMEM, *more]].rename(columns=NONMEM | {name: name.lower() for name in more})


def posed(text: str, table: pd.DataFrame) -> od.Problem:
    covariates = ["wt"] if "wt" in table else []
    return od.Problem(od.Model.from_text(text), od.read_csv(table, states=["conc"], covariates=covariates))


def table(folder: Path) -> None:
    print("| data | subjects | exact | ± | FOCEI | Laplace | FO | CPU s |\n|---|---|---|---|---|---|---|---|")
    for name, problem in problems(folder).items():
        clock = time.process_time()
        fit = od.fit(problem)
        seconds = time.process_time() - clock
        values = {key: value for key, value in fit.theta.items() if key in fit.structure.names}
        fo = od.loglik(problem, values, approximation="fo") if not fit.fixed_at_zero else np.nan
        numbers = f"{fit.loglik:.3f} | {fit.loglik_error:.3f} | {fit.focei:.3f} | {fit.laplace:.3f} | {fo:.3f}"
        print(f"| {name} | {len(fit.subjects)} | {numbers} | {seconds:.1f} |", flush=True)


TRUTH = {"CL_pop": 4.0, "V_pop": 30.0, "omega_CL": 0.3, "omega_V": 0.2, "sigma conc": 0.1}
DESIGNS = {"sparse": (60, (1.0, 6.0, 18.0)), "rich": (30, (0.5, 1, 2, 4, 6, 8, 10, 12, 18, 24))}
IV = "body' = -CL/V*body; body(0) = 0; conc ~ lognormal(body/V)"
IV += "; CL ~ lognormal(CL_pop, omega_CL) by subject; V ~ lognormal(V_pop, omega_V) by subject"


def study(seed: int, subjects: int, times: tuple[float, ...]) -> od.Data:
    """A study of a bolus of 100, with log-normal noise."""
    rng, t = np.random.default_rng(seed), np.array(times, float)
    CL, V = (TRUTH[f"{p}_pop"] * np.exp(TRUTH[f"omega_{p}"] * rng.normal(size=(subjects, 1))) for p in ("CL", "V"))
    y = 100.0 / V * np.exp(-CL / V * t + TRUTH["sigma conc"] * rng.normal(size=(subjects, len(t))))
    rows = pd.DataFrame({"id": np.repeat(np.arange(subjects), len(t)), "time": np.tile(t, subjects), "conc": y.ravel()})
    doses = pd.DataFrame({"id": np.arange(subjects), "time": 0.0, "amt": 100.0})
    return od.read_csv(pd.concat([doses, rows]).sort_values(["id", "time"]), states=["conc"])


def coverage(count: int) -> None:
    model = od.Model.from_text(IV)
    print("| design | " + " | ".join(TRUTH) + " | all | CPU s of a fit |\n|---|" + "---|" * (len(TRUTH) + 2))
    for design, (subjects, times) in DESIGNS.items():
        inside, clock = Counter[str](), time.process_time()
        for seed in range(count):
            fit = od.fit(model, study(seed, subjects, times))
            inside.update(n for n, value in TRUTH.items() if n in fit.intervals and _in(value, fit.intervals[n]))
        shares = [inside[n] / count for n in TRUTH]
        cells = " | ".join(f"{100 * share:.0f} %" for share in shares)
        each = (time.process_time() - clock) / count
        print(f"| {design} | {cells} | {100 * np.mean(shares):.1f} % | {each:.2f} |", flush=True)


def _in(value: float, interval: tuple[float, float]) -> bool:
    return interval[0] <= value <= interval[1]


def subjects() -> None:
    model = od.Model.from_text(IV)
    print("| subjects | CPU s |\n|---|---|")
    for count in (50, 100, 200, 500, 1000):
        data, clock = study(0, count, DESIGNS["sparse"][1]), time.process_time()
        od.fit(model, data)
        print(f"| {count} | {time.process_time() - clock:.1f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    match sys.argv[1:]:
        case ["table", folder]:
            table(Path(folder))
        case ["coverage", count]:
            coverage(int(count))
        case ["subjects"]:
            subjects()
        case ["seeds", folder, count]:
            seeds(Path(folder), int(count))
        case _:
            print(__doc__)
