"""A row has what the fit has, in a form that a store can hold."""

import json

import numpy as np
import pytest

import odinfer as od
from odinfer.apps.each.row import WHOLE, Row
from odinfer.result.formats.json_values import of_record, record


def test_a_row_has_the_estimates_intervals_and_initial_values_of_the_fit(lv_fit):
    row = Row.of(lv_fit)
    assert {name: value[0] for name, value in row.theta.items()} == lv_fit.theta
    assert {name: value[1:] for name, value in row.theta.items()} == lv_fit.interval()
    assert row.initial["prey"][0] == pytest.approx(lv_fit.states["prey"].iloc[0])
    assert row.initial["prey"][1] < row.initial["prey"][0] < row.initial["prey"][2]
    assert (row.start, row.accused, row.converged) == (0.0, (), True)
    assert row.sigma == lv_fit.sigma
    assert row.t[[0, -1]].tolist() == [0.0, 2.0]
    assert row.x.shape == (len(row.t), 2)


def test_a_row_survives_a_file(lv_fit):
    row = Row.of(lv_fit)
    back = of_record(Row, json.loads(json.dumps(record(row), allow_nan=False)))
    assert {f: getattr(back, f) for f in ("theta", "initial", "sigma", "accused")} == {
        f: getattr(row, f) for f in ("theta", "initial", "sigma", "accused")
    }
    np.testing.assert_array_equal(back.x, row.x)


def test_fixed_parameters_are_no_estimates_and_what_has_no_interval_has_none(decay, decay_data):
    fixed = Row.of(od.fit(od.Problem(decay, decay_data, fixed={"k": 0.7})))
    assert fixed.theta == {}
    row = Row.of(od.fit(decay, decay_data, method=od.TwoStep()))
    assert np.isnan(row.theta["k"][1:]).all()


def test_a_model_that_is_contradicted_as_a_whole_only_is_said_to_be(lv_fit):
    from dataclasses import replace

    assert Row.of(replace(lv_fit, details={**lv_fit.details, "model_test": {"p": 0.01}})).accused == (WHOLE,)
    accused = replace(lv_fit, verdicts={**lv_fit.verdicts, "prey": "contradicts the data"})
    assert Row.of(accused).accused == ("prey",)
