"""Tables of results: quantiles over draws, median trajectories, marginals, verdicts, and run times over sizes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.paper.bench.compute import QUANTILES
from odinfer.paper.bench.report.results import Results, Summary
from odinfer.paper.bench.report.tables import (
    append_row,
    chosen_parameters,
    equation_verdicts,
    format_summary,
    gamma_table,
    limit_table,
    marginal_table,
    marginals,
    parameter_table,
    plus_minus,
    quantile_band,
    quantile_bands,
    quantile_table,
    scaling_table,
    scalings,
    seconds_table,
    states_of,
    statewise_table,
    trajectory_table,
    trouble_counts,
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
    append_row(columns, (3, 4))
    assert columns == {"a": [1, 3], "b": [2, 4]}
    with pytest.raises(ValueError, match="shorter"):
        append_row(columns, (5,))


def test_quartiles_stand_below_the_median_and_what_one_must_know_below_both():
    s = Summary(draws=4, failed=1, unconverged=2, low=0.5, median=1.23456, high=2.0, sd=0.1)
    assert format_summary(s) == "1.23\n0.5–2\n1 failed, 2 not converged"
    assert format_summary(s, planned=9) == "1.23\n0.5–2\n4 draws, 1 failed, 2 not converged"
    assert format_summary(s._replace(failed=0, unconverged=0)) == "1.23\n0.5–2"
    assert format_summary(s._replace(median=math.nan)) == "-"
    assert trouble_counts(s._replace(failed=0, unconverged=0), planned=4) == []


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


SETTING = "LV, σ = 0.1"


def test_the_band_lies_around_the_truth_as_the_draws_do(results):
    b = quantile_band(results.at(SETTING, "rkg3"))
    errors = [r["outcome"]["trmse"] for r in results.at(SETTING, "rkg3")]
    assert b.draws == len(errors) == DRAWS
    np.testing.assert_allclose(b.median - b.truth, np.sort(errors)[1], rtol=1e-4)
    np.testing.assert_allclose(b.low - b.truth, np.sort(errors)[0], rtol=1e-4)
    np.testing.assert_allclose(b.high - b.truth, np.sort(errors)[2], rtol=1e-4)
    assert b.truth.shape == (len(b.t), 2)


@pytest.mark.parametrize(("lost", "high", "median"), [(1, False, False), (2, True, False), (3, True, True)])
def test_trajectories_that_blow_up_push_the_band_to_infinity_and_never_to_nothing(results, lost, high, median):
    seeds = sorted(r["run"]["seed"] for r in results.at(SETTING, "rkg3"))[:lost]

    def blown(record):
        if record["run"]["seed"] not in seeds:
            return {}
        return {"trajectory": {s: [None] * len(x) for s, x in record["outcome"]["trajectory"].items()}}

    b = quantile_band(changed(results, "rkg3", blown).at(SETTING, "rkg3"))
    assert np.isinf(b.high).all() == high
    assert np.isinf(b.median).all() == median
    assert np.isfinite(b.low).all() == (lost < DRAWS)


def test_without_trajectories_there_is_no_band(results):
    assert quantile_band([]) is None
    assert quantile_band(results.at(SETTING, "two-step")[:3]) is None
    assert list(quantile_bands(results, SETTING)) == list(results.methods("compared").values())


def test_the_table_has_every_time_of_every_state_and_the_distance_from_the_truth(results):
    table = trajectory_table(results)
    assert table.header == ("setting", *results.methods("compared").values())
    assert [row[0] for row in table.rows] == results.settings()
    b = quantile_band(results.at(SETTING, "agm"))
    distance, width = table.rows[0][1].splitlines()
    assert float(distance) == pytest.approx(np.sqrt(np.mean((b.median - b.truth) ** 2)), rel=0.05)
    assert width == f"band {np.mean(b.high - b.low):.2g}"
    mine = [s == SETTING and m == "AGM" for s, m in zip(table.columns["setting"], table.columns["method"], strict=True)]
    assert sum(mine) == 2 * len(b.t)


def test_samplers_alone_have_marginals_and_of_the_parameters_that_the_grid_chooses(results):
    found = marginals(results)
    assert {m.method for m in found} == {"AGM", "FGPGM"}
    assert {(m.setting.split(",")[0], m.parameter) for m in found} == {("LV", "d"), ("PT", "k6")}
    assert all(m.quantiles.shape == QUANTILES.shape and (np.diff(m.quantiles) >= 0).all() for m in found)
    every = replace(results, grid=replace(results.grid, report={}))
    assert {m.parameter for m in marginals(every) if m.setting.startswith("LV")} == {"a", "b", "c", "d"}


def test_the_first_draw_that_worked_is_shown(results):
    first = results.grid.first_seed
    assert {m.seed for m in marginals(results)} == {first}
    lost = {"status": "lost: its worker died", "converged": False}
    other = changed(results, "agm", lambda r: lost if r["run"]["seed"] == first else {})
    assert {m.seed for m in marginals(other) if m.method == "AGM"} == {first + 1}
    assert not [m for m in marginals(changed(results, "agm", lambda r: lost)) if m.method == "AGM"]


def test_the_table_gives_the_moments_and_says_where_chains_have_not_mixed(results):
    table = marginal_table(results)
    assert len(table.rows) == len(marginals(results))
    assert table.rows[0][2:] == ("0", "1", "0", "0")
    assert not any("not mixed" in row[1] for row in table.rows)
    loose = marginal_table(changed(results, "fgpgm", lambda r: {"converged": False}))
    assert {row[1] for row in loose.rows} == {"AGM", "FGPGM\nchains not mixed"}
    assert set(loose.columns["converged"]) == {True, False}


def test_every_equation_of_every_candidate_is_judged_over_its_draws(results):
    found = equation_verdicts(results)
    assert {j.candidate for j in found} == {"M11", "M01", "M10", "M00"}
    wrong = {(j.candidate, j.state) for j in found if j.wrong}
    assert wrong == {("M01", "prey"), ("M10", "predator"), ("M00", "prey"), ("M00", "predator")}
    for j in found:
        assert (j.draws, j.right, j.failed) == (DRAWS, DRAWS, 0)
        assert j.median == (2.0 if j.wrong else 1e-6)
        assert j.gamma.shape == (DRAWS,)


def test_who_accuses_nobody_is_wrong_about_every_wrong_equation_and_right_about_the_others(results):
    blind = changed(results, "odin", lambda r: {"verdicts": {"prey": "consistent", "predator": "consistent"}})
    found = [j for j in equation_verdicts(blind) if j.method == "odin"]
    assert any(j.wrong for j in found)
    assert all(j.right == (0 if j.wrong else DRAWS) for j in found)


def test_a_run_that_failed_judged_nothing_and_counts_as_failed(results):
    lost = {"status": "failed: gone", "converged": False, "verdicts": {}, "gamma": {}}
    found = [j for j in equation_verdicts(changed(results, "odin", lambda r: lost)) if j.method == "odin"]
    assert all((j.right, j.failed) == (0, DRAWS) for j in found)
    assert all(np.isinf(j.gamma).all() for j in found)


def test_the_table_has_the_papers_numbers_beside_ours_and_the_share_of_right_verdicts(results):
    table = gamma_table(results)
    assert len(table.rows) == len(equation_verdicts(results))
    row = next(row for row in table.rows if row[0] == "M00: predator")
    assert row[2:] == ("wrong", "2 ± 0", "1.53 ± 0.35", f"{DRAWS} of {DRAWS}")
    assert table.columns["verdict_right"] == pytest.approx([1.0] * len(table.rows))


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
