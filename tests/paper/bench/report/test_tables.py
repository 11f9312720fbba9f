"""Tables say what the records say, for people and for machines, beside what the paper prints."""

import math

import numpy as np
import pytest

from odinfer.paper.bench.report.results import Summary
from odinfer.paper.bench.report.tables import (
    add,
    chosen_parameters,
    counts,
    limit_table,
    parameter_table,
    plus_minus,
    quantile_table,
    seconds_table,
    shown,
    states_of,
    statewise_table,
)
from paper.bench.report.invented import DRAWS, changed, emptied, rows


def test_tables_have_the_quantiles_of_the_records_and_the_numbers_of_the_paper(written):
    results, folder = written
    row = next(r for r in rows(folder / "2_trmse.csv") if r["setting"] == "LV, σ = 0.1" and r["method"] == "rkg3")
    errors = [r["outcome"]["trmse"] for r in results.at("LV, σ = 0.1", "rkg3")]
    assert [float(row[n]) for n in ("q25", "median", "q75")] == pytest.approx(np.quantile(errors, (0.25, 0.5, 0.75)))
    assert row["draws"] == str(DRAWS)
    times = rows(folder / "4_run_times.csv")
    paper = {(r["method"], r["setting"]): r["paper_median"] for r in times}
    assert paper["agm", "PT, σ = 0.01"] == "30493.0"
    assert paper["odin-paper", "FHN, SNR = 10"] == "4.4"
    assert paper["agm", "FHN, SNR = 100"] == ""  # the paper has none
    gamma = {(r["candidate"], r["state"]): r["paper_median"] for r in rows(folder / "7_model_selection.csv")}
    assert gamma["M00", "predator"] == "1.53"
    assert gamma["M11", "prey"] == "1e-06"


def test_a_row_goes_to_the_end_of_every_column():
    columns = {"a": [1], "b": [2]}
    add(columns, (3, 4))
    assert columns == {"a": [1, 3], "b": [2, 4]}
    with pytest.raises(ValueError, match="shorter"):
        add(columns, (5,))


def test_quartiles_stand_below_the_median_and_what_one_must_know_below_both():
    s = Summary(draws=4, failed=1, unconverged=2, low=0.5, median=1.23456, high=2.0, sd=0.1)
    assert shown(s) == "1.23\n0.5–2\n1 failed, 2 not converged"
    assert shown(s, planned=9) == "1.23\n0.5–2\n4 draws, 1 failed, 2 not converged"
    assert shown(s._replace(failed=0, unconverged=0)) == "1.23\n0.5–2"
    assert shown(s._replace(median=math.nan)) == "-"
    assert counts(s._replace(failed=0, unconverged=0), planned=4) == []


def test_a_deviation_that_is_rounding_error_is_zero():
    assert plus_minus(3.0, 0.25) == "3 ± 0.25"
    assert plus_minus(1e-6, 1e-21) == "1e-6 ± 0"


def test_settings_go_down_and_methods_across_with_the_authors_at_the_end(results):
    table = quantile_table(results, "n", "t", "compared", "trmse_paper")
    assert table.header == ("setting", *results.methods("compared").values(), "authors' program")
    assert [row[0] for row in table.rows] == results.settings()
    assert all(len(row) == len(table.header) for row in table.rows)
    assert table.rows[0][-1] == "0.0165"
    assert len({len(column) for column in table.columns.values()}) == 1
    also = quantile_table(results, "n", "t", "also", "trmse")
    assert also.header == ("setting", "two-step", "VGM")
    assert also.rows[0][1].splitlines()[-1].endswith("3 failed, 1 not converged")


def test_the_error_of_every_state_has_a_row(results):
    table = statewise_table(results)
    assert [row[0] for row in table.rows[:2]] == ["LV, σ = 0.1: prey", "LV, σ = 0.1: predator"]
    assert len(table.rows) == sum(len(states_of(results, setting)) for setting in results.settings())


def test_the_limit_is_compared_draw_by_draw(results):
    table = limit_table(results)
    assert table.columns["setting"] == results.settings()
    assert table.columns["draws"] == [DRAWS] * 6
    assert table.columns["ratio"] == pytest.approx([1.0] * 6)
    assert table.columns["worse_likelihood"] == [0] * 6
    worse = changed(results, "odin", lambda r: {"stages": {"odin": {"trmse": 1.0}, "refined": {"objective": 1.5}}})
    assert limit_table(worse).columns["worse_likelihood"] == [DRAWS] * 6
    unrefined = changed(results, "odin", lambda r: {"stages": {}})
    assert limit_table(unrefined).columns["worse_likelihood"] == [DRAWS] * 6
    first = min(r["run"]["seed"] for r in results.at("LV, σ = 0.1", "limit"))
    lost = {"status": "failed: gone", "converged": False}
    fewer = changed(results, "limit", lambda r: lost if r["run"]["seed"] == first else {})
    assert limit_table(fewer).columns["draws"] == [DRAWS - 1] * 6


def test_seconds_of_ours_stand_above_those_of_the_paper(results):
    table = seconds_table(results)
    at = table.header.index("AGM")
    assert table.rows[0][at] == "100 ± 0\npaper: 4548 ± 453.8"
    assert "paper" not in table.rows[2][at]  # the paper has none


def test_the_grid_chooses_which_parameters_are_shown(results):
    assert {(name, truth) for _, name, truth in chosen_parameters(results)} == {("k5", 0.017), ("k6", 0.3)}
    table = parameter_table(results)
    assert [row[:2] for row in table.rows][:2] == [("PT, σ = 0.001: k5", "0.017"), ("PT, σ = 0.001: k6", "0.3")]
    medians = np.array(table.columns["median"])
    np.testing.assert_allclose(medians, table.columns["truth"])


def test_before_the_first_result_tables_have_no_rows(results):
    nothing = emptied(results)
    for table in (limit_table, seconds_table, parameter_table, statewise_table):
        assert table(nothing).rows == ()
