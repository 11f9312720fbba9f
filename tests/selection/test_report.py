"""What a comparison says: sentences to act on, and files that are complete and harmless."""

import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

import odinfer as od
from fits import EVIL, strict_json
from odinfer.diagnostics.equation_test import Judgement
from odinfer.selection.report import (
    dumps,
    estimates_table,
    evidence,
    failures,
    headline,
    html,
    ranking_table,
    sentence,
    summary,
    summary_rich,
    write_outputs,
)
from selection.rivals import compared, made


def test_the_summary_can_be_acted_on(found):
    text = " ".join(found.summary().split())
    assert "right is preferred over wrong" in text
    assert "the equation for prey contradicts the data (γ = " in text
    assert "predator's does not" in text
    assert "fails at times" in text
    assert "a hint only" in text


def test_files_are_complete_and_escaped(found, tmp_path):
    found.save(tmp_path / "all")
    names = {path.name for path in (tmp_path / "all").iterdir()}
    assert names == {"comparison.html", "comparison.json", "comparison.csv", "gamma.csv"} | {
        "gamma.png", "fits.png", "gaps.png",
    }  # fmt: skip
    page = (tmp_path / "all" / "comparison.html").read_text("utf-8")
    assert "<b>prey</b>" not in page
    assert page.count("data:image/svg+xml;base64,") == 4
    found.save(tmp_path / "c.json")
    content = json.loads((tmp_path / "c.json").read_text("utf-8"))
    assert content["best"] == "right"
    assert content["models"]["wrong <b>prey</b>"]["equations"]["prey"]["verdict"] == "contradicts"
    with pytest.raises(od.InputError, match=r"\.txt"):
        found.save(tmp_path / "c.txt")


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (0.5, "hardly any"),
        (3.0, "positive"),
        (7.0, "strong"),
        (30.0, "very strong"),
    ],
)
def test_the_headline_says_who_is_preferred_and_how_strong_the_evidence_is(difference, words):
    text = headline(compared(one=made(10.0), two=made(10.0 + difference / 2)))
    assert text == (
        f"two is preferred over one by {difference:g} units of BIC ({words} evidence), "
        "and none of its equations contradicts the data."
    )


def test_the_headline_does_not_call_the_best_of_bad_ones_right():
    text = headline(compared(one=made(10.0, ("prey",)), two=made(2.0, ("prey", "predator"))))
    assert text.endswith("but no candidate describes the data: even its equation for prey is rejected.")
    text = headline(compared(one=made(10.0, p=0.01), two=made(2.0)))
    assert "the data reject it too" in text


def test_models_with_equal_curves_are_said_to_be_one_and_estimates_stand_side_by_side(lv_data):
    text = "prey' = a*prey - b*prey*predator\npredator' = {} - c*predator\n"
    same, other = text.format("d*prey*predator"), text.format("d*predator*prey")
    found = od.compare({"one": same, "two": other, "less": text.format("0")}, lv_data, seed=0)
    assert headline(found).startswith(
        "one and two are one model for these data: their curves and likelihoods are equal."
    )
    assert re.search(r"(one|two) is preferred over less by", headline(found))
    table = estimates_table(found)
    assert table.header[1:] == ("A one", "B two", "C less")
    (row,) = [row for row in table.rows if row[0] == "d"]
    assert row[1] == row[2] != row[3] == "-"
    assert re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)", row[1])
    assert row[1] in html(found)


def test_the_headline_ranks_only_what_has_a_trajectory():
    lost = made(np.nan)
    assert "cannot be ranked" in headline(compared(one=lost, two=lost))
    assert headline(compared(one=lost, two=made())).startswith("two is preferred: no other candidate could be fitted")


def test_a_candidate_is_described_equation_by_equation_and_as_a_whole():
    assert sentence("m", made(), 0.05) == "m: no equation contradicts the data."
    assert "the model is rejected, but no single equation" in sentence("m", made(p=0.04), 0.05)
    assert "(p = 0.04 from 99 simulations)" in sentence("m", made(p=0.04), 0.05)
    assert sentence("m", made(p=0.04), 0.01) == "m: no equation contradicts the data."
    text = sentence("m", made(contradicting=("prey",)), 0.05)
    assert text.startswith("m: the equation for prey contradicts the data (γ = 3, at most 0.01 expected; ")
    assert text.endswith("; predator's does not.")
    broken = made(gamma=np.nan, status="failed: nothing is finite", converged=False)
    assert sentence("m", broken, 0.05) == "m: not tested, because the fit failed: nothing is finite."


