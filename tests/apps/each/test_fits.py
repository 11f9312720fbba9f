"""The result of many fits: a mapping, a table, and who needs a look."""

import numpy as np
import pandas as pd
import pytest

import odinfer as od
from apps.each.conftest import FAST, RISING, SHORT
from odinfer.apps.each.fits import Fits


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
        "status", "converged", "contradicted", "unlike", "k", "k_low", "k_high", "x(0)", "x(0)_low", "x(0)_high",
        "sigma_x",
    ]  # fmt: skip
    assert table.loc["s0", ["k_low", "k", "k_high"]].is_monotonic_increasing
    assert (table.loc["s0", "k_low"], table.loc["s0", "k_high"]) == fits["s0"].interval()["k"]
    assert table.loc[SHORT, ["k", "k_low", "x(0)", "sigma_x"]].isna().all()
    assert isinstance(table, pd.DataFrame)


def test_those_that_failed_are_contradicted_or_are_unlike_the_rest_are_named(fits):
    assert list(fits.failed) == [SHORT]
    assert fits.contradicted == {RISING: ("x",)}
    assert "k" in fits.unlike[FAST]
    assert {FAST, RISING} >= set(fits.unlike)


def test_a_parameter_named_like_an_end_of_an_interval_costs_no_column(fits):
    from odinfer.apps.each.row import Row

    row = Row("converged", True, {"a": (1.0, 0.5, 2.0), "a_low": (3.0, 2.0, 4.0)})
    table = Fits("m", "odin", {}, {"one": row}, {}).table()
    assert table.loc["one", ["a", "a_low", "a_low_", "a_low_low"]].tolist() == [1.0, 0.5, 3.0, 2.0]


def test_series_that_start_at_different_times_share_a_column_of_initial_values(decay, many):
    late = od.Data(many.t + 1.0, many.y, ["x"])
    both = od.Data.join({"early": many.only("s0"), "late": late})
    assert "x(start)" in od.fit_each(decay, both).table().columns
