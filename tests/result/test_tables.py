"""The result in words and tables: the headline, estimates with errors, and facts."""

import dataclasses
import io
import re

import numpy as np
import pytest
from rich.console import Console

import odinfer as od
from fits import ODD, hidden, make_fit, uncertain
from odinfer.result.estimates import (
    Estimate,
    correlation_table,
    parameter_table,
    posterior_table,
    preferred_intervals,
    standard_errors,
)
from odinfer.result.summary import (
    constant_table,
    data_counts,
    facts,
    headline,
    stage_table,
    state_table,
    summary,
    summary_rich,
    time_taken,
    tone,
)
from odinfer.style.text import format_number

TRUTH = {"a": 1.5, "b": 2.5, "c": 3.5, "d": 4.5}
LIKELIHOOD = dataclasses.replace(uncertain(), profiles={}, bootstrapped=None, sampled=None)


def test_the_other_stage_the_truth_and_what_was_fixed_stand_beside_the_estimate():
    text = summary(make_fit(), TRUTH)
    header = next(line for line in text.splitlines() if line.startswith("parameter"))
    assert header.split() == ["parameter", "estimate", "reference"]
    row = next(line for line in text.splitlines() if line.startswith("c "))
    assert row.split() == ["c", "1.2", "3.5"]
    assert "d (fixed)" in text
    assert "reference" not in summary(make_fit())
    kept = make_fit(details={"stage_used": "odin"})
    assert "by slopes" not in summary(make_fit())
    assert "The estimate matches slopes (ODIN)" in summary(kept)


def test_what_was_asked_for_is_printed_before_the_default():
    fit = uncertain()
    found = []
    for gone in ("", "sampled", "bootstrapped", "profiles", "uncertainty"):
        if gone:
            fit = dataclasses.replace(fit, **{gone: {} if gone == "profiles" else None})
        kind, intervals = preferred_intervals(fit)
        found.append(kind)
        assert intervals == (fit.interval(kind=kind) if kind else {})
    assert found == ["sample", "bootstrap", "profile", "likelihood", ""]


def test_an_interval_stands_beside_its_estimate_with_as_many_digits_and_a_fixed_parameter_has_none():
    table = parameter_table(LIKELIHOOD)
    assert table.header[:5] == ("parameter", "estimate", "std. error %", "95 % from", "to")
    assert [row[:5] for row in table.rows[:4]] == [
        ("a", "1.00", "10", "0.80", "1.25"),
        ("b", "1.10", "13", "0.80", "1.40"),
        ("c", "1.20", "19", "0.90", "inf"),
        ("d (fixed)", "1.3", "-", "-", "-"),
    ]


def test_the_error_is_that_of_the_kind_that_is_shown():
    fit = uncertain()
    for kind, draws in (("sample", fit.sampled.theta), ("bootstrap", fit.bootstrapped.theta)):
        assert standard_errors(fit, kind) == {name: pytest.approx(np.std(v)) for name, v in draws.items()}
    # On a log scale the covariance is that of the logarithm.
    assert standard_errors(fit, "likelihood") == pytest.approx({"a": 0.1, "b": np.sqrt(0.02), "c": np.sqrt(0.05)})
    assert standard_errors(make_fit(), "") == {}


def test_a_posterior_has_bayesian_words_and_a_table_of_its_own():
    fit = uncertain()
    assert parameter_table(fit).header[:5] == ("parameter", "estimate", "posterior sd %", "95 % credible from", "to")
    table = posterior_table(fit)
    assert table.header[1:] == (
        "posterior mean",
        "median",
        "sd",
        "95 % credible from",
        "to",
        "R-hat",
        "effective draws",
    )
    assert [row[0] for row in table.rows] == ["a", "b", "c", "start of prey", "σ of prey"]
    draws = fit.sampled.theta["a"]
    assert float(table.rows[0][1]) == pytest.approx(draws.mean(), abs=1e-3)
    assert [float(cell) for cell in table.rows[0][4:6]] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=1e-3)
    assert table.rows[0][6:] == ("1.010", "90")
    assert posterior_table(make_fit()) is None


