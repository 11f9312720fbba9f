"""Unknown functions in texts: what they become, and what is said about what cannot be read."""

import numpy as np
import pytest

import odinfer as od


def values(text, x, theta=None):
    """dx/dt of a model of one state at states x, with random coefficients."""
    model = od.Model.from_text(text)
    rng = np.random.default_rng(0)
    own = rng.normal(size=len(model.parameters)) if theta is None else theta
    return model.evaluate(np.zeros(len(x)), x[:, None], own, np.zeros((len(x), 0)))[:, 0]


GRID = np.linspace(-2, 14, 161)


def test_a_function_becomes_a_mean_and_coefficients_with_normal_priors():
    model = od.Model.from_text("x' = -k*x + ?(x)")
    own = model.declarations.unknown[0]
    assert own.label == "?(x)"
    assert set(own.parameters) == set(model.parameters) - {"k"}
    assert {model.prior[name][0] for name in own.coefficients} == {"normal"}
    assert model.text == "x' = -k*x + ?(x)"


def test_the_same_function_in_two_equations_is_one_and_names_tell_functions_apart():
    model = od.Model.from_text("S' = -?(t)*S; I' = ?(t)*S - ?out(I)")
    assert [own.label for own in model.declarations.unknown] == ["?(t)", "?out(I)"]


def test_outside_its_range_a_function_keeps_its_last_value():
    f = values("x' = ?(x); ?(x) from 0 to 12", GRID)
    assert np.ptp(f[GRID <= 0]) == 0.0
    assert np.ptp(f[GRID >= 12]) == 0.0
    assert np.ptp(f) > 0.1


def test_shapes_hold_for_any_coefficients():
    assert (values("x' = ?(x); ?(x) >= 0; ?(x) from 0 to 12", GRID) > 0).all()
    theta = np.exp(np.random.default_rng(1).normal(size=9))
    rising = values("x' = ?(x); ?(x) increasing from 0 to 12".replace(" from", "; ?(x) from"), GRID, theta)
    assert (np.diff(rising) >= -1e-12).all()
    falling = values("x' = ?(x); ?(x) decreasing; ?(x) from 0 to 12", GRID, theta)
    assert (np.diff(falling) <= 1e-12).all()
    assert (falling > theta[0]).all()
    positive = od.Model.from_text("x' = ?(x); ?(x) decreasing >= 0; ?(x) from 0 to 12")
    assert {positive.bounds[name] for name in positive.parameters} == {(0.0, np.inf)}
    f = values("x' = ?(x); ?(x) periodic 5", GRID)
    assert np.allclose(f[50:], f[:-50])


def test_the_prior_is_a_gaussian_process_of_the_stated_scale():
    model = od.Model.from_text("x' = ?(x); ?(x) from 0 to 10; ?(x) ~ gp(2, 0.3)")
    own = model.declarations.unknown[0]
    x = np.array([3.0, 5.0, 7.0])
    _, _, slopes = model.linearise(np.zeros(3), x[:, None], np.zeros(len(model.parameters)), np.zeros((3, 0)))
    sd = np.array([0.0 if n == own.mean else model.prior[n][2] for n in model.parameters])
    covariance = (slopes[:, 0] * sd**2) @ slopes[:, 0].T
    r = np.sqrt(3) * np.abs(x[:, None] - x) / 3.0  # the length is 0.3 of the range
    assert np.allclose(covariance, 4.0 * (1 + r) * np.exp(-r), atol=0.2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x' = ?(x + 1)", "takes names"),
        ("x' = ?(x, y, t); y' = 1", "one or two"),
        ("x' = ? + 1", "no unknown function"),
        ("x' = ?(x); ?(x) wiggly", "cannot read 'wiggly'"),
        ("x' = ?(x); ?(y) >= 0", "no equation has"),
        ("x' = ?(x); ?(x) from 3 to 1", "low < high"),
        ("x' = ?(x); ?(x) ~ gp(0, 1)", "positive numbers"),
        ("x' = ?(x); ?(x) increasing decreasing", "cannot be"),
        ("x' = ?(x, y); y' = 1; ?(x, y) increasing", "one argument"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text, words):
    with pytest.raises(od.InputError, match=r"^line 1: ") as error:
        od.Model.from_text(text)
    assert words in str(error.value)


def test_a_function_of_a_parameter_is_refused_where_data_come_in():
    data = od.Data([0, 1, 2], [1.0, 2.0, 3.0], states=["x"])
    with pytest.raises(od.InputError, match="no state, input or definition"):
        od.Problem(od.Model.from_text("x' = k*x + ?(k)"), data)
