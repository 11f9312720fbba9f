"""Fit NIST's certified nonlinear regression problems posed as differential equations, and compare the results.

Every folder has `model.ode`, `data.csv` and `certified.json` (estimate and standard error of each parameter, and the
residual sum of squares). A problem of regression can be posed if its curve solves a differential equation.

    python benchmarks/nist.py FOLDER [--only NAME] [--tolerance 1e-11]

Certified standard errors use n - p degrees of freedom for the noise, and so do those computed here: from the Jacobian
of the fitted curve at the estimate.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.loglik import at

_STEPS = 400_000  # of a trajectory whose sensitivities give standard errors
# Terms of a sum whose labels can be exchanged: their amplitudes and rates, in the certified order of rates.
EXCHANGEABLE = {"lanczos3": (("A(0)", "b2"), ("B(0)", "b4"), ("C(0)", "b6"))}


def posed(folder):
    """The problem of a folder with its certified values."""
    model = od.Model.from_file(folder / "model.ode")
    data = od.read_csv(folder / "data.csv")
    certified = json.loads((folder / "certified.json").read_text())
    return od.Problem(model, data), certified


def standard_errors(problem, values, tolerance):
    """Standard errors of all unknowns by name, and the residual sum of squares.

    The Jacobian of the curve is that of the variational equations, which are integrated with the trajectory.
    """
    own, v = at(problem, values | {f"sigma {column}": 1.0 for column in problem.columns})
    solver = BatchLikelihood.of(own, tolerance=tolerance, most=_STEPS)
    solved, e = solver.solve(v[None]), own.data.experiments[0]
    states, maps = solver.linearised(solved, np.zeros(1, int))
    phi, seen = solver.like.unknowns.phi(v)[None], np.isfinite(e.y)
    predicted, slopes = solver.like.observation.linearised(0, states[0], maps[0], phi, e.t)
    r, J = (e.y - predicted[0])[seen], slopes[0][seen]
    initial = [f"{own.model.states[k]}(0)" for k in own.model.free_initial]
    names = [*initial, *(own.parameters[i] for i in own.own_index(0))]
    size = np.linalg.norm(J, axis=0)
    inverse = np.linalg.inv(np.linalg.qr(J / size, mode="r"))
    sd = np.sqrt((r**2).sum() / (len(r) - len(names))) * np.linalg.norm(inverse, axis=1) / size
    unit = [values[name] if own.scale_of(name) == "log" and name in own.free else 1.0 for name in names]
    return dict(zip(names, np.abs(sd * unit), strict=True)), float((r**2).sum())


def unknowns(fit, problem):
    """The estimates of parameters and free initial values by name."""
    found = {name: fit.theta[name] for name in problem.free}
    experiment = fit.experiments[next(iter(fit.experiments))]
    for k in problem.model.free_initial:
        found.setdefault(f"{problem.model.states[k]}(0)", float(experiment.curve.x[0, k]))
    return found


def ordered(name, values):
    """The same with exchangeable terms in the order of their rates."""
    terms = EXCHANGEABLE.get(name, ())
    pairs = sorted(((values[a], values[k]) for a, k in terms), key=lambda pair: pair[1])
    return values | {n: v for term, pair in zip(terms, pairs, strict=True) for n, v in zip(term, pair, strict=True)}


def digits(found, right):
    """Number of digits in which two values agree."""
    if found == right:
        return 15.0
    return float(np.clip(-np.log10(abs(found - right) / abs(right)), 0.0, 15.0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--tolerance", type=float, default=1e-11, help="of the curves behind standard errors")
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
        values = ordered(folder.name, unknowns(fit, problem))
        if not all(np.isfinite(v) for v in values.values()):
            print(f"| {folder.name} | | | | {seconds:.1f} | {fit.status} |", flush=True)
            continue
        # A certified parameter that the equation has as an initial value at another time is not compared.
        pairs = [(n, right[c]) for n, c in zip(certified["unknowns"], right, strict=False) if n in values]
        signed = replace(problem, positive=False)
        errors, rss = standard_errors(signed, values, options.tolerance)
        estimates = min(digits(values[n], own[0]) for n, own in pairs)
        own = min(digits(errors[n], own[1]) for n, own in pairs)
        print(
            f"| {folder.name} | {estimates:.1f} | {own:.1f} | {digits(rss, right['rss']):.1f} | {seconds:.1f} | "
            f"{fit.status} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
