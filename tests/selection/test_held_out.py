"""Predictions of what was left out."""

import numpy as np
import pytest
from scipy import stats

import odinfer as od
from odinfer.paper.systems import lotka_volterra
from odinfer.selection.held_out import _kept, heldout


@pytest.mark.parametrize("which", ["last", "gaps"])
def test_a_fifth_is_left_out_and_never_the_first_time(which):
    for n in (5, 20, 33):
        keep = _kept(n, which, np.random.default_rng(n))
        assert (~keep).sum() == max(round(n / 5), 1)
        assert keep[0]
        assert keep[-1] == (which == "gaps")


@pytest.mark.parametrize("which", ["last", "gaps"])
def test_a_right_model_predicts_about_as_well_as_the_noise_allows(which):
    problem = od.Problem(lotka_volterra.model, lotka_volterra.sample(0.1, 1))
    score = heldout(problem, od.Odin(), 0, which)
    assert score["heldout_rmse"] < 0.4
    assert np.isfinite(score["heldout_loglik"])


def test_too_few_data_are_said_so():
    problem = od.Problem(od.Model.from_text("x' = -k*x"), od.Data([0.0, 1, 2, 3], [4.0, 3, 2, 1.5], ["x"]))
    with pytest.raises(od.InputError, match="hold a fifth out"):
        heldout(problem, od.Odin())


@pytest.mark.parametrize("which", ["last", "gaps"])
def test_left_out_counts_of_a_hidden_state_are_worth_their_poisson_density(which):
    t = np.linspace(0.0, 4.0, 15)
    n = np.random.default_rng(1).poisson(40 * np.exp(-0.5 * t)).astype(float)
    problem = od.Problem(od.Model.from_text("x' = -k*x; x(0) = 40; n ~ poisson(x)"), od.Data(t, n, ["n"]))
    score = heldout(problem, od.Odin(), 0, which)
    keep = _kept(15, which, np.random.default_rng(0))
    part = od.fit(od.Problem(problem.model, problem.data.keeping([keep])))
    mean = 40 * np.exp(-part.theta["k"] * t[~keep])
    assert score["heldout_loglik"] == pytest.approx(stats.poisson.logpmf(n[~keep], mean).sum(), abs=1e-3)
    assert score["heldout_rmse"] == pytest.approx(np.sqrt(np.mean((n[~keep] - mean) ** 2)) / n.std(), rel=1e-3)
