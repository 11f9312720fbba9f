"""fit_each: every experiment fitted on its own, resumed, and gathered in one mapping."""

import json
import os
import threading
import time
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

import odinfer as od
from apps.each.conftest import FAST, RISING, SHORT, T
from odinfer.apps.each.entry import fit_each
from odinfer.apps.each.fits import Failure, Fits
from odinfer.apps.each.job import FitOptions, compute, is_valid_record, job, row_of
from odinfer.apps.each.row import WHOLE_MODEL, Row
from odinfer.parallel.resume import TIMED_OUT, failure_outcome
from odinfer.parallel.store import Store
from odinfer.result.formats.json_values import decode_record, encode_record
from odinfer.version import __version__
from stores import writes


def records(folder) -> int:
    return writes(folder)


def test_each_fit_is_that_of_its_experiment_alone(decay, many, fits):
    for name in ("s0", "s7"):
        alone = od.fit(decay, many.only(name))
        assert fits[name].theta == alone.theta
        assert fits[name].status == alone.status
        assert fits[name].interval() == alone.interval()


def test_a_series_that_cannot_be_fitted_is_a_failure_with_a_status_and_not_the_end_of_the_others(fits, many):
    assert list(fits) == [e.name for e in many.experiments]
    assert isinstance(fits[SHORT], Failure)
    assert fits[SHORT].status == "failed: state 'x' has too few observations: 3; 4 are needed"
    assert fits.failed == {SHORT: fits[SHORT].status}


def test_if_no_series_can_be_posed_the_reason_is_raised(decay, many):
    with pytest.raises(od.InputError, match="too few observations"):
        fit_each(decay, many.only(SHORT))
    with pytest.raises(od.InputError, match="is no state and no definition of the model"):
        fit_each(od.Model.from_text("y' = -k*y"), many)


@pytest.mark.parametrize("given", [(1,), (None,)])
def test_what_is_no_problem_is_refused(given):
    with pytest.raises(od.InputError, match="fit_each takes a Problem or a Model"):
        fit_each(*given)


def test_data_belong_to_a_model_and_not_to_a_problem(decay, many):
    with pytest.raises(od.InputError, match="fit_each needs data"):
        fit_each(decay)
    with pytest.raises(od.InputError, match="takes no data of its own"):
        fit_each(od.Problem(decay, many), many)
    with pytest.raises(od.InputError, match="unknown uncertainty 'profil'; did you mean 'profile'"):
        fit_each(decay, many, uncertainty="profil")


def test_the_store_has_what_was_computed_and_a_change_of_model_data_or_option_is_computed(decay, many, tmp_path):
    two = od.Data.join({name: many.only(name) for name in ("s1", "s2")})
    told: list[tuple[str, float]] = []
    first = fit_each(decay, two, store=tmp_path, progress=lambda *what: told.append(what))
    assert [what for what, _ in told] == ["1 of 2 series", "2 of 2 series"]
    assert records(tmp_path) == 2
    again = fit_each(decay, two, store=tmp_path)
    assert records(tmp_path) == 2
    assert again.documents == first.documents
    moved = two.experiments[1].y + 0.01
    changed = [
        lambda: fit_each(decay, two, store=tmp_path, seed=1),
        lambda: fit_each(decay, two, store=tmp_path, method=od.Odin(starts=3)),
        lambda: fit_each(od.Model.from_text("x' = -k*x + 0", name="decay"), two, store=tmp_path),
        lambda: fit_each(od.Problem(decay, two, bounds={"k": (0.1, 9.0)}), store=tmp_path),
        lambda: fit_each(decay, two.with_observations([two.y, moved]), store=tmp_path),
    ]
    for more, run in zip((2, 2, 2, 2, 1), changed, strict=True):
        before = records(tmp_path)
        run()
        assert records(tmp_path) == before + more


def test_a_damaged_record_is_computed_again(decay, many, tmp_path):
    one = many.only("s1")
    first = fit_each(decay, one, store=tmp_path)
    with Store(tmp_path) as store:
        (record,) = store.records.values()
        store.add([{**record, "outcome": {**record["outcome"], "row": {"status": 1}}}])
    assert fit_each(decay, one, store=tmp_path)["s1"].theta == first["s1"].theta
    assert records(tmp_path) == 3


def test_functions_are_fitted_here_but_not_stored_and_not_sent_if_nobody_can_import_them(many, tmp_path):
    model = od.Model(lambda t, x, theta: [-theta[0] * x[0]], ["x"], ["k"])
    two = od.Data.join({name: many.only(name) for name in ("s1", "s2")})
    with pytest.raises(od.InputError, match="models and priors from text only"):
        fit_each(model, two, store=tmp_path)
    with pytest.raises(od.InputError, match="cannot be sent to other processes"):
        fit_each(model, two, workers=2)
    assert fit_each(model, two)["s1"].theta["k"] == pytest.approx(0.7, abs=0.1)


