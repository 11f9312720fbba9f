"""Every experiment on its own: the fits are those of single experiments, whoever computes them, and computed once."""

import os
import threading
import time

import numpy as np
import pytest

import odinfer as od
from apps.each.conftest import SHORT, T
from odinfer.apps.each.entry import fit_each
from odinfer.apps.each.fits import Failure
from odinfer.parallel.resume import TIMED_OUT
from odinfer.parallel.store import LOG, Store


def records(folder) -> int:
    return (folder / LOG).read_bytes().count(b'"kind":"record"')


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
        lambda: fit_each(decay, two.observing([two.y, moved]), store=tmp_path),
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
