"""Starts on workers: the same answer for any number of them, nothing followed twice, and nothing lost."""

import json

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.parallel.resume import failure_outcome
from odinfer.search import multistart as searches
from odinfer.search import start_executor
from odinfer.search.multistart import search
from odinfer.search.start_executor import StartExecutor, compute, content, usable
from odinfer.search.startpoints import draw_starts
from stores import execute, writes


def hidden(**more) -> od.Problem:
    """Decay by way of a hidden state, everything bounded."""
    model = od.Model.from_text("a(0) = 4; b(0) = 0; a' = -k*a; b' = k*a - m*b; y ~ normal(b, s)")
    t = np.linspace(0.5, 8.0, 12)
    b = od.simulate(model, {"k": 0.9, "m": 0.3, "s": 0.1}, [4.0, 0.0], np.append(0.0, t))[1:, 1]
    y = b + 0.05 * np.random.default_rng(1).normal(size=len(t))
    bounds = {"k": (1e-3, 1e3), "m": (1e-3, 1e3), "s": (1e-3, 10.0)}
    scale = dict.fromkeys(bounds, "log")
    return od.Problem(model, od.Data(t, y, states=["y"]), bounds=bounds, scale=scale, **more)


@pytest.fixture(scope="module", autouse=True)
def few():
    """Generations of sixteen starts, two chunks each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_executor, "_CHUNK", 8)
        patch.setattr(searches, "WIDTH", 1)
        yield


@pytest.fixture(scope="module")
def problem() -> od.Problem:
    return hidden()


@pytest.fixture(scope="module")
def alone(problem):
    return search(problem, 0, executor=StartExecutor())


def test_any_number_of_workers_gives_the_same_answer(problem, alone):
    two = search(problem, 0, executor=StartExecutor(2))
    assert two.objectives == alone.objectives
    np.testing.assert_array_equal(two.best.phi, alone.best.phi)


def test_with_and_without_an_executor_the_best_is_the_same(problem, alone):
    assert search(problem, 0).best.loglik == pytest.approx(alone.best.loglik, abs=1e-4)


def test_what_a_store_has_is_not_followed_again(problem, alone, tmp_path, monkeypatch):
    stored = search(problem, 0, executor=StartExecutor(store=tmp_path))
    assert stored.objectives == alone.objectives
    monkeypatch.setattr(start_executor, "minimise_batch", None)  # which would be a failure of every start
    again = search(problem, 0, executor=StartExecutor(store=tmp_path))
    assert again.objectives == alone.objectives


def test_a_store_that_was_cut_off_is_completed(problem, alone, tmp_path):
    search(problem, 0, executor=StartExecutor(store=tmp_path))
    execute(tmp_path, "DELETE FROM record WHERE id > 1")
    execute(tmp_path, "UPDATE record SET content = substr(content, 1, 40)")
    assert search(problem, 0, executor=StartExecutor(store=tmp_path)).objectives == alone.objectives


def test_another_problem_finds_nothing_of_its_own_in_a_store():
    told = {content(hidden()), content(hidden(fixed={"m": 0.3})), content(hidden(prior={"k": ("normal", 1.0, 0.1)}))}
    assert len(told) == 3
    assert content(hidden()) == content(hidden())


def test_a_chunk_that_fails_is_a_status_and_its_starts_lead_nowhere(problem):
    v = np.stack([start for start, _ in zip(draw_starts(problem, np.random.default_rng(0)), range(3), strict=False)])
    made = compute(None, v, np.inf)
    assert made["outcome"]["status"].startswith("failed")
    ends = start_executor._ends(failure_outcome("lost: its worker died"), v)
    assert np.isinf(ends.value).all()
    good = compute(problem, v, np.inf)["outcome"]
    np.testing.assert_array_equal(start_executor._ends(json.loads(json.dumps(good)), v).v, np.array(good["v"]))
    assert BatchLikelihood.can(problem)


def test_records_from_elsewhere_are_checked(problem):
    v = np.stack([start for start, _ in zip(draw_starts(problem, np.random.default_rng(0)), range(2), strict=False)])
    job = start_executor._job(problem, content(problem), v, np.inf)
    record = {"key": job.key, "run": job.run, **compute(problem, v, np.inf)}
    assert usable(record)
    assert not usable({**record, "key": "0"})
    assert not usable({**record, "outcome": {**record["outcome"], "value": [1.0]}})
    assert not usable({**record, "outcome": {}})


def test_progress_is_told_in_starts(problem):
    said = []
    search(problem, 0, lambda what, share: said.append((what, share)), StartExecutor())
    words = [what for what, _ in said if what.startswith("followed")]
    assert words[:2] == ["followed 8 starts", "followed 16 starts"]
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert all(0.0 <= share <= 1.0 for share in shares)


def test_a_python_function_has_no_workers():
    model = od.Model(lambda t, x, theta: [-theta[0] * x[0]], states=["x"], parameters=["k"])
    t = np.linspace(0.5, 8.0, 12)
    with pytest.raises(od.InputError, match="a model from text"):
        od.fit(od.Problem(model, od.Data(t, np.exp(-t), states=["x"])), workers=2)


def test_fits_take_workers_and_a_store(problem, alone, tmp_path):
    fit = od.fit(problem, workers=1, store=tmp_path)
    assert fit.stages["refined"].loglik == pytest.approx(alone.best.loglik, abs=1e-6)
    assert writes(tmp_path) > 0


def test_other_methods_refuse_workers(problem):
    with pytest.raises(od.InputError, match="for the method odin, not trajectory"):
        od.fit(problem, method=od.Trajectory(), workers=2)
