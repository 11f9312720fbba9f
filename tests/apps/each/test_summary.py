"""Words about many fits: all estimates of a few, the spread of many, and every series that needs a look."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from apps.each.conftest import FAST, RISING, SHORT
from odinfer.apps.each.fits import Fits
from odinfer.apps.each.row import Row
from odinfer.apps.each.summary import headline, spread, summary, tone


def invented(count: int, bad: int = 0) -> Fits:
    rng = np.random.default_rng(0)
    rows = {}
    for i in range(count):
        a = float(2.0 + 0.1 * rng.normal())
        rows[f"s{i}"] = Row("converged", True, {"a": (a, a - 0.2, a + 0.2)}) if i >= bad else Row("failed: so")
    return Fits("m", "odin", {}, rows, {})


def test_a_few_series_are_shown_in_full_and_many_by_their_spread(fits):
    text = summary(fits)
    assert text.startswith("decay, fitted by odin\n13 series, each fitted on its own: 12 converged.\n")
    assert text.count("s0 ") == 2  # k and x(0)
    many = summary(invented(1000, bad=3))
    assert len(many.splitlines()) < 12
    assert "1,000 series, each fitted on its own: 997 converged." in many
    a = many.splitlines()[5].split()
    assert [a[0], *(round(float(v), 1) for v in a[1:])] == ["a", 2.0, 1.8, 2.2, 0.2]
    assert "Without a result: 3, namely s0 (failed: so), s1 (failed: so), s2 (failed: so)." in many


def test_who_needs_a_look_is_named(fits):
    text = " ".join(summary(fits).split())
    assert f"Without a result: 1, namely {SHORT} (failed: state 'x' has too few" in text
    assert f"Contradicting the model: 1, namely {RISING} (x)" in text
    assert f"{FAST} (" in text.partition("Unlike the rest: ")[2]


def test_the_headline_counts_and_the_tone_is_that_of_the_worst():
    assert headline(invented(3)) == "3 series, each fitted on its own: all converged."
    assert headline(invented(1)) == "1 series: 1 converged."
    assert (tone(invented(3)), tone(invented(3, bad=1))) == ("good", "bad")


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_the_spread_lies_in_order_and_of_nothing_there_is_none(values):
    median, low, high, half = spread([(v, v - 1.0, v + 3.0) for v in values])
    assert low <= median <= high if values else np.isnan(median)
    assert abs(half - 2.0) < 1e-6 if values else np.isnan(half)


def test_names_do_not_command_the_terminal():
    rows = {"a\x1b[2Jb": Row("failed: so")}
    assert "\x1b" not in summary(Fits("m\x1b", "odin", {}, rows, {}))
