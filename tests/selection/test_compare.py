"""Candidates compared: the table, the criteria, the verdicts; each computed once, and told about on the way."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.odin.multistart import Search
from odinfer.paper.systems import lotka_volterra
from odinfer.selection.compare import Comparison
from odinfer.selection.figures import gamma_picture
from selection.rivals import RIGHT, WRONG, made


def test_the_table_has_a_row_per_model_the_best_first(found):
    assert list(found.table.index) == ["right", "wrong <b>prey</b>"]
    assert found.best == "right"
    assert {"loglik", "parameters", "aicc", "bic", "weight", "risk", "status"} <= {*found.table.columns}
    assert found.table["weight"].sum() == pytest.approx(1.0)
    assert found.table["weight_aicc"].sum() == pytest.approx(1.0)


def test_criteria_follow_their_formulas(found):
    for name, row in found.table.iterrows():
        k, n = row["parameters"], 40
        assert k == 4 + 2 + 2
        assert row["bic"] == pytest.approx(-2 * row["loglik"] + k * np.log(n))
        assert row["aicc"] == pytest.approx(-2 * row["loglik"] + 2 * k + 2 * k * (k + 1) / (n - k - 1))
        assert row["loglik"] == pytest.approx(found.fits[name].stages["refined"].loglik)
        assert row["risk"] == found.fits[name].stages["odin"].objective


def test_verdicts_are_per_equation(found):
    assert found.verdicts == {
        "right": {"prey": "consistent", "predator": "consistent"},
        "wrong <b>prey</b>": {"prey": "contradicts", "predator": "consistent"},
    }
    assert found.gamma.loc["wrong <b>prey</b>", "prey"] > 0.5
    assert found.gamma.loc["right"].max() < 1e-3


def test_held_out_scores_prefer_the_right_model(found):
    assert found.table["heldout_rmse"]["right"] < 0.5 * found.table["heldout_rmse"]["wrong <b>prey</b>"]
    assert found.table["heldout_loglik"]["right"] > found.table["heldout_loglik"]["wrong <b>prey</b>"]


def test_two_workers_find_the_same_and_tell_how_far_they_are(decay, decay_data):
    shares, models = [], [decay, od.Model.from_text("x' = -k*x^2", "second order")]
    one = od.compare(models, decay_data, draws=39, holdout="gaps", seed=1)
    two = od.compare(models, decay_data, draws=39, holdout="gaps", seed=1, workers=2,
                     progress=lambda what, share: shares.append(share))  # fmt: skip
    assert shares == [0.5, 1.0]
    assert two.table.drop(columns="status").equals(one.table.drop(columns="status"))
    assert {n: c.judgements for n, c in two.candidates.items()} == {n: c.judgements for n, c in one.candidates.items()}
    assert max(j.draws for c in one.candidates.values() for j in c.judgements) == 39


def test_models_can_be_sent_to_other_processes_after_use():
    theta, x0 = np.array([2.0, 1.0, 4.0, 1.0]), [5.0, 3.0]
    t = np.linspace(0, 1, 4)
    before = od.simulate(RIGHT, theta, x0, t)
    np.testing.assert_array_equal(od.simulate(pickle.loads(pickle.dumps(RIGHT)), theta, x0, t), before)


def test_models_of_the_same_name_are_told_apart():
    data = lotka_volterra.sample(0.1, 0)
    found = od.compare([RIGHT, RIGHT], data, draws=19)
    assert list(found.candidates) == ["right", "right 2"]
    assert found.table["weight"].tolist() == pytest.approx([0.5, 0.5])
    assert list(od.compare({"A": RIGHT, "B": od.Problem(RIGHT, data)}, data, draws=19).candidates) == ["A", "B"]


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([],), {}, "at least one"),
        (([RIGHT, WRONG],), {"data": None}, "needs data"),
        (([RIGHT, "x"],), {}, "Models or Problems"),
        (([RIGHT, WRONG],), {"holdout": "first"}, "holdout"),
        (([RIGHT, WRONG],), {"level": 2}, "level"),
        (([RIGHT, WRONG],), {"draws": 3}, "draws"),
        (([RIGHT, WRONG],), {"method": od.Gpr()}, "Gpr"),
        (([RIGHT, od.Problem(WRONG, lotka_volterra.sample(0.1, 7))],), {}, "same ones"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, options, words):
    with pytest.raises(od.InputError, match=words) as error:
        od.compare(*arguments, **{"data": lotka_volterra.sample(0.1, 0)} | options)
    assert "\n" not in str(error.value)


# --- once, and told


@pytest.fixture(scope="module")
def watched(lv_data):
    """Problems by name, the searches that were run on each of them, and what was told."""
    problems = {"wrong": od.Problem(WRONG, lv_data), "right": od.Problem(RIGHT, lv_data)}
    runs, told, run = [], [], Search.run

    def counted(self, problem, *how, **more):
        runs.append((self, problem))
        return run(self, problem, *how, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "run", counted)
        od.compare(problems, draws=19, progress=lambda what, share: told.append((what, share)))
    searches = {name: [search for search, q in runs if q is p] for name, p in problems.items()}
    return searches, len(runs), told


def test_the_odin_stage_of_the_data_is_solved_once_per_candidate(watched):
    searches, total, _ = watched
    odin = od.Odin()
    assert searches["right"] == [odin.search]
    # Once more only where the trajectory does not convince.
    assert searches["wrong"] in ([odin.search], [odin.search, odin.second_look.search])
    assert total >= 19  # the simulations of the wrong equation were counted, too


def test_progress_rises_within_each_candidate_and_names_it(watched):
    _, _, told = watched
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    for i, name in enumerate(("wrong", "right")):
        inside = [what for what, share in told if i / 2 < share < (i + 1) / 2]
        assert len(inside) >= 4
        assert all(what.startswith(f"{name}: ") for what in inside)
        assert any("testing the model as a whole" in what for what in inside)
    assert any("judging the equation for" in what for what, _ in told)


# --- criteria


def few(observations):
    return replace(made(), observations=observations)


def test_the_corrected_criterion_is_infinite_where_the_data_are_too_few_for_it():
    assert np.isinf(few(9).aicc)
    assert np.isfinite(few(10).aicc)
    assert few(10**9).aicc == pytest.approx(-2 * 10.0 + 2 * 8)


@settings(max_examples=25, deadline=None)
@given(logliks=st.lists(st.floats(-1e4, 1e4) | st.just(np.nan), min_size=2, max_size=6))
def test_weights_are_shares_of_the_models_that_have_a_likelihood_and_the_best_has_most(logliks):
    table = Comparison({str(i): made(loglik) for i, loglik in enumerate(logliks)}).table
    known = table["bic"].notna()
    assert table.loc[~known, ["weight", "weight_aicc"]].to_numpy().sum() == 0
    if known.any():
        assert table["weight"].sum() == pytest.approx(1.0)
        assert table["weight"].iloc[0] == table["weight"].max()
        assert not known.to_numpy()[known.sum() :].any()


@pytest.fixture(scope="module")
def with_hidden():
    """Models with different hidden states, and one that sees all of its only state."""
    t = np.linspace(0.0, 6.0, 16)
    y = np.exp(-0.4 * t) - np.exp(-2.0 * t) + 0.01 * np.random.default_rng(1).normal(size=16)
    texts = {"one": "y' = a - b*y", "two": "x' = -a*x; y' = x - b*y", "three": "z' = -a*z; y' = b*z - b*y"}
    models = [od.Model.from_text(f"{text}; log a, b", name) for name, text in texts.items()]
    return od.compare(models, od.Data(t, y, states=["y"]), draws=19)


def test_models_with_different_hidden_states_are_compared_by_what_all_observe(with_hidden):
    table = with_hidden.table
    assert table.index[-1] == "one"
    assert np.isfinite(table[["loglik", "bic"]].to_numpy(float)).all()
    assert 0 < table.loc["two", "p"] <= 1
    assert with_hidden.verdicts["two"] == {"x": "not judged", "y": "not judged"}
    assert set(with_hidden.verdicts["one"]) == {"y"}


def test_what_is_said_of_them_is_about_the_model_as_a_whole(with_hidden, tmp_path):
    words = with_hidden.summary()
    assert "two: the model as a whole does not contradict the data (p = " in words
    assert "are not judged one by one, since x is hidden" in words
    with_hidden.save(tmp_path / "out")
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert found["models"]["two"]["equations"]["x"] == {"verdict": "not judged"}
    assert "not judged" in (tmp_path / "out" / "comparison.html").read_text()
    assert (tmp_path / "out" / "fits.png").stat().st_size > 1000


def test_where_no_model_has_a_gamma_the_fits_are_drawn(with_hidden):
    only = Comparison({"two": with_hidden.candidates["two"]})
    assert gamma_picture(only) is None
    assert [ax.get_ylabel() for ax in only.plot().axes] == ["y"]


def test_models_of_different_columns_are_refused():
    t = np.linspace(0.0, 4.0, 12)
    data = od.Data(t, np.stack([np.exp(-t), np.exp(-2 * t)], -1), states=["x", "y"])
    texts = ("x' = -k*x", "x' = -k*x; y' = -y*m")
    with pytest.raises(od.InputError, match="not those of the other"):
        od.compare([od.Model.from_text(text, text) for text in texts], data)
