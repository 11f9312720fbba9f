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
    amounts,
    constant_table,
    facts,
    headline,
    stage_table,
    state_table,
    summary,
    summary_rich,
    taken,
    tone,
)

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


def test_the_representation_of_a_fit_is_its_summary():
    assert repr(make_fit()) == make_fit().summary()


def test_what_is_known_about_the_intervals_is_said_with_them():
    fit = uncertain()
    lines = facts(fit)
    assert any(
        line.startswith("Credible intervals: of the posterior, 95 %. Without priors of your own") for line in lines
    )
    assert "3 of 63 refits of the bootstrap found no trajectory and are left out." in lines
    assert "Posterior (trajectory): converged: R-hat at most 1.010." in lines
    odin = dataclasses.replace(fit, posterior=dataclasses.replace(fit.posterior, target="odin"))
    assert any("less often than that" in line for line in facts(odin))
    sampler = make_fit(samples={"a": np.ones((2, 9))})
    assert any("has not been measured" in line for line in facts(sampler))
    assert not any("ntervals" in line for line in facts(make_fit()))


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


def test_data_unknowns_and_criteria_are_counted():
    details = {"observations": {"prey": 20, "predator": 19}, "unknowns": 8, "loglik": 39.244}
    known = dataclasses.replace(uncertain(), details=details)
    (line,) = amounts(known)
    assert line.startswith("39 observations, 8 unknowns (parameters, initial values, noise); log-likelihood 39.244")
    assert line.endswith(", AIC -62.488, BIC -49.18.")
    assert amounts(make_fit(details=details)) == ["39 observations, 8 unknowns (parameters, initial values, noise)."]
    assert amounts(make_fit()) == []


def test_the_time_taken_includes_the_sampling():
    assert taken(make_fit()) == "0.8 s"
    assert taken(uncertain()) == "3.3 s, 0.8 s for the fit and 2.5 s for sampling"


def test_inputs_with_one_value_have_a_row_per_experiment_and_others_none():
    t, model = np.linspace(0.5, 4.0, 8), od.Model.from_text("input u, v\nx' = -k*x + u + v")
    inputs = {"u": ([0.0], [2.5]), "v": (t, np.sin(t))}
    fit = make_fit(("x",), ("k",), problem=od.Problem(model, od.Data(t, t[:, None], ["x"], inputs=inputs)))
    table = constant_table(fit)
    assert table.header == ("experiment", "u")
    assert [row[1:] for row in table.rows] == [("2.5",)]
    assert constant_table(make_fit()) is None
