"""A fit in words: the headline says what to believe, tables have every name, and no name can harm a terminal."""

import dataclasses
import io
import re

import numpy as np
import pytest
from rich.console import Console

import odinfer as od
from fits import ODD, hidden, make_fit, uncertain
from odinfer.result.summary import (
    facts,
    headline,
    parameter_table,
    shown_intervals,
    stage_table,
    state_table,
    summary,
    summary_rich,
    tone,
)
from odinfer.style.text import number

TRUTH = {"a": 1.5, "b": 2.5, "c": 3.5, "d": 4.5}


@pytest.fixture(params=list(ODD))
def fit(request):
    return ODD[request.param]


def rich_of(fit, truth=None, width=120) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(summary_rich(fit, truth))
    return console.file.getvalue()


def test_the_headline_says_what_to_believe():
    assert headline(make_fit()) == "All equations are consistent with the data."
    assert headline(make_fit(contradicting=("prey",))) == (
        "The equation for prey contradicts the data (γ = 3; consistent equations are at 1e-6)."
    )
    assert headline(make_fit(contradicting=("prey", "predator"))) == (
        "The equations for prey and predator contradict the data (γ = 3 and 3)."
    )
    assert headline(make_fit(gamma=False)) == "The equations were fitted but not judged."
    smoothed = dataclasses.replace(make_fit(gamma=False), method="gpr")
    assert headline(smoothed) == "The data were smoothed; the equations played no part."
    assert headline(ODD["infinite"]).startswith("Do not rely on these numbers: the fit did not converge")


def test_the_headline_stays_short_and_honest():
    seven = make_fit(tuple("ABCDEFG"), contradicting=tuple("ABCDEFG"))
    assert "A, B, C, D, E and 2 more contradict" in headline(seven)
    uneven = make_fit(tuple("ABC"), contradicting=("A",))
    uneven.gamma["B"] = 0.01
    assert "consistent equations are at 0.01 or less" in headline(uneven)


def test_the_summary_names_every_parameter_state_verdict_and_warning(fit):
    text = summary(fit)
    for name in (*fit.parameter_names, *fit.state_names):
        assert name[:20] in text
    for verdict in fit.verdicts.values():
        assert verdict in text
    for warning in fit.warnings:
        assert warning in text
    assert fit.status in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_rich_summary_has_the_same_content(fit):
    plain, rich = summary(fit, TRUTH), rich_of(fit, TRUTH, 200)
    for cell in re.findall(r"\S+", "\n".join(line for line in plain.splitlines() if "---" not in line)):
        assert cell.rstrip(".") in rich or cell in ("(gamma",)


def test_the_summary_shows_both_stages_the_truth_and_what_was_fixed():
    text = summary(make_fit(), TRUTH)
    header = next(line for line in text.splitlines() if line.startswith("parameter"))
    assert header.split() == ["parameter", "estimate", "ODIN", "stage", "refined", "stage", "reference"]
    row = next(line for line in text.splitlines() if line.startswith("c "))
    assert row.split() == ["c", "1.2", "1.21", "1.2", "3.5"]
    assert "d (fixed)" in text
    assert "reference" not in summary(make_fit())


def test_the_summary_tells_how_it_was_found():
    text = summary(make_fit())
    for line in ("9 of 10 starts", "refined stage", "matern52", "0.8 s", "seed 0"):
        assert line in text


def test_a_summary_needs_no_details():
    assert "lotka_volterra" in summary(make_fit(details={}))


def test_the_summary_of_ascii_names_is_ascii():
    summary(make_fit(contradicting=("prey",)), TRUTH).encode("ascii")


def test_long_names_and_control_characters_do_not_break_the_terminal():
    fit = make_fit(("x" * 300, "a\x1b[31m\nb"), ("p" * 300,), model="m" * 300, contradicting=("x" * 300,))
    text = summary(fit)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in rich_of(fit)


def test_names_are_no_rich_markup():
    assert "[bold]k" in rich_of(ODD["evil names"])


def test_rmse_and_counts_skip_missing_observations():
    fit = make_fit(missing=0.4)
    e = fit.experiments["1"]
    residuals = (e.y - e.x)[:, 0]
    row = next(row for row in state_table(fit).rows if row[0] == "prey")
    assert float(row[4]) == pytest.approx(np.sqrt(np.nanmean(residuals**2)), rel=1e-2)
    assert row[5] == str(np.isfinite(residuals).sum())


# --- intervals


def test_what_was_asked_for_is_printed_before_the_default():
    fit = uncertain()
    found = []
    for gone in ("", "posterior", "bootstrapped", "profiles", "uncertainty"):
        if gone:
            fit = dataclasses.replace(fit, **{gone: {} if gone == "profiles" else None})
        kind, intervals = shown_intervals(fit)
        found.append(kind)
        assert intervals == (fit.interval(kind=kind) if kind else {})
    assert found == ["sample", "bootstrap", "profile", "likelihood", ""]


def test_an_interval_stands_beside_its_estimate_and_a_fixed_parameter_has_none():
    fit = dataclasses.replace(uncertain(), profiles={}, bootstrapped=None, posterior=None)
    table = parameter_table(fit)
    assert table.header[:4] == ("parameter", "estimate", "95 % from", "to")
    assert [row[:4] for row in table.rows[:4]] == [
        ("a", "1", "0.8", "1.25"),
        ("b", "1.1", "0.8", "1.4"),
        ("c", "1.2", "0.9", "inf"),
        ("d (fixed)", "1.3", "-", "-"),
    ]


