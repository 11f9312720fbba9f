"""Median trajectories: quantiles over draws, where what blew up counts as far away."""

import numpy as np
import pytest

from odinfer.paper.bench.report.medians import band, bands, trajectory_table
from paper.bench.report.invented import DRAWS, changed

SETTING = "LV, σ = 0.1"


def test_the_band_lies_around_the_truth_as_the_draws_do(results):
    b = band(results.at(SETTING, "rkg3"))
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

    b = band(changed(results, "rkg3", blown).at(SETTING, "rkg3"))
    assert np.isinf(b.high).all() == high
    assert np.isinf(b.median).all() == median
    assert np.isfinite(b.low).all() == (lost < DRAWS)


def test_without_trajectories_there_is_no_band(results):
    assert band([]) is None
    assert band(results.at(SETTING, "two-step")[:3]) is None
    assert list(bands(results, SETTING)) == list(results.methods("compared").values())


def test_the_table_has_every_time_of_every_state_and_the_distance_from_the_truth(results):
    table = trajectory_table(results)
    assert table.header == ("setting", *results.methods("compared").values())
    assert [row[0] for row in table.rows] == results.settings()
    b = band(results.at(SETTING, "agm"))
    distance, width = table.rows[0][1].splitlines()
    assert float(distance) == pytest.approx(np.sqrt(np.mean((b.median - b.truth) ** 2)), rel=0.05)
    assert width == f"band {np.mean(b.high - b.low):.2g}"
    mine = [s == SETTING and m == "AGM" for s, m in zip(table.columns["setting"], table.columns["method"], strict=True)]
    assert sum(mine) == 2 * len(b.t)