def test_correlations_fill_half_a_table():
    table = correlation_table(LIKELIHOOD)
    assert table.header == ("", "a", "b")
    assert table.rows == (("b", f"{0.004 / np.sqrt(0.0002):+.2f}", ""), ("c", "+0.00", "+0.00"))
    drawn = correlation_table(uncertain())
    expected = np.corrcoef(*(uncertain().sampled.theta[n].ravel() for n in "ab"))[0, 1]
    assert drawn.rows[0][1] == f"{expected:+.2f}"
    assert correlation_table(make_fit()) is None


def test_initial_values_follow_the_parameters_with_the_intervals_of_their_kind():
    e = uncertain().experiments["1"]
    first = LIKELIHOOD.predict(e.t[:1])
    prey, predator = parameter_table(LIKELIHOOD).rows[4:]
    assert (prey[0], predator[0]) == (f"prey({format_number(e.t[0])})", f"predator({format_number(e.t[0])})")
    for cell, column in zip((prey[1], *prey[3:5]), ("prey", "prey_low", "prey_high"), strict=True):
        assert float(cell) == pytest.approx(float(first[column].iloc[0]), abs=1e-3)
    refits = parameter_table(dataclasses.replace(uncertain(), sampled=None)).rows[4]
    ends = [v[0, 0] for v in uncertain().bootstrapped.band()]
    assert [float(v) for v in refits[3:5]] == pytest.approx(ends, abs=1e-3)
    drawn = parameter_table(uncertain(), {"a": 1.0}).rows[4]
    ends = np.quantile(uncertain().sampled.x0["prey"], [0.025, 0.975])
    assert [float(v) for v in drawn[3:5]] == pytest.approx(ends, abs=1e-2)
    assert drawn[-1] == "-"


def test_initial_values_are_where_the_curve_starts_and_given_ones_are_said_to_be():
    fit = hidden()
    rows = [row for row in parameter_table(fit).rows if row[0].startswith(("S(", "I("))]
    one, two = (format_number(fit.experiments[name].curve.t[0]) for name in ("one", "two"))
    # S(0) is a parameter, so it is not repeated.
    assert [row[0] for row in rows] == ["S(0)", f"I({one}), one (given)", f"I({two}), two (given)"]
    assert float(rows[1][1]) == pytest.approx(fit.experiments["one"].curve.x[0, 1], abs=1e-2)


@pytest.mark.parametrize(("sd", "known"), [(1e-9, True), (0.1, False), (np.inf, True)])
def test_a_given_initial_value_has_an_interval_only_where_one_is_known(sd, known):
    fit = dataclasses.replace(LIKELIHOOD, noise={"prey": "normal", "predator": "normal"}, details={"given": ["prey"]})
    (label, e) = next(iter(fit.experiments.items()))
    curve = dataclasses.replace(e.curve, sd=np.full_like(e.curve.x, sd))
    fit = dataclasses.replace(fit, experiments={label: dataclasses.replace(e, curve=curve)})
    (row,) = (row for row in parameter_table(fit).rows if row[0].endswith("(given)"))
    assert (row[2:5] == ("-", "-", "-")) == known


def test_an_initial_value_that_is_the_same_in_all_experiments_has_one_row():
    t = np.linspace(0.5, 4.0, 8)
    one, other = (od.Data(t, 3.0 * np.exp(-k * t)[:, None] + 0.01 * np.cos(9 * t)[:, None], ["x"]) for k in (0.5, 0.7))
    model = od.Model.from_text("x' = -k*x; x(0) = 3; local k; log k")
    said = od.fit(model, od.Data.join({"a": one, "b": other})).summary()
    assert said.count("x(0) (given)") == 1
    assert "x(0), a" not in said