def test_initial_values_follow_the_parameters_with_the_intervals_of_their_kind():
    every = uncertain()
    plain = dataclasses.replace(every, profiles={}, bootstrapped=None, posterior=None)
    e = every.experiments["1"]
    first = plain.predict(e.t[:1])
    prey, predator = parameter_table(plain).rows[4:]
    assert (prey[0], predator[0]) == (f"prey({number(e.t[0])})", f"predator({number(e.t[0])})")
    assert prey[1:4] == tuple(
        number(float(first[c].iloc[0]), d) for c, d in (("prey", 5), ("prey_low", 4), ("prey_high", 4))
    )
    assert prey[4:] == tuple(number(s.x[0][0, 0]) for s in every.stages.values())
    refits = parameter_table(dataclasses.replace(every, posterior=None)).rows[4]
    assert refits[2:4] == tuple(number(v[0, 0], 4) for v in every.bootstrapped.band())
    drawn = parameter_table(every, {"a": 1.0}).rows[4]
    assert drawn[2:4] == tuple(number(v, 4) for v in np.quantile(every.posterior.x0["prey"], [0.025, 0.975]))
    assert drawn[-1] == "-"


def test_of_many_initial_values_a_few_are_shown_and_said_to_be_few():
    fit = make_fit(tuple(f"x{i}" for i in range(40)), experiments=("one", "two"))
    rows = parameter_table(fit).rows[4:]
    assert len(rows) == 12
    assert rows[0][0].endswith(", one")
    assert "12 of 80 initial values are shown; states.csv has all." in facts(fit)


def test_the_representation_of_a_fit_is_its_summary():
    assert repr(make_fit()) == make_fit().summary()


def test_what_is_known_about_the_intervals_is_said_with_them():
    fit = uncertain()
    lines = facts(fit)
    assert any(line.startswith("Intervals: posterior, 95 %. Without priors of your own") for line in lines)
    assert "3 of 63 refits of the bootstrap found no trajectory and are left out." in lines
    assert "Posterior (trajectory): converged: R-hat at most 1.010." in lines
    odin = dataclasses.replace(fit, posterior=dataclasses.replace(fit.posterior, target="odin"))
    assert any("less often than that" in line for line in facts(odin))
    sampler = make_fit(samples={"a": np.ones((2, 9))})
    assert any("has not been measured" in line for line in facts(sampler))
    assert not any("Intervals" in line for line in facts(make_fit()))


def test_stages_are_listed_with_what_they_minimised_and_how_they_ended():
    assert stage_table(make_fit()).rows == (
        ("ODIN stage", "-12.5", "3.25", "0.4 s", "converged after 7 steps"),
        ("refined stage", "-11.5", "4.25", "0.4 s", "converged after 7 steps"),
    )


def test_the_tone_is_that_of_the_headline():
    assert tone(make_fit()) == "good"
    assert tone(make_fit(gamma=False)) == "unknown"
    assert tone(make_fit(contradicting=("prey",))) == tone(ODD["infinite"]) == "bad"


# --- where not every state is observed as it is


def test_columns_are_listed_with_their_noise_and_hidden_states_as_such():
    by_row = hidden(sigma={"load": 0.3}, details={"by_row": ["I"]})
    assert state_table(hidden()).header == ("column", "distribution", "noise sd", "residual RMSE", "observations")
    rows = {row[0]: row for row in state_table(hidden()).rows}
    assert list(rows) == ["I", "cases", "load", "S"]
    assert rows["I"][1:3] == ("normal", "0.3")
    assert rows["I"][4] == "40, 6 censored"
    assert rows["cases"][1:3] == ("poisson", "-")
    assert rows["load"][1:3] == ("lognormal", "0.3 of the log")
    assert rows["S"] == ("S", "hidden", "-", "-", "0")
    assert state_table(by_row).rows[0][2] == "by row"


def test_a_model_that_is_not_judged_by_equations_is_judged_as_a_whole():
    def said(p: float) -> tuple[str, str]:
        fit = hidden(details={"model_test": {"p": p, "draws": 99}})
        return headline(fit), tone(fit)

    words, colour = said(0.01)
    assert words.startswith("The model as a whole contradicts the data: the best trajectory leaves a pattern")
    assert colour == "bad"
    assert said(0.4) == ("The model as a whole is consistent with the data (p = 0.4).", "good")
    assert headline(hidden()).endswith("no pattern is left in the residuals.")
    other = hidden(method="trajectory")
    assert (headline(other), tone(other)) == ("The equations were fitted but not judged.", "unknown")


def test_initial_values_are_where_the_curve_starts_and_given_ones_are_said_to_be():
    fit = hidden()
    rows = [row for row in parameter_table(fit).rows if row[0].startswith(("S(", "I("))]
    start = fit.experiments["one"].curve.t[0]
    # S(0) is a parameter, so it is not repeated.
    assert [row[0] for row in rows] == [
        "S(0)", f"I({number(start)}), one (given)", f"I({number(fit.experiments['two'].curve.t[0])}), two (given)",
    ]  # fmt: skip
    assert rows[1][1] == number(fit.experiments["one"].curve.x[0, 1])


def test_an_initial_value_that_is_the_same_in_all_experiments_has_one_row():
    t = np.linspace(0.5, 4.0, 8)
    one, other = (od.Data(t, 3.0 * np.exp(-k * t)[:, None] + 0.01 * np.cos(9 * t)[:, None], ["x"]) for k in (0.5, 0.7))
    model = od.Model.from_text("x' = -k*x; x(0) = 3; local k; log k")
    said = od.fit(model, od.Data.join({"a": one, "b": other})).summary()
    assert said.count("x(0) (given)") == 1
    assert "x(0), a" not in said