def test_two_workers_give_the_fits_of_one_and_a_series_that_takes_too_long_is_given_up(decay, many, fits, tmp_path):
    two = od.Data.join({name: many.only(name) for name in ("s1", "s2")})
    found = fit_each(decay, two, workers=2)
    assert {name: found[name].theta for name in found} == {name: fits[name].theta for name in ("s1", "s2")}
    slow = fit_each(decay, many.only("s1"), timeout=1e-3, store=tmp_path)
    assert slow["s1"].status.startswith(TIMED_OUT)
    # The same command, with more patience, tries again.
    assert fit_each(decay, many.only("s1"), store=tmp_path)["s1"].converged


def test_what_another_process_has_claimed_is_waited_for_and_taken_over_when_it_is_gone(decay, many, tmp_path):
    one = many.only("s1")
    reference = fit_each(decay, one, store=tmp_path / "a")
    (key,) = Store(tmp_path / "a").records
    with Store(tmp_path / "b", create=True) as other:
        other.claim([key])
        found: list[od.Fits] = []
        thread = threading.Thread(target=lambda: found.append(fit_each(decay, one, store=tmp_path / "b")))
        thread.start()
        time.sleep(0.3)
        assert not found
    thread.join(60)
    assert found[0]["s1"].theta == reference["s1"].theta


def test_doses_hidden_states_and_local_parameters_are_fitted_like_any_other():
    model = od.Model.from_text("gut' = -ka*gut\nbody' = ka*gut - ke*body\nc ~ normal(body/2)\ngut(0) = 0; body(0) = 0\n"
                               "local ka\nlog ka, ke")  # fmt: skip
    rng, parts = np.random.default_rng(0), {}
    for name, dose in (("low", 10.0), ("high", 30.0)):
        c = 0.5 * dose * 2.0 / 1.7 * (np.exp(-0.3 * T) - np.exp(-2.0 * T))
        parts[name] = od.Data(T, c * np.exp(0.02 * rng.normal(size=12)), ["c"], doses=[(0.0, dose, "gut")])
    found = fit_each(od.Problem(model, od.Data.join(parts)))
    for name in parts:
        assert found.rows[name].theta["ka"][0] == pytest.approx(2.0, rel=0.2)
        assert found[name].parameter_names == ("ka", "ke")


def test_a_dask_cluster_gives_the_same_fits(decay, many, fits, monkeypatch):
    from distributed import LocalCluster

    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # which its workers set, here in this process
    two = od.Data.join({name: many.only(name) for name in ("s1", "s2")})
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as dask:
        found = fit_each(decay, two, cluster=dask.scheduler_address)
    assert {name: found[name].theta for name in found} == {name: fits[name].theta for name in ("s1", "s2")}


def test_fits_are_a_mapping_from_which_one_goes_on_as_from_any_fit(fits):
    assert len(fits) == 13
    assert "s0" in fits
    assert "nobody" not in fits
    with pytest.raises(KeyError):
        fits["nobody"]
    assert all(f.status for f in fits.values())
    assert fits["s0"].forecast([5.0])["x"].iloc[0] == pytest.approx(3 * np.exp(-3.5), abs=0.05)


def test_the_table_has_a_row_per_series_with_status_estimates_and_intervals(fits):
    table = fits.table()
    assert list(table.index) == list(fits)
    assert list(table.columns) == [
        "status", "converged", "contradicted", "outlier", "k", "k_low", "k_high", "x(0)", "x(0)_low", "x(0)_high",
        "sigma_x",
    ]  # fmt: skip
    assert table.loc["s0", ["k_low", "k", "k_high"]].is_monotonic_increasing
    assert (table.loc["s0", "k_low"], table.loc["s0", "k_high"]) == fits["s0"].interval()["k"]
    assert table.loc[SHORT, ["k", "k_low", "x(0)", "sigma_x"]].isna().all()
    assert isinstance(table, pd.DataFrame)


def test_those_that_failed_are_contradicted_or_are_outliers_are_named(fits):
    assert list(fits.failed) == [SHORT]
    assert fits.contradicted[RISING] == ("x",)
    assert len(fits.contradicted) <= 3  # a right model is rejected in one of twenty series
    assert "k" in fits.outliers[FAST]
    assert {FAST, RISING} >= set(fits.outliers)


def test_a_parameter_named_like_an_end_of_an_interval_costs_no_column(fits):
    from odinfer.apps.each.row import Row

    row = Row("converged", True, {"a": (1.0, 0.5, 2.0), "a_low": (3.0, 2.0, 4.0)})
    table = Fits("m", "odin", {}, {"one": row}, {}).table()
    assert table.loc["one", ["a", "a_low", "a_low_", "a_low_low"]].tolist() == [1.0, 0.5, 3.0, 2.0]


def test_series_that_start_at_different_times_share_a_column_of_initial_values(decay, many):
    late = od.Data(many.t + 1.0, many.y, ["x"])
    both = od.Data.join({"early": many.only("s0"), "late": late})
    assert "x(start)" in od.fit_each(decay, both).table().columns


