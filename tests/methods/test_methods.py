"""What every method must do, on every kind of problem: the same questions to all that are registered."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odinfer as od
from odinfer import systems
from odinfer.methods import METHODS, method_class
from odinfer.methods.gpr import Gpr
from odinfer.methods.trajectory import Trajectory
from odinfer.methods.two_step import TwoStep
from odinfer.result.store import json_format as store

CLASSES: dict[str, Any] = {cls.name: cls for cls in (Gpr, TwoStep, Trajectory)}
CLASSES |= {name: method_class(name) for name in METHODS}
WITHOUT_PARAMETERS = {"gpr"}  # methods that estimate states alone

LV, FHN, PT = systems.lotka_volterra, systems.fitzhugh_nagumo, systems.protein_transduction
LOGISTIC = od.Model.from_text("n' = r*n*(1 - n/K)", name="logistic")


def noisy(x: np.ndarray, sd: float, seed: int = 0) -> np.ndarray:
    return np.asarray(x + sd * np.random.default_rng(seed).normal(size=x.shape))


def two_experiments() -> od.Problem:
    t = np.linspace(0.0, 2.0, 12)
    parts = {}
    for name, x0 in (("few", (2.0, 1.0)), ("many", (5.0, 3.0))):
        parts[name] = od.Data(t, noisy(od.simulate(LV.model, LV.theta, x0, t), 0.1), states=LV.model.states)
    return od.Problem(LV.model, od.Data.join(parts), positive=True)


def missing_cells() -> od.Problem:
    y = noisy(LV.x, 0.1)
    y[0, 0] = y[3, 1] = y[4, 1] = y[-1, 0] = np.nan
    return od.Problem(LV.model, od.Data(LV.t, y, states=LV.model.states), fixed={"c": 4.0}, bounds={"a": (0.5, 1.9)})


def logistic() -> od.Problem:
    t = np.linspace(0.0, 8.0, 15)
    x = od.simulate(LOGISTIC, {"r": 1.0, "K": 5.0}, [0.5], t)
    return od.Problem(LOGISTIC, od.Data(t, noisy(x, 0.1), states=["n"]), bounds={"r": (0, 10), "K": (0.1, 50)})


CASES = {
    "lotka_volterra": lambda: LV.problem(LV.sample(0.1, 0)),
    "fitzhugh_nagumo": lambda: FHN.problem(FHN.sample(100.0, 0)),
    "protein_transduction": lambda: PT.problem(PT.sample(0.01, 0)),
    "one state": logistic,
    "five points": lambda: LV.problem(LV.sample(0.1, 0, t=np.linspace(0.0, 1.0, 5))),
    "two experiments": two_experiments,
    "missing cells": missing_cells,
}


def quick(name: str) -> Any:
    """A cheap configuration: samplers have one of their own."""
    cls = CLASSES[name]
    return cls.quick() if hasattr(cls, "quick") else cls()


def attempt(name: str, problem: od.Problem, **more: Any) -> od.Fit | None:
    """The fit; none where the method says in one line that the problem is not for it."""
    refusal = ""
    try:
        return od.fit(problem, method=quick(name), seed=1, **more)
    except od.InputError as error:
        refusal = str(error)
    assert problem.model is not LV.model, f"no method refuses this one: {refusal}"
    assert "\n" not in refusal
    assert len(refusal) > 10
    return None


every = pytest.mark.parametrize("name", CLASSES)


@pytest.mark.parametrize("case", CASES)
@every
def test_a_fit_keeps_what_every_method_promises(name: str, case: str, tmp_path: Path) -> None:
    # One test and one fit for all promises: side by side, workers would each fit anew.
    problem = CASES[case]()
    before = [(e.t.copy(), e.y.copy()) for e in problem.data.experiments]
    fit = attempt(name, problem)
    for (t, y), e in zip(before, problem.data.experiments, strict=True):
        np.testing.assert_array_equal(e.t, t)
        np.testing.assert_array_equal(e.y, y)
    if fit is not None:
        names_and_shapes_are_those_of_the_problem(problem, fit)
        it_is_finite_or_the_status_says_why_not(problem, fit)
        parameters_keep_to_their_bounds_and_fixed_values(problem, fit)
        the_method_and_its_options_are_in_it(quick(name), fit)
        saved_it_loads_as_it_was(fit, tmp_path / "fit.json")


def names_and_shapes_are_those_of_the_problem(problem: od.Problem, fit: od.Fit) -> None:
    states, K = problem.model.states, len(problem.model.states)
    assert (fit.state_names, tuple(fit.sigma)) == (states, states)
    assert tuple(fit.theta) == fit.parameter_names == problem.model.parameters
    assert tuple(fit.experiments) == tuple(e.name for e in problem.data.experiments)
    for e, found in zip(problem.data.experiments, fit.experiments.values(), strict=True):
        curve = found.curve
        assert curve.x.shape == curve.slope.shape == curve.sd.shape == (len(curve.t), K)
        assert found.x.shape == e.y.shape
        assert (curve.t[0], curve.t[-1]) == (e.t[0], e.t[-1])
    for stage in fit.stages.values():
        assert tuple(stage.theta) == problem.model.parameters
        assert [x.shape for x in stage.x] == [e.y.shape for e in problem.data.experiments]
    assert set(fit.samples) <= set(fit.parameter_names)
    assert all(draws.ndim == 2 for draws in fit.samples.values())


def it_is_finite_or_the_status_says_why_not(problem: od.Problem, fit: od.Fit) -> None:
    assert len(fit.status) > 5
    assert "\n" not in fit.status
    assert fit.summary()
    if not fit.converged:
        assert fit.status != "converged"
        return
    free = [fit.theta[p] for p in problem.free]
    assert np.isnan(free).all() if fit.method in WITHOUT_PARAMETERS else np.isfinite(free).all()
    assert all(0 <= s < np.inf for s in fit.sigma.values())
    for e in fit.experiments.values():
        assert np.isfinite([e.curve.x, e.curve.slope, e.curve.sd]).all()
        assert (e.curve.sd >= 0).all()


def parameters_keep_to_their_bounds_and_fixed_values(problem: od.Problem, fit: od.Fit) -> None:
    for theta in (fit.theta, *(s.theta for s in fit.stages.values())):
        assert all(theta[p] == value for p, value in problem.fixed.items())
        for p in problem.free:
            low, high = problem.limits(p)
            assert np.isnan(theta[p]) or low <= theta[p] <= high
    for p, draws in fit.samples.items():
        low, high = problem.limits(p)
        assert ((draws >= low) & (draws <= high)).all()


def the_method_and_its_options_are_in_it(method: Any, fit: od.Fit) -> None:
    assert (fit.method, fit.seed) == (method.name, 1)
    options = {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(method).items()}
    assert fit.options == options


def saved_it_loads_as_it_was(fit: od.Fit, path: Path) -> None:
    fit.save(path)
    again = od.load(path)
    assert store.dumps(again) == store.dumps(fit)
    np.testing.assert_array_equal([*again.theta.values()], [*fit.theta.values()])
    for a, b in zip(again.experiments.values(), fit.experiments.values(), strict=True):
        np.testing.assert_array_equal(a.curve.x, b.curve.x)


@every
def test_the_same_seed_gives_the_same_answer_and_progress_ends_at_one(name: str) -> None:
    problem = CASES["five points"]()
    shares: list[float] = []
    first = attempt(name, problem)
    second = attempt(name, problem, progress=lambda what, share: shares.append(share))
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal([*second.theta.values()], [*first.theta.values()])
    for a, b in zip(first.experiments.values(), second.experiments.values(), strict=True):
        np.testing.assert_array_equal([a.curve.x, a.curve.sd], [b.curve.x, b.curve.sd])
    assert second.status == first.status
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@every
def test_a_method_is_a_frozen_dataclass_that_knows_its_name(name: str) -> None:
    method = quick(name)
    assert method.name == name
    for field in dataclasses.fields(method):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, field.name, None)


@every
def test_the_paper_preset_takes_a_system_or_its_name_and_refuses_others(name: str) -> None:
    cls = CLASSES[name]
    assert isinstance(cls.paper(LV), cls)
    assert cls.paper("lotka_volterra") == cls.paper(LV)
    with pytest.raises(od.InputError, match="lotka_volterra"):
        cls.paper("lotka_volterr")


@pytest.mark.parametrize("name", [n for n in ("gpr", "two-step", "trajectory") if n in METHODS])
def test_the_command_runs_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "m.ode").write_text("x' = -k*x\n")
    t = np.linspace(0.0, 4.0, 12)
    x = noisy(3.0 * np.exp(-0.7 * t), 0.05)
    rows = "".join(f"{a},{b}\n" for a, b in zip(t.tolist(), x.tolist(), strict=True))
    (tmp_path / "d.csv").write_text("time,x\n" + rows)
    arguments = ["fit", "m.ode", "d.csv", "--method", name, "-o", "out"]
    done = subprocess.run(
        [sys.executable, "-c", "from odinfer.command.cli import main; main()", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert od.load(tmp_path / "out" / "fit.json").method == name


@pytest.mark.parametrize("name", ["fgpgm", "agm"])
def test_arviz_reads_the_draws_of_a_sampler(name: str, decay: od.Model, decay_data: od.Data, tmp_path: Path) -> None:
    import arviz

    fit = od.fit(decay, decay_data, method=quick(name))
    fit.save(tmp_path / "fit.nc")
    read = arviz.from_netcdf(tmp_path / "fit.nc")
    np.testing.assert_array_equal(read.posterior["k"], fit.samples["k"])
    assert read.posterior["k"].dims == ("chain", "draw")
    np.testing.assert_array_equal(read.observed_data["y"], next(iter(fit.experiments.values())).y)
    assert arviz.summary(read)["mean"]["k"] == pytest.approx(fit.theta["k"], rel=0.05)
