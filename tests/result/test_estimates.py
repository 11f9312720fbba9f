"""Tables of estimates: the same digits in an estimate and its interval, errors in percent, and Bayesian words."""

import dataclasses

import numpy as np
import pytest

import odinfer as od
from fits import hidden, make_fit, uncertain
from odinfer.result.estimates import (
    Estimate,
    correlation_table,
    parameter_table,
    posterior_table,
    shown_intervals,
    standard_errors,
)
from odinfer.result.summary import facts, summary
from odinfer.style.text import number

TRUTH = {"a": 1.5, "b": 2.5, "c": 3.5, "d": 4.5}
LIKELIHOOD = dataclasses.replace(uncertain(), profiles={}, bootstrapped=None, posterior=None)


def test_the_other_stage_the_truth_and_what_was_fixed_stand_beside_the_estimate():
    text = summary(make_fit(), TRUTH)
    header = next(line for line in text.splitlines() if line.startswith("parameter"))
    assert header.split() == ["parameter", "estimate", "ODIN", "stage", "reference"]
    row = next(line for line in text.splitlines() if line.startswith("c "))
    assert row.split() == ["c", "1.2", "1.21", "3.5"]
    assert "d (fixed)" in text
    assert "reference" not in summary(make_fit())
    kept = make_fit(details={"stage_used": "odin"})
    assert parameter_table(kept).header == ("parameter", "estimate", "refined stage")


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
    for kind, draws in (("sample", fit.posterior.theta), ("bootstrap", fit.bootstrapped.theta)):
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
    draws = fit.posterior.theta["a"]
    assert float(table.rows[0][1]) == pytest.approx(draws.mean(), abs=1e-3)
    assert [float(cell) for cell in table.rows[0][4:6]] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=1e-3)
    assert table.rows[0][6:] == ("1.010", "90")
    assert posterior_table(make_fit()) is None


def test_correlations_fill_half_a_table():
    table = correlation_table(LIKELIHOOD)
    assert table.header == ("", "a", "b")
    assert table.rows == (("b", f"{0.004 / np.sqrt(0.0002):+.2f}", ""), ("c", "+0.00", "+0.00"))
    drawn = correlation_table(uncertain())
    expected = np.corrcoef(*(uncertain().posterior.theta[n].ravel() for n in "ab"))[0, 1]
    assert drawn.rows[0][1] == f"{expected:+.2f}"
    assert correlation_table(make_fit()) is None


def test_initial_values_follow_the_parameters_with_the_intervals_of_their_kind():
    e = uncertain().experiments["1"]
    first = LIKELIHOOD.predict(e.t[:1])
    prey, predator = parameter_table(LIKELIHOOD).rows[4:]
    assert (prey[0], predator[0]) == (f"prey({number(e.t[0])})", f"predator({number(e.t[0])})")
    for cell, column in zip((prey[1], *prey[3:5]), ("prey", "prey_low", "prey_high"), strict=True):
        assert float(cell) == pytest.approx(float(first[column].iloc[0]), abs=1e-3)
    assert float(prey[5]) == pytest.approx(uncertain().stages["odin"].x[0][0, 0], abs=1e-3)
    refits = parameter_table(dataclasses.replace(uncertain(), posterior=None)).rows[4]
    ends = [v[0, 0] for v in uncertain().bootstrapped.band()]
    assert [float(v) for v in refits[3:5]] == pytest.approx(ends, abs=1e-3)
    drawn = parameter_table(uncertain(), {"a": 1.0}).rows[4]
    ends = np.quantile(uncertain().posterior.x0["prey"], [0.025, 0.975])
    assert [float(v) for v in drawn[3:5]] == pytest.approx(ends, abs=1e-2)
    assert drawn[-1] == "-"


def test_initial_values_are_where_the_curve_starts_and_given_ones_are_said_to_be():
    fit = hidden()
    rows = [row for row in parameter_table(fit).rows if row[0].startswith(("S(", "I("))]
    start = fit.experiments["one"].curve.t[0]
    # S(0) is a parameter, so it is not repeated.
    assert [row[0] for row in rows] == [
        "S(0)", f"I({number(start)}), one (given)", f"I({number(fit.experiments['two'].curve.t[0])}), two (given)",
    ]  # fmt: skip
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
