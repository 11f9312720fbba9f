"""What a fit is made of: states at the observation times, stages by attribute and by key, tables over time."""

import numpy as np
import pandas as pd
import pytest

from fits import failed, make_fit
from odinfer.gp.curves import Curve
from odinfer.result.stages import ExperimentFit, frame


def test_stages_answer_by_attribute_and_by_key(lv_fit):
    assert list(lv_fit.stages) == ["odin", "refined"]
    for stage in lv_fit.stages.values():
        for key in ("theta", "gamma", "sigma", "x", "objective", "loglik", "seconds", "note"):
            assert stage[key] is getattr(stage, key)
        pd.testing.assert_frame_equal(stage["states"], stage.states)
        assert list(stage.theta) == ["a", "b", "c", "d"]
        assert stage.x[0].shape == (20, 2)
        assert stage.seconds > 0
        with pytest.raises(AttributeError):
            stage["nothing"]
    assert lv_fit.theta == lv_fit.stages["refined"].theta
    np.testing.assert_allclose(lv_fit.stages["refined"].x[0], lv_fit.states)
    assert np.abs(lv_fit.stages["odin"].x[0] - lv_fit.states.to_numpy()).max() > 1e-6


def test_states_at_the_observation_times_are_those_of_the_curve():
    e = make_fit().experiments["1"]
    x, sd = e.estimate()
    at = np.searchsorted(e.curve.t, e.t)
    np.testing.assert_allclose(x, e.curve.x[at], rtol=1e-12)
    np.testing.assert_allclose(sd, e.curve.sd[at], rtol=1e-12)
    np.testing.assert_array_equal(x, e.x)


@pytest.mark.parametrize("spoilt", ["x", "slope"])
def test_a_curve_with_a_hole_gives_no_estimate_instead_of_an_error(spoilt):
    e = make_fit().experiments["1"]
    parts = {key: np.array(getattr(e.curve, key)) for key in ("t", "x", "slope", "sd")}
    parts[spoilt][3, 0] = np.nan
    for found in ExperimentFit(e.t, e.y, Curve(**parts)).estimate():
        assert found.shape == e.y.shape
        assert np.isnan(found).all()


def test_a_failed_fit_has_observations_and_no_states():
    e = failed().experiments["1"]
    assert np.isfinite(e.y).all()
    assert np.isnan(e.estimate()).all()


def test_a_table_has_the_times_as_its_index_and_a_column_per_name():
    table = frame(np.array([0.5, 1.0]), np.array([[1.0, 2.0], [3.0, 4.0]]), ("x", "y"))
    assert table.index.name == "time"
    assert table.to_dict("list") == {"x": [1.0, 3.0], "y": [2.0, 4.0]}
    assert table.loc[1.0, "y"] == 4.0
