"""What the data cannot determine is named, and nothing else is."""

import numpy as np
import pytest

import odinfer as od


def decay_fit(equation: str, **more) -> od.Fit:
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15)
    return od.fit(od.Problem(od.Model.from_text(equation), od.Data(t, y, states=["x"]), **more))


@pytest.mark.parametrize(
    ("equation", "words"), [("x' = -a*b*x", "only a·b (within"), ("x' = -a/b*x", "only a/b (within")]
)
def test_a_product_or_ratio_that_alone_matters_is_named(equation, words):
    fit = decay_fit(equation, bounds={"a": (0.0, None), "b": (0.0, None)}, start={"a": 1.0, "b": 0.7})
    assert any(words in warning for warning in fit.warnings), fit.warnings
    assert np.isinf(fit.interval()["a"][1])
    assert "inf" in fit.summary()


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        ("x' = -a*b/c*x", "only a·b/c (within"),
        ("x' = -a*b^2*x", "only a·b^2 (within"),
        ("x' = -(a + b)*x", "only a + b (within"),
        ("x' = -(a - 2*b + c)*x", "only a − 2·b + c (within"),
    ],
)
def test_combinations_of_several_parameters_are_named(equation, words):
    fit = decay_fit(equation, start={"a": 0.9, "b": 0.7, "c": 1.3} if "c" in equation else {"a": 0.9, "b": 0.7})
    assert any(words in warning for warning in fit.warnings), fit.warnings
    assert all(np.isinf(end).any() for end in fit.interval().values())


def test_a_parameter_without_influence_is_named_and_its_interval_is_infinite():
    fit = decay_fit("x' = -k*x + 0*m", start={"m": 1.0})
    assert np.isinf(fit.interval()["m"]).all()
    assert any("m is not determined" in warning for warning in fit.warnings), fit.warnings
    assert np.isfinite(fit.interval()["k"]).all()


def test_a_product_is_named_beside_a_parameter_without_influence():
    fit = decay_fit("x' = -a*b/c*x + 0*m", start={"a": 0.9, "b": 0.7, "c": 1.3, "m": 1.0})
    assert any("only a·b/c (within" in warning for warning in fit.warnings), fit.warnings
    assert any("m is not determined" in warning for warning in fit.warnings), fit.warnings


def test_nothing_is_said_where_all_is_determined(lv_fit):
    assert lv_fit.warnings == ()
    assert lv_fit.uncertainty.notes == ()
