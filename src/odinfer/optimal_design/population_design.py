"""Choose the sampling times of all subjects of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from odinfer.checks import checked_choice
from odinfer.errors import InputError, listed, nearest
from odinfer.model.model import Model
from odinfer.optimal_design.criteria import (
    NAMES,
    UNDETERMINED,
    AOptimality,
    DOptimality,
    efficiency,
    relative_errors,
)
from odinfer.optimal_design.exchange import Exchange, Rules, most_samples
from odinfer.optimal_design.information import Sample
from odinfer.optimal_design.population import PopulationInformation, PopulationObjective
from odinfer.optimal_design.result import Design, Predictions, curve_frame
from odinfer.optimal_design.schedule import GRID, SPACED, best_by_size, candidate_times, equally_spaced_value, in_order

_FINER = (0.1, 0.01)  # of a candidate step: searches between candidate times, one after the other


def population_design(
    model: Model, values: Mapping[str, float], add: int, times: Any, apart: float | None, subjects: int, seed: int,
    targets: tuple[str, ...], criterion: str, covariates: Mapping[str, float | str] | None,
) -> Design:  # fmt: skip
    """The times at which every subject of a study is best observed; see `design`."""
    if subjects < 2:
        raise InputError("a design for a population needs its number of subjects, for example subjects=32")
    if times is None:
        raise InputError("a design without data needs times, for example times=(0, 24) (--times 0:24)")
    grid = candidate_times(times, apart)
    information = PopulationInformation.of(model, values, grid, subjects, covariates)
    certain = (
        information.variance + (information.slopes**2).sum(1)
    ) <= 0.0  # such as a proportional error of nothing at time 0
    if certain.any():
        grid = grid[~certain]
        information = PopulationInformation.of(model, values, grid, subjects, covariates)
    for name in targets:
        if name not in information.names:
            raise InputError(f"for: the population has no '{name}'{nearest(name, information.names)}")
    checked_choice("criterion", criterion, NAMES)
    rows = np.eye(len(information.names))
    of_targets = AOptimality(rows[[information.names.index(n) for n in targets]] if targets else rows)
    wanted = DOptimality() if criterion == "D" and not targets else of_targets
    column = next((c.name for c in model.declarations.columns), model.states[0])
    samples = tuple(Sample("every subject", float(t), (column,)) for t in grid)
    rules = Rules(samples, float(grid[-1] - grid[0]) / (SPACED * add) if apart is None else apart)
    value = PopulationObjective(information, wanted)
    if (most := most_samples(rules)) < add:
        raise InputError(f"{add} samples at least {rules.apart:g} apart do not fit; at most {most} do")
    path = best_by_size(Exchange(rules, value), add, np.random.default_rng(seed))
    spaced, (chosen, best) = equally_spaced_value(rules, add, value), path[-1]
    mean = [float(relative_errors(information(np.array([c]))[0]).clip(max=UNDETERMINED).mean()) for c, _ in path]
    curve = curve_frame(range(1, add + 1), mean, [efficiency(v, best) for _, v in path])
    size = np.sqrt(information.variance + (information.slopes**2).sum(1))
    predictions = Predictions(
        ("every subject",), (column,), information.names, grid, information.mean[None, :, None],
        np.abs(information.mean_slopes / size[:, None])[None],
    )  # fmt: skip
    for share in _FINER if np.size(times) == 2 else ():
        near = share * (grid[-1] - grid[0]) / GRID * np.linspace(-10.0, 10.0, 21)
        own = [samples[c].time for c in chosen]
        t = np.unique(np.clip(np.add.outer(own, near), grid[0], grid[-1]).ravel())
        information, samples = (
            PopulationInformation.of(model, values, t, subjects, covariates),
            tuple(replace(samples[0], time=float(time)) for time in t),
        )
        rules, value = Rules(samples, rules.apart), PopulationObjective(information, wanted)
        start = tuple(int(np.abs(t - time).argmin()) for time in own)
        chosen, best = Exchange(rules, value).improved(start)
    after = relative_errors(information(np.array([chosen]))[0])
    words = f"for {listed(targets)}" if targets else f"{criterion}-optimal"
    return Design(
        model.name, f"{words}, {subjects} subjects", in_order(rules, chosen), information.names, information.values,
        np.full(len(after), np.inf), after, efficiency(best, spaced), curve, predictions,
    )  # fmt: skip