def test_of_many_initial_values_a_few_are_shown_and_said_to_be_few():
    fit = make_fit(tuple(f"x{i}" for i in range(40)), experiments=("one", "two"))
    rows = parameter_table(fit).rows[4:]
    assert len(rows) == 12
    assert rows[0][0].endswith(", one")
    assert "12 of 80 initial values are shown; states.csv has all." in facts(fit)


def test_an_estimate_at_an_end_of_its_interval_has_the_digits_of_the_other_side():
    row = Estimate("R0", 5.0 - 1e-10, np.inf, (1.5, 5.0), ())
    assert row.cells(True) == ("R0", "5.0", "inf", "1.5", "5.0")


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
    assert headline(make_fit(gamma=False)) == "The equations were fitted but not tested."
    smoothed = dataclasses.replace(make_fit(gamma=False), method="gpr")
    assert headline(smoothed) == "The data were smoothed; the equations were not used."
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


def test_the_summary_tells_how_it_was_found():
    text = summary(make_fit())
    for line in ("9 of 10 start points", "0.8 s", "seed 0"):
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


def test_the_representation_of_a_fit_is_its_summary():
    assert repr(make_fit()) == make_fit().summary()


def test_what_is_known_about_the_intervals_is_said_with_them():
    fit = uncertain()
    lines = facts(fit)
    assert any(line.startswith("Credible intervals: 95 %, posterior.") for line in lines)
    assert "3 of 63 refits of the bootstrap failed and are left out." in lines
    assert "Posterior (trajectory): converged: R-hat at most 1.010." in lines
    odin = dataclasses.replace(fit, sampled=dataclasses.replace(fit.sampled, target="odin"))
    assert any("cover the truth less often" in line for line in facts(odin))
    sampler = make_fit(samples={"a": np.ones((2, 9))})
    assert any("has not been measured" in line for line in facts(sampler))
    assert not any("ntervals" in line for line in facts(make_fit()))


def test_stages_are_listed_with_what_they_minimised_and_how_they_ended():
    assert stage_table(make_fit()).rows == (
        ("ODIN (slopes)", "-12.5", "3.25", "0.4 s", "converged after 7 steps"),
        ("maximum likelihood", "-11.5", "4.25", "0.4 s", "converged after 7 steps"),
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
    assert words.startswith("The model contradicts the data: its best trajectory leaves a pattern")
    assert colour == "bad"
    assert said(0.4) == ("The model is consistent with the data (p = 0.4).", "good")
    assert headline(hidden()).endswith("the residuals show no pattern (p > 0.05).")
    other = hidden(method="trajectory")
    assert (headline(other), tone(other)) == ("The equations were fitted but not tested.", "unknown")


def test_data_unknowns_and_criteria_are_counted():
    details = {"observations": {"prey": 20, "predator": 19}, "unknowns": 8, "loglik": 39.244}
    known = dataclasses.replace(uncertain(), details=details)
    (line,) = data_counts(known)
    assert line.startswith("39 observations, 8 unknowns (parameters, initial values, noise); log-likelihood 39.244")
    assert line.endswith(", AIC -62.488, BIC -49.18.")
    assert data_counts(make_fit(details=details)) == [
        "39 observations, 8 unknowns (parameters, initial values, noise)."
    ]
    assert data_counts(make_fit()) == []


def test_the_time_taken_includes_the_sampling():
    assert time_taken(make_fit()) == "0.8 s"
    assert time_taken(uncertain()) == "3.3 s, 0.8 s for the fit and 2.5 s for sampling"


def test_inputs_with_one_value_have_a_row_per_experiment_and_others_none():
    t, model = np.linspace(0.5, 4.0, 8), od.Model.from_text("input u, v\nx' = -k*x + u + v")
    inputs = {"u": ([0.0], [2.5]), "v": (t, np.sin(t))}
    fit = make_fit(("x",), ("k",), problem=od.Problem(model, od.Data(t, t[:, None], ["x"], inputs=inputs)))
    table = constant_table(fit)
    assert table.header == ("experiment", "u")
    assert [row[1:] for row in table.rows] == [("2.5",)]
    assert constant_table(make_fit()) is None
