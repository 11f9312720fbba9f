"""What the data cannot determine is named, and nothing else is."""

import numpy as np
import pytest

import odinfer as od
from odinfer.uncertainty.identifiability import notes
from uncertainty.hidden import without_scale


def decay_fit(equation: str, **more) -> od.Fit:
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15)
    return od.fit(od.Problem(od.Model.from_text(equation), od.Data(t, y, states=["x"]), **more))


@pytest.mark.parametrize(
    ("equation", "words"), [("x' = -a*b*x", "identifiable; a·b (within"), ("x' = -a/b*x", "identifiable; a/b (within")]
)
def test_a_product_or_ratio_that_alone_matters_is_named(equation, words):
    fit = decay_fit(equation, bounds={"a": (0.0, None), "b": (0.0, None)}, start={"a": 1.0, "b": 0.7})
    assert any(words in warning for warning in fit.warnings), fit.warnings
    assert np.isinf(fit.interval()["a"][1])
    assert "inf" in fit.summary()


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        ("x' = -a*b/c*x", "identifiable; a·b/c (within"),
        ("x' = -a*b^2*x", "identifiable; a·b^2 (within"),
        ("x' = -(a + b)*x; real a, b", "identifiable; a + b (within"),
        ("x' = -(a - 2*b + c)*x; real a, b, c", "identifiable; a − 2·b + c (within"),
    ],
)
def test_combinations_of_several_parameters_are_named(equation, words):
    fit = decay_fit(equation, start={"a": 0.9, "b": 0.7, "c": 1.3} if "c" in equation else {"a": 0.9, "b": 0.7})
    assert any(words in warning for warning in fit.warnings), fit.warnings
    assert all(np.isinf(end).any() for end in fit.interval().values())


def test_a_parameter_without_influence_is_named_and_its_interval_is_infinite():
    fit = decay_fit("x' = -k*x + 0*m", start={"m": 1.0})
    assert fit.interval()["m"] == (0.0, np.inf)
    assert any("m is not identifiable" in warning for warning in fit.warnings), fit.warnings
    assert np.isfinite(fit.interval()["k"]).all()


def test_a_product_is_named_beside_a_parameter_without_influence():
    fit = decay_fit("x' = -a*b/c*x + 0*m", start={"a": 0.9, "b": 0.7, "c": 1.3, "m": 1.0})
    assert any("identifiable; a·b/c (within" in warning for warning in fit.warnings), fit.warnings
    assert any("m is not identifiable" in warning for warning in fit.warnings), fit.warnings


def test_nothing_is_said_where_all_is_determined(lv_fit):
    assert lv_fit.warnings == ()
    assert lv_fit.uncertainty.notes == ()


def said(fit: od.Fit, low, high, there=None) -> tuple[str, ...]:
    """What is said of a fit if its intervals ended at `low` and `high`, and the ways to them at φ `there` (2F, F)."""
    best = fit.maximum()
    there = np.tile(best.phi, (2 * len(best.phi), 1)) if there is None else there
    v = best.likelihood.unknowns.join([p.x0 for p in best.refined.paths], best.phi)
    return notes(best.likelihood.unknowns, v, best.info, np.array(low), np.array(high), there)


def test_an_open_end_is_said_with_the_limit_on_its_other_side():
    fit = decay_fit("x' = -k*x")
    assert said(fit, [0.6], [0.8]) == ()
    assert said(fit, [0.6], [np.inf]) == ("k is not identifiable: every value above 0.6 fits",)
    assert said(fit, [-np.inf], [0.8]) == ("k is not identifiable: every value below 0.8 fits",)
    assert said(fit, [-np.inf], [np.inf]) == ("k is not identifiable: every value fits",)


def test_an_interval_from_bound_to_bound_is_open_too():
    fit = decay_fit("x' = -k*x", bounds={"k": (0.1, 2.0)})
    assert said(fit, [0.1], [2.0]) == ("k is not identifiable: every value within its bounds fits",)
    (note,) = said(fit, [0.1], [0.8])
    assert note == "the data set no limit on one side for k (every value below 0.8 up to the bound fits)"
    assert said(fit, [0.2], [0.8]) == ()


def test_parameters_that_go_far_together_are_named_by_what_stays(lv_fit):
    phi = lv_fit.maximum().phi
    ends = np.array(list(lv_fit.interval().values())).T
    low, high = ends.copy()
    high[[0, 1]] = np.inf
    there = np.tile(phi, (8, 1))
    there[4, [0, 1]] += np.log(100.0)  # following a up takes b along
    (ratio,) = said(lv_fit, low, high, there)
    assert ratio == "a and b are not individually identifiable; a/b is"
    there[4, 1] = phi[1] - np.log(100.0)
    (product,) = said(lv_fit, low, high, there)
    assert "identifiable; a·b is" in product
    there[4, 1] = phi[1]
    assert len(said(lv_fit, low, high, there)) == 2  # each on its own


def test_a_hidden_state_without_a_scale_is_named_with_its_initial_value():
    fit = od.fit(without_scale())
    assert any("x(0)·r (within" in warning for warning in fit.warnings), fit.warnings
    assert np.isinf(fit.interval()["r"]).any()
    assert np.isfinite(fit.interval()["c"]).all()