def test_the_numbers_behind_a_verdict_are_given_in_words():
    assert "a log-evidence of 3 for a pattern in its residuals; p = 0.005 from 199" in evidence(
        Judgement("x", 2.0, 3.0, 0.1, 0.005, 199, True)
    )
    assert "no solution of it follows its data" in evidence(Judgement("x", 2.0, np.inf, 0.1, 1.0, 0, False))
    assert evidence(Judgement("x", 1e-6, 0.0, 1e-6, 1.0, 0, False)) == "γ = 1e-6, at most 1e-6 expected"


def test_where_an_equation_fails_is_said_per_experiment_and_hints_are_called_hints():
    one = failures("m", made(contradicting=("prey",)))
    assert one[0].startswith("m: the equation for prey fails at times ")
    assert "in experiment" not in one[0]
    assert one[-1] == (
        "m: a hint only: the equation for prey may lack prey*predator (gains 120), prey (gains 3.5); discover tests "
        "terms."
    )
    several = failures("m", made(contradicting=("prey",), experiments=("low", "high")))
    assert [line.split(" in experiment ")[1] for line in several[:-1]] == ["low.", "high."]
    assert failures("m", made()) == []


def test_numbers_that_json_has_not_are_null():
    odd = made(np.nan, ("prey",), p=np.nan, signal=np.inf)
    content = strict_json(dumps(compared(one=odd, two=made())))
    assert content["best"] == "two"
    one = content["models"]["one"]
    assert (one["loglik"], one["p"], one["weight"]) == (None, None, 0)
    assert one["equations"]["prey"]["signal"] is None
    assert one["equations"]["prey"]["hints"][0] == ["prey*predator", 120.0]


def test_a_name_is_text_on_the_page_and_no_formula_in_a_spreadsheet(tmp_path):
    comparison = compared(**{EVIL: made(contradicting=("prey",)), "=cmd": made(2.0)})
    assert "<script>alert" not in html(comparison)
    files = {path.name: path for path in write_outputs(comparison, tmp_path / "out")}
    assert next(iter(files)) == "comparison.html"
    for name in ("comparison.csv", "gamma.csv"):
        assert not any(line.startswith("=") for line in files[name].read_text("utf-8").splitlines())


def test_equations_that_nobody_accuses_have_no_picture_of_gaps(tmp_path):
    names = {path.name for path in write_outputs(compared(one=made(), two=made(2.0)), tmp_path)}
    assert "gaps.png" not in names
    assert {"gamma.png", "fits.png"} <= names


def test_candidates_have_letters_and_the_table_ends_with_p():
    table = ranking_table(compared(one=made(1.0), two=made(9.0, p=0.04321)))
    assert table.header == ("", "model", "log L", "unknowns", "AICc", "BIC", "BIC weight", "AICc weight", "p")
    assert [row[:2] for row in table.rows] == [("A", "two"), ("B", "one")]
    assert table.rows[0][-1] == "0.043"
    assert table.rows[1][6] == "<0.001"


LONG = compared(**{"a model with [red]many[/red] words " * 5: made(contradicting=("prey",)), "two": made(2.0)})


def test_the_summary_wraps_and_no_name_is_markup():
    text = summary(LONG)
    assert max(map(len, text.splitlines())) <= 100
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    console.print(summary_rich(LONG))
    drawn = console.file.getvalue()
    assert "[red]" in drawn
    plain = re.sub(r"\x1b\[[0-9;]*m", "", drawn)
    assert max(map(len, plain.splitlines())) <= 80
    for word in ("preferred", "contradicts", "BIC", "Unknowns"):
        assert word in plain
    assert "\x1b[1;31m" in drawn  # the best of them is accused
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    console.print(summary_rich(compared(one=made(), two=made(2.0))))
    assert "\x1b[1;32m" in console.file.getvalue()


def test_a_notebook_shows_the_table_with_the_picture():
    text = compared(**{EVIL: made(contradicting=("prey",)), "two": made(2.0)})._repr_html_()
    assert "<script" not in text
    assert text.count("data:image/svg+xml;base64,") == 1
    assert "units of BIC" in text
    assert len(text) < 2e5
