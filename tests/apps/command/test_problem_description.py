"""What `check` says of a model's statements: all that was understood, in sentences, and nothing that was not said."""

import numpy as np
import pytest

import odinfer as od
from odinfer.apps.command.problem_description import sentences

T = np.linspace(0.0, 4.0, 9)


def said(text: str, *columns: str, **more) -> str:
    model = od.Model.from_text(text)
    y = np.column_stack([np.round(20 * np.exp(-0.5 * T)) + 1] * len(columns))
    return "\n".join(sentences(od.Problem(model, od.Data(T, y, states=columns, **more))))


def test_what_is_observed_hidden_and_given_is_said():
    text = said(
        """S' = -b*S*I/N
        I' = b*S*I/N - g*I
        incidence = b*S*I/N
        cases ~ poisson(rho*incidence)
        S(0) = N - I(0); fixed N = 100; 0 < I(0) < 9""",
        "cases",
    )
    assert text.splitlines() == [
        "cases is Poisson with mean rho*incidence.",
        "S and I are hidden.",
        "Given at time 0: S(0) = N - I(0).",
        "Estimated as parameters, at time 0: I(0).",
        "Assumed positive: b, g and rho. Write 'real b' for a parameter of any sign.",
    ]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("n ~ negbinomial(x, k=3)", "n is negative binomial with mean x, k 3."),
        ("n ~ negbinomial(x)", "n is negative binomial with mean x."),
        ("n ~ lognormal(2*x)", "n is log-normal about 2*x, sd estimated."),
        ("n ~ normal(x, s0 + s1*x)", "n is normal about x, sd s0 + s1*x."),
        ("n ~ student(x, 0.2, 5)", "n is Student's t about x, sd 0.2, degrees of freedom 5."),
        ("n ~ binomial(p*x, 50)", "n is binomial with mean p*x, n 50."),
    ],
)
def test_every_distribution_is_put_into_words(column, words):
    assert words in said(f"x' = -r*x; {column}", "n")


def test_states_and_definitions_without_a_distribution_are_normal_about_themselves():
    text = said("x' = -k*x; double = 2*x; y' = x - y", "double", "y")
    assert "y is normal about y, sd estimated." in text
    assert "double is normal about double, sd estimated." in text
    assert "x is hidden." in text
    assert "Free at the first time: x and y." in text


def test_events_doses_known_errors_and_limits_are_said():
    limit = np.zeros((9, 1))
    limit[-2:] = -1
    text = said(
        "gut' = -a*gut; x' = a*gut - k*x; at 1, 3: gut = gut + 5, x = 0", "x",
        limit=limit, sd=np.full((9, 1), 0.3), doses=[(0.0, 10.0, "gut"), (2.0, 5.0, "1")],
    )  # fmt: skip
    assert "x is normal about x, sd by row, 2 beyond a limit of detection." in text
    assert "At 1 and 3: gut = gut + 5, x = 0." in text
    assert "2 doses of 5 and 10 into gut." in text


def test_local_parameters_are_said_where_there_are_several_experiments():
    part = od.Data(T, np.exp(-T), states=["x"])
    model = od.Model.from_text("x' = -k*x + z; z' = -k*z; local k")
    both = od.Problem(model, od.Data.join({"one": part, "two": part}))
    assert "One value per experiment: k." in sentences(both)


def test_events_that_conditions_make_happen_are_said():
    text = "x' = -k*x; when x < 1 and t > 2: x = x + d; x(0) = 5"
    said = sentences(od.Problem(od.Model.from_text(text), od.Data([0.0, 1.0, 2.0], [5.0, 4.0, 3.0], ["x"])))
    assert "Whenever x < 1 and t > 2 becomes true: x = x + d." in said