@dataclass(frozen=True)
class Broken:
    name: str = "broken"

    def fit(self, problem, seed=0, progress=None):
        raise ZeroDivisionError("of all things")


@pytest.fixture
def one(decay, many) -> od.Problem:
    return od.Problem(decay, many.only("s1"))


def test_equal_contents_have_equal_keys_and_others_have_others(one, many, decay):
    how = FitOptions(od.Odin())
    again = od.Problem(od.Model.from_text("x' = -k*x", name="decay"), many.only("s1"))
    assert job(one, how).key == job(again, how).key
    others = [
        job(od.Problem(decay, many.only("s2")), how),
        job(replace(one, positive=True), how),
        job(replace(one, sigma={"x": 0.1}), how),
        job(replace(one, prior={"k": ("normal", 1.0, 1.0)}), how),
        job(one, FitOptions(od.Odin(), 1)),
        job(one, FitOptions(od.Odin(refine=False))),
        job(one, FitOptions(od.TwoStep())),
        job(one, FitOptions(od.Odin(), test=True)),
        job(one, FitOptions(od.Odin(), uncertainty="profile")),
    ]
    assert len({job(one, how).key, *(other.key for other in others)}) == 10
    assert job(one, how).run["version"] == __version__


def test_whatever_goes_wrong_in_a_fit_is_a_status(one):
    made = compute(one, FitOptions(Broken()))
    assert made["outcome"] == failure_outcome("failed: ZeroDivisionError: of all things")
    assert made["timing"]["seconds"] >= 0


def test_a_record_is_usable_as_it_is_made_and_not_with_anything_else_in_it(one):
    how = FitOptions(od.Odin())
    own = job(one, how)
    record = {"key": own.key, "run": dict(own.run), **compute(*own.args)}
    assert is_valid_record(record)
    assert is_valid_record({**record, "outcome": failure_outcome("failed: so")})
    assert row_of(record["outcome"], one).theta.keys() == {"k"}
    outcome = record["outcome"]
    for spoilt in (
        {**record, "key": "0" * 64},
        {**record, "outcome": {**outcome, "fit": None}},
        {**record, "outcome": {**outcome, "status": "excellent"}},
        {**record, "outcome": {**outcome, "row": {**outcome["row"], "theta": {"k": [1.0]}}}},
        {**record, "outcome": {**outcome, "row": {**outcome["row"], "more": 1}}},
        {**record, "outcome": {"status": "converged", "converged": True, "theta": {}}},
        {**record, "outcome": {}},
    ):
        assert not is_valid_record(spoilt)


def test_more_is_added_to_each_fit_if_asked_for(one):
    outcome = compute(one, FitOptions(od.Odin(), uncertainty="profile", test=True))["outcome"]
    assert '"model_test"' in outcome["fit"]
    assert outcome["converged"]


def test_a_row_has_the_estimates_intervals_and_initial_values_of_the_fit(lv_fit):
    row = Row.of(lv_fit)
    assert {name: value[0] for name, value in row.theta.items()} == lv_fit.theta
    assert {name: value[1:] for name, value in row.theta.items()} == lv_fit.interval()
    assert row.initial["prey"][0] == pytest.approx(lv_fit.states["prey"].iloc[0])
    assert row.initial["prey"][1] < row.initial["prey"][0] < row.initial["prey"][2]
    assert (row.start, row.rejected, row.converged) == (0.0, (), True)
    assert row.sigma == lv_fit.sigma
    assert row.t[[0, -1]].tolist() == [0.0, 2.0]
    assert row.x.shape == (len(row.t), 2)


def test_a_row_survives_a_file(lv_fit):
    row = Row.of(lv_fit)
    back = decode_record(Row, json.loads(json.dumps(encode_record(row), allow_nan=False)))
    assert {f: getattr(back, f) for f in ("theta", "initial", "sigma", "rejected")} == {
        f: getattr(row, f) for f in ("theta", "initial", "sigma", "rejected")
    }
    np.testing.assert_array_equal(back.x, row.x)


def test_fixed_parameters_are_no_estimates_and_what_has_no_interval_has_none(decay, decay_data):
    fixed = Row.of(od.fit(od.Problem(decay, decay_data, fixed={"k": 0.7})))
    assert fixed.theta == {}
    row = Row.of(od.fit(decay, decay_data, method=od.TwoStep()))
    assert np.isnan(row.theta["k"][1:]).all()


def test_a_model_that_is_contradicted_as_a_whole_only_is_said_to_be(lv_fit):
    from dataclasses import replace

    assert Row.of(replace(lv_fit, details={**lv_fit.details, "model_test": {"p": 0.01}})).rejected == (WHOLE_MODEL,)
    rejected = replace(lv_fit, verdicts={**lv_fit.verdicts, "prey": "contradicts the data"})
    assert Row.of(rejected).rejected == ("prey",)
