"""Fit NIST's certified nonlinear regression problems posed as differential equations, and compare the results.

Every folder has `model.ode`, `data.csv` and `certified.json` (estimate and standard error of each parameter, and the
residual sum of squares). A problem of regression can be posed if its curve solves a differential equation.

    python benchmarks/nist.py FOLDER [--only NAME]

Certified standard errors use n - p degrees of freedom for the noise, and so do those of a fit.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import odinfer as od

# Terms of a sum whose labels can be exchanged: their amplitudes and rates, in the certified order of rates.
EXCHANGEABLE = {"lanczos3": (("A(0)", "b2"), ("B(0)", "b4"), ("C(0)", "b6"))}


def posed(folder):
    """The problem of a folder with its certified values."""
    model = od.Model.from_file(folder / "model.ode")
    data = od.read_csv(folder / "data.csv")
    certified = json.loads((folder / "certified.json").read_text())
    return od.Problem(model, data), certified


def standard_errors(fit, values):
    """Standard errors of the parameters by name as the fit reports them, and the residual sum of squares."""
    found = fit.uncertainty
    sd = np.sqrt(np.diagonal(found.covariance))
    errors = {n: s * (values[n] if n in found.log else 1.0) for n, s in zip(found.names, sd.tolist(), strict=True)}
    return errors, float(sum(np.nansum(e.residuals**2) for e in fit.experiments.values()))


def unknowns(fit, problem):
    """The estimates of parameters and free initial values by name."""
    found = {name: fit.theta[name] for name in problem.free}
    experiment = fit.experiments[next(iter(fit.experiments))]
    for k in problem.model.free_initial:
        found.setdefault(f"{problem.model.states[k]}(0)", float(experiment.curve.x[0, k]))
    return found


def ordered(name, numbers, values):
    """Numbers by name, with those of exchangeable terms in the order of the terms' rates among the values."""
    terms = EXCHANGEABLE.get(name, ())
    found = sorted(terms, key=lambda term: values[term[1]])
    pairs = (pair for places in zip(terms, found, strict=True) for pair in zip(*places, strict=True))
    return numbers | {name: numbers[own] for name, own in pairs}


def digits(found, right):
    """Number of digits in which two values agree."""
    if found == right:
        return 15.0
    return float(np.clip(-np.log10(abs(found - right) / abs(right)), 0.0, 15.0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| problem | digits of estimates | digits of standard errors | digits of rss | CPU s | status |")
    print("|---|---|---|---|---|---|")
    for folder in sorted(p for p in options.folder.iterdir() if options.only in p.name):
        try:
            problem, certified = posed(folder)
        except od.InputError as error:
            print(f"| {folder.name} | cannot be posed: {error} | | | | |", flush=True)
            continue
        clock = time.process_time()
        fit = od.fit(problem)
        seconds, right = time.process_time() - clock, certified["certified"]
        found = unknowns(fit, problem)
        values = ordered(folder.name, found, found)
        if not all(np.isfinite(v) for v in values.values()):
            print(f"| {folder.name} | | | | {seconds:.1f} | {fit.status} |", flush=True)
            continue
        # A certified parameter that the equation has as an initial value at another time is not compared.
        pairs = [(n, right[c]) for n, c in zip(certified["unknowns"], right, strict=False) if n in values]
        errors, rss = standard_errors(fit, found)
        errors = ordered(folder.name, errors, found)
        estimates = min(digits(values[n], own[0]) for n, own in pairs)
        own = min(digits(errors[n], own[1]) for n, own in pairs)
        print(
            f"| {folder.name} | {estimates:.1f} | {own:.1f} | {digits(rss, right['rss']):.1f} | {seconds:.1f} | "
            f"{fit.status} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
