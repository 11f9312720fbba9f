"""Run time over the number of states: the fitted power and line are those of the records."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.paper.bench.report.results import Results
from odinfer.paper.bench.report.scaling import scaling_table, scalings


def timed(results: Results, seconds, sizes=None) -> Results:
    """The same with seconds(size, draw), and only some sizes."""
    found = []
    for cell, records in results.found:
        size = cell.case.size
        if size is not None:
            records = [
                r | {"timing": {"seconds": seconds(size, i), "cpu": 1.0, "first": i == 0}}
                for i, r in enumerate(records)
                if sizes is None or size in sizes
            ]
        found.append((cell, records))
    return replace(results, found=found)


def test_the_exponent_of_run_time_is_that_of_the_records(results):
    fit = scalings(results)["odin-paper"]
    assert fit.exponent == pytest.approx(1.0)
    assert fit.K[-1] == 1000


@settings(max_examples=15, deadline=None)
@given(power=st.floats(0.2, 3.0), factor=st.floats(1e-4, 10.0))
def test_any_power_law_is_found(results, power, factor):
    for fit in scalings(timed(results, lambda size, i: factor * size**power)).values():
        assert fit.exponent == pytest.approx(power)
        assert (np.diff(fit.K) > 0).all()


def test_the_line_is_that_of_least_squares(results):
    fit = scalings(timed(results, lambda size, i: 2.0 + 0.5 * size))["odin-paper"]
    assert fit.line == pytest.approx((0.5, 2.0))


def test_a_fit_that_had_to_compile_does_not_count_beside_others(results):
    fit = scalings(timed(results, lambda size, i: 1e6 if i == 0 else size))["odin-paper"]
    np.testing.assert_allclose(fit.mean, fit.K)
    assert (fit.sd == 0).all()


def test_one_size_has_no_power(results):
    fit = scalings(timed(results, lambda size, i: 1.0, sizes=(50,)))["odin-paper"]
    assert fit.K.tolist() == [50]
    assert np.isnan([fit.exponent, *fit.line]).all()


def test_the_table_has_a_row_per_size_and_method_and_the_powers_below_it(results):
    table = scaling_table(results)
    assert len(table.rows) == len(results.cells("sizes"))
    assert table.rows[0][0] == "K = 10"
    assert table.columns["seconds_mean"][0] == pytest.approx(1.0)
    assert "time grows as K to the power 1.00." in table.note
    assert set(table.columns["theta"]) == {8.0}
