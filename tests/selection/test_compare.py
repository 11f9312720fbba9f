"""Comparison of models: ranking, verdicts, scores on held-out data, hints at missing terms."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import odinfer as od
from odinfer.odin.multistart import Search
from odinfer.paper.systems import lotka_volterra
from odinfer.selection.compare import Comparison
from odinfer.selection.figures import gamma_picture
from odinfer.selection.held_out import _kept_times, holdout_scores
from odinfer.selection.missing_terms import Gap, gaps, hints
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
    right, wrong = (found.table["heldout_rmse"][name] for name in ("right", "wrong <b>prey</b>"))
    assert right < 0.2
    # NaN where the trajectory of the wrong model ends before the times that were left out.
    assert not wrong <= 2.0 * right
    assert not found.table["heldout_loglik"]["wrong <b>prey</b>"] >= found.table["heldout_loglik"]["right"]


def test_two_workers_find_the_same_and_tell_how_far_they_are(decay, decay_data):
    shares, models = [], [decay, od.Model.from_text("x' = -k*x^2", "second order")]
    one = od.compare(models, decay_data, draws=39, holdout="gaps", seed=1)
    two = od.compare(models, decay_data, draws=39, holdout="gaps", seed=1, workers=2,
                     progress=lambda what, share: shares.append(share))  # fmt: skip
    assert shares == [0.5, 1.0]
    assert two.table.drop(columns="status").equals(one.table.drop(columns="status"))
    assert {n: c.judgements for n, c in two.candidates.items()} == {n: c.judgements for n, c in one.candidates.items()}
    assert 8 <= max(j.draws for c in one.candidates.values() for j in c.judgements) <= 39


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
        (([RIGHT, "x"],), {}, "cannot read 'x'"),
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
    assert searches["wrong"] == [odin.search]
    assert total > 2  # the simulations of the wrong equation were counted, too


def test_progress_rises_within_each_candidate_and_names_it(watched):
    _, _, told = watched
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    for i, name in enumerate(("wrong", "right")):
        inside = [what for what, share in told if i / 2 < share < (i + 1) / 2]
        assert len(inside) >= 4
        assert all(what.startswith(f"{name}: ") for what in inside)
        assert any("testing the model" in what for what in inside)
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
    assert "two: the model does not contradict the data (p = " in words
    assert "x is hidden" in " ".join(words.split())
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


@pytest.mark.parametrize("which", ["last", "gaps"])
def test_a_fifth_is_left_out_and_never_the_first_time(which):
    for n in (5, 20, 33):
        keep = _kept_times(n, which, np.random.default_rng(n))
        assert (~keep).sum() == max(round(n / 5), 1)
        assert keep[0]
        assert keep[-1] == (which == "gaps")


@pytest.mark.parametrize("which", ["last", "gaps"])
def test_a_right_model_predicts_about_as_well_as_the_noise_allows(which):
    problem = od.Problem(lotka_volterra.model, lotka_volterra.sample(0.1, 1))
    score = holdout_scores(problem, od.Odin(), 0, which)
    assert score["heldout_rmse"] < 0.4
    assert np.isfinite(score["heldout_loglik"])


def test_too_few_data_are_said_so():
    problem = od.Problem(od.Model.from_text("x' = -k*x"), od.Data([0.0, 1, 2, 3], [4.0, 3, 2, 1.5], ["x"]))
    with pytest.raises(od.InputError, match="hold a fifth out"):
        holdout_scores(problem, od.Odin())


@pytest.mark.parametrize("which", ["last", "gaps"])
def test_left_out_counts_of_a_hidden_state_are_worth_their_poisson_density(which):
    t = np.linspace(0.0, 4.0, 15)
    n = np.random.default_rng(1).poisson(40 * np.exp(-0.5 * t)).astype(float)
    problem = od.Problem(od.Model.from_text("x' = -k*x; x(0) = 40; n ~ poisson(x)"), od.Data(t, n, ["n"]))
    score = holdout_scores(problem, od.Odin(), 0, which)
    keep = _kept_times(15, which, np.random.default_rng(0))
    part = od.fit(od.Problem(problem.model, problem.data.with_rows([keep])))
    mean = 40 * np.exp(-part.theta["k"] * t[~keep])
    assert score["heldout_loglik"] == pytest.approx(stats.poisson.logpmf(n[~keep], mean).sum(), abs=1e-3)
    assert score["heldout_rmse"] == pytest.approx(np.sqrt(np.mean((n[~keep] - mean) ** 2)) / n.std(), rel=1e-3)


@pytest.fixture(scope="module")
def without_growth():
    """Predators that do not eat: the term prey*predator is missing."""
    model = od.Model.from_text("prey' = a*prey - b*prey*predator\npredator' = -c*predator")
    problem = od.Problem(model, lotka_volterra.sample(0.05, 2))
    return problem, od.fit(problem)


def test_the_missing_term_comes_first(without_growth):
    found = hints(*without_growth, "predator")
    assert found[0].term == "prey*predator"
    assert found[0].gain > 20


def test_a_term_that_the_equation_has_does_not_come_up(without_growth):
    assert "predator" not in {h.term for h in hints(*without_growth, "predator")}


def test_the_gap_of_the_wrong_equation_leaves_its_band_and_that_of_the_right_one_does_not(without_growth):
    _, fit = without_growth
    (wrong,), (right,) = gaps(fit, "predator"), gaps(fit, "prey")
    assert sum(b - a for a, b in wrong.stretches) > 1.0
    assert sum(b - a for a, b in right.stretches) < 0.3


def test_single_points_are_no_stretch():
    t, sd = np.arange(6.0), np.ones(6)
    assert Gap("x", "1", t, np.array([0, 9, 0, 0, 9, 9.0]), sd).stretches == [(4.0, 5.0)]
    assert Gap("x", "1", t, np.zeros(6), sd).stretches == []


def test_there_are_no_hints_where_a_state_is_hidden():
    t = np.linspace(0.0, 4.0, 12)
    problem = od.Problem(od.Model.from_text("x' = -k*x; y' = x - y"), od.Data(t, np.exp(-t), states=["y"]))
    with pytest.raises(od.InputError, match=r"a hint at missing terms needs every state observed .* x is hidden"):
        hints(problem, None, "y")
