"""`od.design`: choose the samples to take next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.checks import checked_integer, checked_number, checked_positive
from odinfer.data.dose import Dose, checked_doses
from odinfer.errors import InputError, listed, nearest
from odinfer.model.model import Model
from odinfer.optimal_design.basis import Basis
from odinfer.optimal_design.confirmation import confirmed
from odinfer.optimal_design.criteria import UNDETERMINED, combined_errors, efficiency, relative_errors
from odinfer.optimal_design.discrimination import Discrimination
from odinfer.optimal_design.exchange import Exchange, Rules, most_samples
from odinfer.optimal_design.information import Candidates, candidates, samples_at
from odinfer.optimal_design.objective import Objective, criterion_for, forecasts
from odinfer.optimal_design.population_design import population_design
from odinfer.optimal_design.result import Design, Plan, Predictions, curve_frame
from odinfer.optimal_design.schedule import SPACED, best_by_size, candidate_times, equally_spaced_value, in_order
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.result.fit import Fit

Array = NDArray[np.float64]

_LONGER = 1.5  # times the time span of the data: where candidate times end if none are given
MOST_DRAWS = 200  # parameter values over which a design is averaged
MOST_SAMPLES = 1000  # of a design
MOST_CONFIRMED = 10_000  # simulated data sets


@dataclass(frozen=True)
class Request:
    """A checked request for a design; see `design`."""

    add: int
    times: Array
    apart: float
    targets: tuple[str, ...]
    criterion: str
    observe: tuple[str, ...]
    experiments: tuple[str, ...]
    costs: Mapping[str, float]
    budget: float
    seed: int


def design(
    what: Fit | Model,
    *,
    add: int = 4,
    times: ArrayLike | tuple[float, float] | None = None,
    apart: float | None = None,
    for_: str | Sequence[str] = (),
    criterion: str = "D",
    observe: str | Sequence[str] = (),
    experiments: str | Sequence[str] = (),
    doses: Sequence[Sequence[Any]] = (),
    costs: Mapping[str, float] | None = None,
    budget: float | None = None,
    between: Fit | Model | None = None,
    draws: int = 0,
    spread: float | None = None,
    theta: Mapping[str, float] | None = None,
    x0: Mapping[str, float] | None = None,
    sigma: Mapping[str, float] | None = None,
    inputs: Mapping[str, Any] | None = None,
    subjects: int = 0,
    covariates: Mapping[str, float | str] | None = None,
    confirm: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Design:
    """Find the samples that determine the parameters best, or that tell two models apart.

    The Fisher information of existing data and of candidate samples is added up, and an exchange algorithm finds the
    samples that make a criterion smallest.

    Args:
        what: a fit, whose data and estimates count; or a model with `theta`, `x0` and `times`.
        add: how many samples; with a budget, at most.
        times: candidate times, or a pair (first, last); by default up to 1.5 times the time span of the data.
        apart: shortest time between two samples; 0 allows repeated samples. By default the time span by 4 `add`.
        for_: parameters ("CL") or forecasts ("x(48)") that matter; all parameters if not given.
        criterion: "D" (volume of the confidence ellipsoid), "A" (mean relative variance), "c" (of what `for_` names).
        observe: columns that are measured; all by default.
        experiments: those that samples are added to; all by default.
        doses: doses to choose between, each a list of Dose or (time, amount, state), in place of those of the data.
        costs: column → cost of measuring it, "sample" → cost of a sample; columns can then be measured one by one.
        budget: of all costs.
        between: a second model, or its fit: samples are chosen to tell both apart.
        draws: average over so many draws of the parameters, from the covariance of the fit or from `spread`.
        spread: relative standard deviation of the parameters of these draws; that of the fit if not given.
        theta, x0: values of parameters and initial states, of a model without data.
        sigma: column → standard deviation of the noise, of a model without data whose text does not say it.
        inputs: known inputs of a model without data: name → (times, values).
        subjects: of a model with random effects: how many there are, all with the same samples. `theta` has the
            parameters of the population.
        covariates: of all these subjects.
        confirm: simulate and fit so many data sets, and put simulated standard errors beside the expected ones.
        seed: random seed.
        progress: told what is being done.

    Raises:
        InputError: a request that no design can fulfil.

    Example:
        >>> import odinfer as od
        >>> model = od.Model.from_text("x' = -k*x; y ~ normal(x, 0.1)")
        >>> best = od.design(model, theta={"k": 0.5}, x0={"x": 5}, times=(0, 10), add=2)
        >>> best.times.tolist()
        [0.0, 2.0]
    """
    progress = progress or no_progress
    if isinstance(what, Model) and what.declarations.effects:
        unused = {
            "observe": observe, "experiments": experiments, "doses": doses, "costs": costs, "budget": budget, "x0": x0,
            "between": between, "draws": draws, "sigma": sigma, "inputs": inputs, "confirm": confirm,
        }  # fmt: skip
        if given := [name for name, value in unused.items() if value]:
            raise InputError(f"a design for a population takes no {listed(given)}; put what is known into the model")
        limits = _add(add), times, apart, checked_integer("subjects", subjects, 0), checked_integer("seed", seed, 0)
        return population_design(what, theta or {}, *limits, names_of(for_), criterion, covariates)
    if subjects or covariates:
        raise InputError("subjects and covariates are for models with random effects (`by subject`)")
    basis = _basis(what, theta, x0, sigma, inputs, times, observe)
    request = _request(
        basis, _add(add), times, apart, for_, criterion, observe, experiments, costs, budget,
        checked_integer("seed", seed, 0),
    )  # fmt: skip
    rng = np.random.default_rng(request.seed)
    samples = samples_at(
        basis.problem, request.times, request.experiments, request.observe, separately=bool(request.costs),
        cost=float(request.costs.get("sample", 0.0 if request.costs else 1.0)), costs=dict(request.costs),
    )  # fmt: skip
    rules = Rules(samples, request.apart, request.budget)
    if (most := most_samples(rules)) < request.add and not np.isfinite(request.budget):
        raise InputError(
            f"{request.add} samples at least {request.apart:g} apart do not fit between {request.times[0]:g} and "
            f"{request.times[-1]:g}; at most {most} do: give fewer, a longer time or a shorter distance"
        )
    if between is not None:
        rival = _basis(between, theta, x0, sigma, inputs, times, observe, basis)
        return _design_discrimination(basis, rival, rules, request, rng, progress)
    points = _points(basis, checked_integer("draws", draws, 0, MOST_DRAWS), spread, rng)
    best = _best_over_doses(basis, rules, request, points, [checked_doses(plan, "doses: ") for plan in doses], progress)
    if confirm:
        if doses:
            raise InputError("confirm: a design that chooses doses cannot be simulated; choose the doses first")
        count, after = checked_integer("confirm", confirm, 3, MOST_CONFIRMED), best.after[: len(basis.names)]
        best = replace(best, confirmation=confirmed(basis, best.samples, after, count, rng, progress))
    return best


def _best_over_doses(
    basis: Basis,
    rules: Rules,
    request: Request,
    points: Array | None,
    plans: Sequence[tuple[Dose, ...]],
    progress: Progress,
) -> Design:
    """The best samples with the best of some plans of doses, or with the doses that are given."""
    found = []
    for i, plan in enumerate(plans or [None]):
        progress("finding the best samples", i / max(len(plans), 1))
        found.append(_informative(basis, rules, request, points, plan, np.random.default_rng(request.seed)))
    best, value = min(found, key=lambda pair: pair[1])
    if len(plans) > 1:
        pairs = zip(plans, found, strict=True)
        best = replace(best, plans=tuple(Plan(_doses_text(p), efficiency(v, value)) for p, (_, v) in pairs if p))
    return best


def _add(add: int) -> int:
    return checked_integer("add", add, 1, MOST_SAMPLES)


def _basis(
    what: Fit | Model,
    theta: Any,
    x0: Any,
    sigma: Any,
    inputs: Any,
    times: Any,
    observe: Any,
    other: Basis | None = None,
) -> Basis:
    """The point at which designs are judged."""
    if isinstance(what, Fit):
        if theta or x0 or sigma:
            raise InputError("theta, x0 and sigma are for a model without data; a fit has its own")
        return Basis.of_fit(what)
    if not isinstance(what, Model):
        raise InputError(f"design takes a fit or a model, not {type(what).__name__}")
    if times is None:
        raise InputError("a design without data needs times, for example times=(0, 24) (--times 0:24)")
    grid = candidate_times(times)
    if other is None:
        return Basis.of_values(what, theta or {}, x0 or {}, grid, sigma, names_of(observe), inputs)
    return fitted_to_predictions(what, other, grid)


def fitted_to_predictions(model: Model, other: Basis, times: Array) -> Basis:
    """A second model at the parameters with which it comes closest to the predictions of the first."""
    from odinfer.methods import fit
    from odinfer.methods.trajectory import Trajectory

    p = other.problem
    found = candidates(other, samples_at(p, times, [e.name for e in p.data.experiments], p.columns))
    y = found.predicted[0].reshape(len(p.data.experiments), len(times), -1)
    data = p.data.from_experiments(
        p.columns,
        [replace(e, t=times, y=own, sd=None, limit=None) for e, own in zip(p.data.experiments, y, strict=True)],
    )
    scale = np.abs(y).max((0, 1)) * 0.05
    sigma = {c: float(s or 1.0) for c, s in zip(p.columns, scale, strict=True)}
    columns = {c.name for c in model.declarations.columns}
    problem = Problem(model, data, sigma={c: s for c, s in sigma.items() if c not in columns})
    nearest_fit = fit(problem, method=Trajectory())
    maximum = nearest_fit.maximum()
    P = len(maximum.v)
    return Basis(nearest_fit.problem, maximum.v, other.noise, np.zeros((P, P)), (0,) * len(p.data.experiments))


def _request(
    basis: Basis, add: int, times: Any, apart: float | None, for_: Any, criterion: str, observe: Any, experiments: Any,
    costs: Any, budget: float | None, seed: int,
) -> Request:  # fmt: skip
    p = basis.problem
    first = max(p.condition(e).start for e in range(len(p.data.experiments)))
    last = max(e.t[-1] for e in p.data.experiments)
    grid = candidate_times((first, first + _LONGER * (last - first)) if times is None else times, apart)
    earliest = grid[0]
    if np.size(times) == 2:
        grid = grid[grid >= first]  # of a range, what is possible
    if len(grid) < 2 or grid[0] < first:
        raise InputError(f"times: the experiments begin at {first:g}; samples cannot be taken at {earliest:g}")
    columns, known = names_of(observe) or p.columns, tuple(e.name for e in p.data.experiments)
    for what, names, every in (("observe", columns, p.columns), ("experiments", names_of(experiments), known)):
        for name in names:
            if name not in every:
                raise InputError(f"{what}: there is no '{name}'{nearest(name, every)}")
    for name, cost in (costs or {}).items():
        if name not in (*p.columns, "sample"):
            raise InputError(f"costs: there is no column '{name}'{nearest(name, (*p.columns, 'sample'))}")
        if checked_number(f"the cost of '{name}'", cost) < 0:
            raise InputError(f"the cost of '{name}' must not be negative")
    span = float(grid[-1] - grid[0])
    distance = span / (SPACED * add) if apart is None else checked_number("apart", apart)
    if distance < 0:
        raise InputError(f"apart must not be negative, not {distance:g}")
    total = np.inf if budget is None else checked_positive("budget", budget)
    return Request(
        add, grid, distance, names_of(for_), criterion, tuple(columns), names_of(experiments) or known, costs or {},
        total, seed,
    )  # fmt: skip


def names_of(given: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(n.strip() for n in given.split(",") if n.strip()) if isinstance(given, str) else tuple(given)


def _points(basis: Basis, draws: int, spread: float | None, rng: np.random.Generator) -> Array | None:
    """Unknowns (S, P) over which a design is averaged; None for the estimate alone."""
    if not draws:
        if spread is not None:
            raise InputError("spread is that of draws of the parameters; say how many: draws=50 (--draws 50)")
        return None
    z = rng.normal(size=(draws, len(basis.v)))
    if spread is not None:
        return np.asarray(basis.v + checked_positive("spread", spread) * basis.scale * z)
    D = basis.scale
    errors = relative_errors(basis.information * np.outer(D, D))
    if errors.max() > UNDETERMINED:
        raise InputError("the parameters vary without limit around this estimate; give spread=0.3, or draws=0")
    C = np.linalg.inv(basis.information)
    return np.asarray(basis.v + z @ np.linalg.cholesky(0.5 * (C + C.T)).T)


def _informative(
    basis: Basis, rules: Rules, request: Request, points: Array | None, doses: tuple[Dose, ...] | None,
    rng: np.random.Generator,
) -> tuple[Design, float]:  # fmt: skip
    """The best samples for the parameters, and the value of the criterion."""
    found = candidates(basis, rules.samples, points, doses)
    objective = Objective.of(basis, found, criterion_for(basis, request.criterion, request.targets))
    notes = _describe_undetermined(basis, objective, request)
    path = best_by_size(Exchange(rules, objective), request.add, rng)
    if not path:
        raise InputError(f"budget: no sample costs as little as {request.budget:g}")
    chosen, value = path[-1] if np.isinf(request.budget) else min(path, key=lambda pair: pair[1])
    names, values, gradients = forecasts(basis, request.targets)
    totals = [objective.total(c) for c in ((), chosen)]
    before, after = (np.append(relative_errors(H).mean(0), combined_errors(H, gradients).mean(0)) for H in totals)
    spaced = equally_spaced_value(rules, len(chosen), objective)
    mean = [float(relative_errors(objective.total(c)).mean(0).clip(max=UNDETERMINED).mean()) for c, _ in path]
    curve = curve_frame(range(1, len(path) + 1), mean, [efficiency(v, value) for _, v in path])
    words = {"D": "D-optimal", "A": "A-optimal", "c": "c-optimal"}[request.criterion]
    if request.targets:
        words = f"for {listed(request.targets)}"
    if points is not None:
        words += f", averaged over {len(points)} draws"
    result = Design(
        basis.problem.model.name, words, in_order(rules, chosen), (*basis.names, *names),
        np.append(basis.values, values), before, after, efficiency(value, spaced), curve,
        _predictions(basis, request, doses), notes=notes,
    )  # fmt: skip
    return result, value


def _describe_undetermined(basis: Basis, objective: Objective, request: Request) -> tuple[str, ...]:
    """What to say of parameters that all candidate samples together do not determine."""
    everything = relative_errors(objective.total(range(objective.information.shape[1]))).mean(0)
    names = [n for n, e in zip(basis.names, everything, strict=True) if not e <= UNDETERMINED]
    remedy = f"observe another column, or fix {'one of them' if len(names) > 1 else 'it'}"
    if any(n in request.targets for n in names):
        raise InputError(f"no sample of {listed(request.observe)} at these times determines {listed(names)}; {remedy}")
    return (f"no sample at these times determines {listed(names)}; {remedy}",) if names else ()


def _design_discrimination(
    basis: Basis, rival: Basis, rules: Rules, request: Request, rng: np.random.Generator, progress: Progress
) -> Design:
    """The samples that tell two models apart."""
    progress("finding the best samples", 0.2)
    if basis.problem.columns != rival.problem.columns:
        raise InputError(
            f"two models are told apart by columns that both predict, but they have {listed(basis.problem.columns)} "
            f"and {listed(rival.problem.columns)}"
        )
    one, two = (candidates(own, rules.samples) for own in (basis, rival))
    one, two = (
        candidates(own, rules.samples, observed=other.predicted[0]) for own, other in ((basis, two), (rival, one))
    )
    value = Discrimination.of(basis, rival, one, two)
    path = best_by_size(Exchange(rules, value), request.add, rng)
    chosen, lowest = path[-1]
    spaced = equally_spaced_value(rules, len(chosen), value)
    objective = Objective.of(basis, one, criterion_for(basis, "D", ()))
    before, after = (relative_errors(objective.total(c)).mean(0) for c in ((), chosen))
    curve = curve_frame(range(1, len(path) + 1), [np.nan] * len(path), [v / lowest if lowest else 1.0 for _, v in path])
    curve["difference"] = [-v for _, v in path]
    predictions = _predictions(basis, request, None)
    other = _predictions(rival, request, None)
    return Design(
        f"{basis.problem.model.name} against {rival.problem.model.name}", "to tell two models apart",
        in_order(rules, chosen), basis.names, basis.values, before, after, lowest / spaced if spaced else np.inf,
        curve, replace(predictions, rival=other.predicted), difference=-lowest,
    )  # fmt: skip


def _predictions(basis: Basis, request: Request, doses: tuple[Dose, ...] | None) -> Predictions:
    """Predictions and sensitivities over the candidate times."""
    samples = samples_at(basis.problem, request.times, request.experiments, request.observe)
    found: Candidates = candidates(basis, samples, None, doses)
    shape = (len(request.experiments), len(request.times))
    keep = [basis.problem.columns.index(c) for c in request.observe]
    sensitivity = np.sqrt((found.rows[0] ** 2).sum(1)) * basis.scale
    return Predictions(
        request.experiments, request.observe, basis.names, request.times,
        found.predicted[0].reshape(*shape, -1)[..., keep],
        sensitivity.reshape(*shape, -1),
    )  # fmt: skip


def _doses_text(doses: Sequence[Dose]) -> str:
    return ", ".join(f"{d.amount:g} at {d.time:g}" + (f" into {d.state}" if d.state else "") for d in doses) or "none"
