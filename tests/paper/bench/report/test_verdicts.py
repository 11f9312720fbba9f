"""Verdicts on candidates: right where the wrong equation is accused and the others are not."""

import numpy as np
import pytest

from odinfer.paper.bench.report.verdicts import gamma_table, judged
from paper.bench.report.invented import DRAWS, changed


def test_every_equation_of_every_candidate_is_judged_over_its_draws(results):
    found = judged(results)
    assert {j.candidate for j in found} == {"M11", "M01", "M10", "M00"}
    wrong = {(j.candidate, j.state) for j in found if j.wrong}
    assert wrong == {("M01", "prey"), ("M10", "predator"), ("M00", "prey"), ("M00", "predator")}
    for j in found:
        assert (j.draws, j.right, j.failed) == (DRAWS, DRAWS, 0)
        assert j.median == (2.0 if j.wrong else 1e-6)
        assert j.gamma.shape == (DRAWS,)


def test_who_accuses_nobody_is_wrong_about_every_wrong_equation_and_right_about_the_others(results):
    blind = changed(results, "odin", lambda r: {"verdicts": {"prey": "consistent", "predator": "consistent"}})
    found = [j for j in judged(blind) if j.method == "odin"]
    assert any(j.wrong for j in found)
    assert all(j.right == (0 if j.wrong else DRAWS) for j in found)


def test_a_run_that_failed_judged_nothing_and_counts_as_failed(results):
    lost = {"status": "failed: gone", "converged": False, "verdicts": {}, "gamma": {}}
    found = [j for j in judged(changed(results, "odin", lambda r: lost)) if j.method == "odin"]
    assert all((j.right, j.failed) == (0, DRAWS) for j in found)
    assert all(np.isinf(j.gamma).all() for j in found)


def test_the_table_has_the_papers_numbers_beside_ours_and_the_share_of_right_verdicts(results):
    table = gamma_table(results)
    assert len(table.rows) == len(judged(results))
    row = next(row for row in table.rows if row[0] == "M00: predator")
    assert row[2:] == ("wrong", "2 ± 0", "1.53 ± 0.35", f"{DRAWS} of {DRAWS}")
    assert table.columns["verdict_right"] == pytest.approx([1.0] * len(table.rows))
