"""Marginals at fixed γ: of the first draw that worked, with the moments of its record."""

from dataclasses import replace

import numpy as np

from odinfer.paper.bench.compute import QUANTILES
from odinfer.paper.bench.report.marginals import marginal_table, marginals
from paper.bench.report.invented import changed


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
