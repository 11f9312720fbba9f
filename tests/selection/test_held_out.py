"""Predictions of what was left out."""

import numpy as np
import pytest

import odinfer as od
from odinfer.selection.held_out import _kept, heldout
from odinfer.systems import lotka_volterra


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
