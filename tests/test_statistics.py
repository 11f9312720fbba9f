"""How good the answers are over fresh draws. Slow; none of these seeds was used to choose a default."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import odinfer as od

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
DRAWS, FIRST = 40, 5000
SETTINGS = [("lv", 0, 20), ("lv", 1, 20), ("fhn", 0, 20), ("fhn", 1, 20), ("pt", 0, 15), ("pt", 1, 15)]
AUTHORS = [("lv", 0, 21), ("lv", 1, 21), ("fhn", 0, 21), ("fhn", 1, 21), ("pt", 0, 15), ("pt", 1, 15)]


def benchmark(name):
    """A module of the benchmarks folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows():
    """Results of `draws` draws of a setting, each computed once."""
    accuracy, known = benchmark("accuracy"), {}

    def of(short, level, points):
        key = (short, level, points)
        if key not in known:
            known[key] = [accuracy.one((*key, FIRST + i)) for i in range(DRAWS)]
        return known[key]

    of.authors = accuracy.AUTHORS
    return of


@pytest.mark.parametrize(("short", "level", "points"), SETTINGS)
def test_the_default_is_as_accurate_as_maximum_likelihood_from_the_truth(rows, short, level, points):
    found = rows(short, level, points)
    default, limit = (np.median([r[k] for r in found]) for k in ("default", "limit"))
    assert default <= 1.02 * limit
    worse = [r["seed"] for r in found if r["worse"] > 1e-2]
    assert len(worse) <= 1, worse


@pytest.mark.parametrize(("short", "level", "points"), AUTHORS)
def test_the_odin_stage_alone_is_as_accurate_as_the_authors_program(rows, short, level, points):
    assert np.median([r["odin"] for r in rows(short, level, points)]) <= rows.authors[short, level]


@pytest.mark.parametrize(("short", "level", "points"), SETTINGS)
def test_right_models_are_not_accused(rows, short, level, points):
    assert sum(r["contradicted"] for r in rows(short, level, points)) <= 2


@pytest.mark.parametrize("stage", ["odin", "refined"])
def test_the_error_falls_with_the_number_of_points(stage):
    accuracy, lv = benchmark("accuracy"), od.systems.lotka_volterra
    medians = []
    for n in (10, 30, 90):
        t = np.linspace(0.0, 2.0, n)
        fits = [od.fit(lv.model, lv.sample(0.3, FIRST + i, t)) for i in range(20)]
        medians.append(np.median([accuracy.trmse(lv, lv.t, f.stages[stage].theta) for f in fits]))
    assert medians[0] > 1.2 * medians[1] > 1.2**2 * medians[2]


def test_wrong_equations_of_lotka_volterra_are_found_by_name():
    lv = od.systems.lotka_volterra
    right = ("prey' = a*prey - b*prey*predator", "predator' = -c*predator + d*prey*predator")
    bad = ("prey' = a*prey^2 + b*predator", "predator' = -c*predator")
    for first in (False, True):
        for second in (False, True):
            model = od.Model.from_text("\n".join([(bad if first else right)[0], (bad if second else right)[1]]))
            verdicts = [od.fit(model, lv.sample(0.1, FIRST + i)).verdicts for i in range(DRAWS)]
            for state, is_bad in (("prey", first), ("predator", second)):
                accused = np.mean([v[state] == "contradicts the data" for v in verdicts])
                assert accused >= 0.95 if is_bad else accused <= 0.05, (model.text, state, accused)


def test_bands_of_the_default_fit_cover_the_truth():
    lv = od.systems.lotka_volterra
    t = np.linspace(0.0, 2.0, 9)
    inside = []
    for i in range(200):
        table = od.fit(lv.model, lv.sample(0.1, FIRST + i)).predict(t)
        for k, state in enumerate(lv.model.states):
            x = lv.states(t)[:, k]
            inside.append((table[f"{state}_low"] <= x) & (x <= table[f"{state}_high"]))
    assert 0.90 <= np.mean(inside) <= 0.98


def test_the_estimated_noise_is_unbiased():
    lv = od.systems.lotka_volterra
    variances = [list(od.fit(lv.model, lv.sample(0.1, FIRST + i)).sigma.values()) for i in range(100)]
    assert np.sqrt(np.mean(np.square(variances), 0)) == pytest.approx([0.1, 0.1], rel=0.06)


@pytest.mark.parametrize("setting", benchmark("covered").SETTINGS)
def test_intervals_bands_and_forecasts_cover_the_truth(setting):
    coverage = benchmark("covered")
    rows = [coverage.one(setting, 820_000 + i, start="truth")[0] for i in range(200)]
    assert 0.92 <= np.mean([list(r["theta"].values()) for r in rows]) <= 0.98
    # Bands of neighbouring times err together: their mean over 200 draws scatters by more than a percent.
    assert 0.90 <= np.mean([r["states"] for r in rows]) <= 0.985
    assert 0.90 <= np.mean([r["beyond"] for r in rows]) <= 0.985


@pytest.mark.parametrize("setting", ["lv-high", "sir-high"])
@pytest.mark.parametrize("kind", ["bootstrap", "sample"])
def test_bootstrap_and_posterior_cover_the_truth(setting, kind):
    coverage = benchmark("covered")
    rows = [coverage.one(setting, 840_000 + i, (kind,), "truth")[0] for i in range(100)]
    # Of 100 draws; the tables of docs/uncertainty.md are over 200.
    assert 0.89 <= np.mean([list(r["theta"].values()) for r in rows]) <= 0.995
    assert 0.88 <= np.mean([r["states"] for r in rows]) <= 0.99
    assert 0.88 <= np.mean([r["beyond"] for r in rows]) <= 0.995
