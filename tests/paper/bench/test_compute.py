"""From a run to its record: errors are measured against the truth, and whatever goes wrong is a status."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.errors import InputError
from odinfer.paper.bench import compute as computing
from odinfer.paper.bench.compute import QUANTILES, compute, from_json, method_of, plot_times, problem_of, to_json
from odinfer.paper.bench.runs import LIMIT, Run
from odinfer.paper.systems import system_of
from odinfer.parallel.resume import failure_outcome
from odinfer.parallel.store import canonical

DECAY = {
    "name": "decay", "equations": "x' = -k*x", "theta": {"k": 0.7}, "x0": {"x": 3.0}, "snr": False,
    "times": np.linspace(0.0, 4.0, 12).tolist(),
}  # fmt: skip
RUN = Run(DECAY, 0.05, None, "odin", "default", {}, 5)
GROWTH = {"name": "growth", "equations": "x' = k"}


@pytest.fixture(scope="module")
def record():
    return compute(RUN)


def test_a_record_has_the_estimate_its_errors_and_what_they_cost(record):
    outcome, truth = record["outcome"], system_of(canonical(DECAY))
    assert (outcome["status"], outcome["converged"]) == ("converged", True)
    k = outcome["theta"]["k"]
    assert k == pytest.approx(0.7, rel=0.1)
    t = truth.t
    assert outcome["trmse"] == pytest.approx(np.sqrt(np.mean(9 * (np.exp(-k * t) - np.exp(-0.7 * t)) ** 2)), rel=1e-4)
    assert outcome["trmse_paper"] == pytest.approx(outcome["trmse"] / np.sqrt(12))
    assert outcome["trmses_paper"] == {"x": pytest.approx(outcome["trmse_paper"])}
    assert outcome["state_rmses"] == {"x": pytest.approx(outcome["state_rmse"])}
    assert 0 < outcome["state_rmse"] < 0.05
    assert len(outcome["trajectory"]["x"]) == len(plot_times(truth))
    assert set(outcome["stages"]) == {"odin", "refined"}
    assert record["timing"]["seconds"] > 0


def test_the_same_run_gives_the_same_record_and_the_first_of_its_kind_is_marked(record, monkeypatch):
    monkeypatch.setattr(computing, "_compiled_kinds", set())
    one, two, other = compute(RUN), compute(RUN), compute(replace(RUN, seed=6))
    assert one["outcome"] == two["outcome"] == record["outcome"] != other["outcome"]
    assert [r["timing"]["first"] for r in (one, two, other)] == [True, False, False]


def test_a_record_is_plain_json(record):
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_candidates_parameters_are_not_held_against_the_truth():
    outcome = compute(replace(RUN, candidate=GROWTH))["outcome"]
    assert outcome["verdicts"] == {"x": "contradicts the data"}
    assert "trmse" not in outcome
    assert outcome["state_rmse"] < 0.4


def test_the_limit_is_not_worse_than_any_fit(record):
    limit = compute(replace(RUN, method=LIMIT))["outcome"]
    assert limit["converged"]
    assert limit["objective"] <= record["outcome"]["stages"]["refined"]["objective"] + 1e-6
    assert limit["theta"]["k"] == pytest.approx(record["outcome"]["theta"]["k"], rel=1e-3)


def test_draws_of_a_sampler_are_kept_as_quantiles_and_moments():
    few = {"sampler": "metropolis", "draws": 300, "burn_in": 300, "chains": 2}
    outcome = compute(replace(RUN, method="fgpgm", options=few))["outcome"]
    q = np.array(outcome["quantiles"]["k"])
    assert q.shape == QUANTILES.shape
    assert (np.diff(q) >= 0).all()
    moments = outcome["moments"]["k"]
    assert q[0] <= moments["mean"] <= q[-1]
    assert moments["sd"] > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"options": {"kernel": "rbff"}}, "failed: unknown kernel"),
        ({"method": "newton"}, "failed: unknown method 'newton'"),
        ({"candidate": {"name": "odd", "equations": "x' = k*log(x - 100)"}}, "failed: "),
    ],
)
def test_whatever_the_user_got_wrong_is_a_status_in_one_line(change, words):
    record = compute(replace(RUN, **change))
    assert record["outcome"] == failure_outcome(record["outcome"]["status"])
    assert record["outcome"]["status"].startswith(words)
    assert "\n" not in record["outcome"]["status"]
    assert record["timing"]["seconds"] >= 0


def test_an_unexpected_exception_is_a_status_with_its_name(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("of\n all things")

    monkeypatch.setattr(computing, "_fit", broken)
    assert compute(RUN)["outcome"] == failure_outcome("failed: ZeroDivisionError: of all things")


def test_a_trajectory_that_blows_up_is_an_infinite_error():
    explosive = DECAY | {"equations": "x' = k*x^2", "theta": {"k": -0.7}}
    truth = system_of(canonical(explosive))
    found = computing._trajectory_errors({"k": 2.0}, truth, keep=True)
    assert (found["trmse"], found["trmse_paper"]) == (math.inf, math.inf)
    assert to_json(found)["trmse"] == "inf"
    assert computing._trajectory_errors({"k": math.nan}, truth) == {}


# --- problems and methods


def test_candidates_have_the_equations_of_the_paper_and_right_ones_are_the_truth(paper):
    cells = {c.candidate.name: c for c in paper.cells if c.candidate and c.method.name == "odin"}
    truth = system_of(canonical(cells["M11"].case.spec))
    x, theta = np.array([3.0, 2.0]), np.array([2.0, 1.5, 4.0, 0.5])
    wrong = {"prey": 2.0 * 9.0 + 1.5 * 2.0, "predator": -4.0 * 2.0}
    for cell in cells.values():
        model = problem_of(cell.run(0), truth).model
        f = np.asarray(model.f(0.0, x, theta[: len(model.parameters)], np.empty(0)))
        right = dict(zip(truth.model.states, np.asarray(truth.model.f(0.0, x, theta, np.empty(0))), strict=True))
        for k, state in enumerate(model.states):
            assert f[k] == pytest.approx(wrong[state] if state in cell.candidate.wrong else right[state])


def test_the_authors_bounds_belong_to_the_authors_settings():
    lv = {"name": "lotka_volterra"}
    truth = system_of(canonical(lv))
    bounds = [problem_of(replace(RUN, system=lv, preset=preset), truth).limits("a") for preset in ("paper", "default")]
    assert bounds == [(0.0, 100.0), (0.0, np.inf)]


def test_the_data_of_a_run_are_those_of_its_seed():
    truth = system_of(canonical(DECAY))
    y = problem_of(RUN, truth).data.y
    np.testing.assert_array_equal(y, truth.sample(0.05, 5).y)
    assert (y != problem_of(replace(RUN, seed=6), truth).data.y).any()


def test_options_come_on_top_of_the_preset_and_lists_are_pairs():
    truth = system_of(canonical({"name": "lotka_volterra"}))
    options = {"gamma_bounds": [1e-5, 1.0]}
    assert method_of(replace(RUN, options=options), truth) == od.Odin(gamma_bounds=(1e-5, 1.0))
    assert method_of(replace(RUN, preset="paper", options={"grid": 2}), truth) == od.Odin.paper(truth, grid=2)
    with pytest.raises(InputError, match="unknown method"):
        method_of(replace(RUN, method="odn"), truth)


def test_systems_of_the_package_and_of_ones_own_are_made_from_their_description():
    assert system_of(canonical({"name": "lotka_volterra"})) is od.systems.lotka_volterra
    assert len(system_of(canonical({"name": "lorenz96_7"})).model.states) == 7
    mine = system_of(canonical(DECAY))
    assert (mine.theta, mine.x0.tolist(), mine.snr) == ({"k": 0.7}, [3.0], False)
    assert system_of(canonical(DECAY)) is mine


# --- numbers


@settings(max_examples=25, deadline=None)
@given(st.floats())
def test_a_number_comes_back_from_a_record(value):
    back = from_json(json.loads(json.dumps(to_json(value), allow_nan=False)))
    assert back == value or (math.isnan(back) and math.isnan(value))


def test_what_is_nested_becomes_plain_throughout():
    value = {"a": (np.float64(1.5), math.nan), 2: [np.int64(3), -math.inf, {"b": None}], "c": np.bool_(True)}
    assert to_json(value) == {
        "a": [1.5, None], "2": [3, "-inf", {"b": None}], "c": True,
    }  # fmt: skip


@settings(max_examples=10, deadline=None)
@given(shift=st.floats(-100, 100), size=st.floats(1e-3, 1e3))
def test_moments_of_a_gaussian_have_neither_skewness_nor_excess(shift, size):
    draws = shift + size * np.random.default_rng(0).normal(size=(4, 5000))
    m = computing._moments(draws)
    assert m["mean"] == pytest.approx(shift, abs=0.05 * size)
    assert m["sd"] == pytest.approx(size, rel=0.05)
    assert abs(m["skewness"]) < 0.1
    assert abs(m["kurtosis"]) < 0.2


def test_moments_of_what_is_skewed_say_so():
    m = computing._moments(np.random.default_rng(0).exponential(size=(4, 5000)))
    assert m["skewness"] == pytest.approx(2.0, rel=0.2)
    assert m["kurtosis"] == pytest.approx(6.0, rel=0.5)
    assert computing._moments(np.ones((2, 3)))["sd"] == 0.0
