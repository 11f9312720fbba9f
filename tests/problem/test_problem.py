"""A problem: what overrides what, where every unknown may lie, and one line for everything that does not fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.problem.problem import Problem

FEW = settings(max_examples=25, derandomize=True, deadline=None)
VALUES = st.lists(st.floats(1e-6, 1e6), min_size=4, max_size=4)


@FEW
@given(theta=VALUES, log=st.sets(st.sampled_from("abcd")), fixed=st.sets(st.sampled_from("abcd")))
def test_parameters_go_to_their_scales_and_back(lv, lv_data, theta, log, fixed):
    values = dict(zip("abcd", theta, strict=True))
    p = Problem(
        lv.model, lv_data, scale=dict.fromkeys(log, "log"), fixed={name: values[name] for name in fixed}, positive=False
    )
    assert p.free == tuple(name for name in "abcd" if name not in fixed)
    phi = p.phi(np.array(theta))
    assert phi.shape == (len(p.free),)
    np.testing.assert_allclose(p.theta(phi), theta, rtol=1e-12)
    stacked = np.stack([phi, phi + 0.1])
    assert p.theta(stacked).shape == (2, 4)
    for i, name in enumerate(p.free):
        assert phi[i] == pytest.approx(np.log(values[name]) if name in log else values[name])
        assert p.slope(phi)[i] == pytest.approx(values[name] if name in log else 1.0)


def test_limits_come_from_bounds_scale_prior_and_positivity(lv, lv_data):
    p = Problem(
        lv.model,
        lv_data,
        bounds={"a": (None, 7.0), "prey": (0.5, None)},
        scale={"b": "log"},
        prior={"c": ("uniform", 1.0, 9.0), "d": ("lognormal", 1.0, 1.0)},
        positive=False,
    )
    assert p.limits("a") == (-np.inf, 7.0)
    assert p.limits("b") == (0.0, np.inf)
    assert p.limits("c") == (1.0, 9.0)
    assert p.limits("d") == (0.0, np.inf)
    assert p.limits("prey") == (0.5, np.inf)
    np.testing.assert_array_equal(p.phi_bounds[0], [-np.inf, -np.inf, 1.0, 0.0])
    np.testing.assert_array_equal(p.state_bounds[0], [0.5, -np.inf])
    positive = Problem(lv.model, lv_data, positive=True, bounds={"a": (-3.0, 2.0)})
    assert positive.limits("a") == (0.0, 2.0)
    assert positive.limits("d") == (0.0, np.inf)
    assert positive.limits("prey") == (-np.inf, np.inf)


def test_the_problem_overrides_what_the_model_says(lv_data):
    model = od.Model.from_text(
        """prey' = a*prey - b*prey*predator
        predator' = -c*predator + d*prey*predator
        0 < a < 5; fixed b = 1; start c = 3; log d; d ~ lognormal(1, 0.5); prey > 0"""
    )
    own = Problem(model, lv_data, positive=False)
    assert own.limits("a") == (0.0, 5.0)
    assert own.limits("prey") == (0.0, np.inf)
    assert own.fixed == {"b": 1.0}
    assert own.start == {"c": 3.0}
    assert own.scale == {"d": "log"}
    other = Problem(
        model,
        lv_data,
        bounds={"a": (1.0, 9.0)},
        fixed={"b": 2.0},
        start={"c": 4.0},
        scale={"d": "linear"},
        positive=False,
    )
    assert other.limits("a") == (1.0, 9.0)
    assert other.fixed == {"b": 2.0}
    assert other.start == {"c": 4.0}
    assert not other.is_log.any()
    assert own.free == other.free == ("a", "c", "d")


def test_data_are_put_in_the_order_of_the_model(lv, lv_data):
    swapped = od.Data(lv_data.t, lv_data.y[:, ::-1], states=["predator", "prey"])
    more = od.Data(lv_data.t, np.column_stack([lv_data.y[:, ::-1], lv_data.y[:, 0]]), states=["predator", "prey", "z"])
    for data in (swapped, more):
        np.testing.assert_array_equal(Problem(lv.model, data, positive=False).data.y, lv_data.y)


def test_inputs_are_linear_between_their_values():
    t = np.arange(6.0)
    model = od.Model.from_text("x' = -k*x + u - v\ninput u, v")
    data = od.Data(t, np.exp(-t), states=["x"], inputs={"v": t**2, "u": ([0.0, 5.0], [1.0, 6.0])})
    np.testing.assert_allclose(
        Problem(model, data, positive=False).inputs_at(0, np.array([0.0, 1.5, 5.0])),
        [[1.0, 0.0], [2.5, 2.5], [6.0, 25.0]],
    )


BAD = {
    "an unknown parameter in bounds": ({"bounds": {"aa": (0, 1)}}, "no 'aa'"),
    "an unknown parameter in fixed": ({"fixed": {"q": 1.0}}, "no 'q'"),
    "an unknown parameter in prior": ({"prior": {"q": ("normal", 0, 1)}}, "no 'q'"),
    "a state in sigma that is none": ({"sigma": {"preyy": 0.1}}, "did you mean 'prey'"),
    "bounds that are no pair": ({"bounds": {"a": 3}}, "pair"),
    "bounds of three": ({"bounds": {"a": (1, 2, 3)}}, "pair"),
    "bounds the wrong way round": ({"bounds": {"a": (2.0, 1.0)}}, "must be below"),
    "bounds without room": ({"bounds": {"a": (2.0, 2.0)}}, "must be below"),
    "a bound that is no number": ({"bounds": {"a": ("low", 1.0)}}, "number"),
    "a bound that is NaN": ({"bounds": {"a": (np.nan, 1.0)}}, "number"),
    "a start outside the bounds": ({"start": {"a": 9.0}, "bounds": {"a": (0, 5)}}, "outside its bounds"),
    "a fixed value outside the bounds": ({"fixed": {"a": 9.0}, "bounds": {"a": (0, 5)}}, "outside its bounds"),
    "a negative start with positivity": ({"start": {"a": -1.0}, "positive": True}, "outside its bounds"),
    "a start that is text": ({"start": {"a": "x"}}, "number"),
    "an infinite fixed value": ({"fixed": {"a": np.inf}}, "finite"),
    "an unknown scale": ({"scale": {"a": "log10"}}, "'log' or 'linear'"),
    "a sigma of zero": ({"sigma": {"prey": 0.0}}, "positive"),
    "a sigma that is text": ({"sigma": {"prey": "small"}}, "number"),
    "an unknown prior": ({"prior": {"a": ("norml", 0, 1)}}, "did you mean 'normal'"),
    "a prior of one number": ({"prior": {"a": ("normal", 0)}}, "prior of 'a'"),
    "a prior without spread": ({"prior": {"a": ("normal", 0, 0)}}, "positive"),
    "a uniform prior the wrong way round": ({"prior": {"a": ("uniform", 2, 1)}}, "low < high"),
    "a lognormal prior around a negative median": ({"prior": {"a": ("lognormal", -1, 1)}}, "positive"),
    "a prior that is not finite": ({"prior": {"a": ("normal", np.nan, 1)}}, "finite"),
    "bounds that are a list": ({"bounds": [(0, 1)]}, "dictionary"),
    "a log scale with a negative upper bound": (
        {"scale": {"a": "log"}, "bounds": {"a": (None, -1.0)}},
        "must be below",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_refused_in_one_line(lv, lv_data, case):
    options, words = BAD[case]
    with pytest.raises(od.InputError) as caught:
        Problem(lv.model, lv_data, **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_log_scaled_parameter_cannot_start_at_zero(lv, lv_data):
    with pytest.raises(od.InputError, match="'a'"):
        Problem(lv.model, lv_data, scale={"a": "log"}, start={"a": 0.0}, positive=False)


def test_states_that_are_not_observed_are_hidden_and_inputs_without_values_are_refused(lv, lv_data):
    assert Problem(lv.model, lv_data.select(["prey"]), positive=False).hidden == ("predator",)
    with pytest.raises(od.InputError, match=r"column 'pray' of the data is no state .* did you mean 'prey'"):
        Problem(lv.model, od.Data(lv_data.t, lv_data.y, ["pray", "predator"]), positive=False)
    model = od.Model.from_text("prey' = u - a*prey\ninput u")
    with pytest.raises(od.InputError, match="input 'u' has no values"):
        Problem(model, lv_data.select(["prey"]), positive=False)
    with pytest.raises(od.InputError, match="data are a DataFrame"):
        Problem(lv_data, lv.model, positive=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, y, u: (t, 1e160 * y, u), r"the values of 'x' are of the size 3e\+160; use other units"),
        (lambda t, y, u: (t, 1e-160 * y, u), "the values of 'x' are of the size 3e-160; use other units"),
        (lambda t, y, u: (t, y, 1e200 * u), "the values of input 'u' are of the size"),
        (lambda t, y, u: (1e100 * t, y, u), r"experiment '1': the times go to 4e\+100; use other units"),
        (lambda t, y, u: (1e-100 * t, y, u), "experiment '1': two of the times near 0 are 1e-100 apart"),
        (lambda t, y, u: (np.r_[0, 1e-300, t[2:]], y, u), "two of the times near 0 are 1e-300 apart"),
    ],
)
def test_data_in_units_whose_powers_are_no_floats_are_refused(change, words):
    model = od.Model.from_text("input u\nx' = -k*x + u")
    t, y, u = np.arange(5.0), np.array([3.0, 2, 1, 0.5, 0.2]), np.arange(1.0, 6.0)
    Problem(model, od.Data(t, y, "x", inputs={"u": u}), positive=False)
    t, y, u = change(t, y, u)
    with pytest.raises(od.InputError, match=words):
        Problem(model, od.Data(t, y, "x", inputs={"u": u}), positive=False)


# --- what a problem knows


PRIORS = {
    "none": {},
    "normal and lognormal": {"a": ("normal", 2.5, 0.4), "c": ("lognormal", 3.0, 0.5)},
    "a function": {"d": lambda v: v**4},
    "a joint function": lambda p: (p["a"] * p["c"] - 3.0) ** 2 + p["d"] ** 2,
}


@pytest.fixture(scope="module", params=PRIORS)
def believing(request, lv, lv_data):
    """A problem with priors, a fixed parameter and parameters on both scales."""
    return Problem(
        lv.model, lv_data, prior=PRIORS[request.param], scale={"a": "log", "d": "log"}, fixed={"b": 1.5}, positive=False
    )


def test_the_slope_of_the_prior_is_by_the_scales_of_the_parameters(believing):
    phi, h = np.array([0.6, 3.5, 0.1]), 1e-5
    found = believing.prior_at(phi)
    assert found.value == pytest.approx(believing.penalty.derivatives(believing.theta(phi))[0])
    for i, e in enumerate(h * np.eye(3)):
        slope = (believing.prior_at(phi + e).value - believing.prior_at(phi - e).value) / (2 * h)
        assert found.gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_the_curvature_of_the_prior_is_the_hessian_without_what_is_not_convex(believing):
    phi, h = np.array([0.6, 3.5, 0.1]), 1e-5
    rows = [believing.prior_at(phi + e).gradient - believing.prior_at(phi - e).gradient for e in h * np.eye(3)]
    w, V = np.linalg.eigh(0.5 * (np.array(rows) + np.array(rows).T) / (2 * h))
    np.testing.assert_allclose(believing.prior_at(phi).curvature, (V * np.maximum(w, 0)) @ V.T, rtol=1e-5, atol=1e-5)


def test_a_prior_that_is_not_convex_somewhere_has_no_negative_curvature(lv, lv_data):
    problem = Problem(lv.model, lv_data, prior={"a": ("lognormal", 1.0, 0.5)}, positive=False)
    far = np.array([30.0, 1.0, 1.0, 1.0])
    assert problem.penalty.derivatives(far)[2][0, 0] < 0
    np.testing.assert_array_equal(problem.prior_at(far).curvature, np.zeros((4, 4)))


def test_observations_are_counted_over_experiments_and_known_noise_is_marked(lv, lv_data):
    y = lv_data.y.copy()
    y[:5, 1] = np.nan
    data = od.Data.join({"x": lv_data, "y": od.Data(lv_data.t, y, states=lv.model.states)})
    problem = Problem(lv.model, data, sigma={"predator": 0.25}, positive=False)
    np.testing.assert_array_equal(problem.count, [40, 35])
    np.testing.assert_array_equal(problem.known_sigma, [np.nan, 0.25])


def test_a_problem_is_bounded_where_any_free_parameter_or_state_is(lv, lv_data):
    assert not Problem(lv.model, lv_data, positive=False).bounded
    assert not Problem(lv.model, lv_data, bounds={"a": (0.0, 5.0)}, fixed={"a": 1.0}, positive=False).bounded
    assert not Problem(lv.model, lv_data, scale={"a": "log"}, positive=False).bounded
    for options in ({"bounds": {"a": (None, 5.0)}}, {"bounds": {"prey": (0.0, None)}}):
        assert Problem(lv.model, lv_data, **options).bounded


def test_corners_of_inputs_are_where_they_bend_and_not_where_they_were_sampled():
    model = od.Model.from_text("x' = -k*x + u + v\ninput u, v")
    t = np.linspace(0.0, 10.0, 6)
    fine = np.linspace(0.0, 10.0, 2001)
    pulse = (np.array([0.0, 4.0, 4.1, 4.2, 4.3, 9.0, 10.0]), np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
    data = od.Data(t, np.cos(t), states=["x"], inputs={"u": pulse, "v": (fine, np.sin(fine))})
    np.testing.assert_array_equal(Problem(model, data, positive=False).corners(0), [4.0, 4.1, 4.2, 4.3])


def test_the_slope_of_a_second_order_equation_is_hidden_unless_it_is_observed():
    model = od.Model.from_text("x'' = -k*x - c*x'")
    t = np.linspace(0, 3, 9)
    y = np.stack([np.cos(t), -np.sin(t)], -1)
    assert od.Problem(model, od.Data(t, y, states=["x", "x_dot"]), positive=False).free == ("k", "c")
    assert od.Problem(model, od.Data(t, y[:, :1], states=["x"]), positive=False).hidden == ("x_dot",)


def test_a_parameter_that_is_held_is_no_longer_estimated_and_loses_its_start(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, start={"a": 1.0, "b": 2.0}, fixed={"c": 4.0}, positive=False)
    held = problem.holding("a", 3.0)
    assert held.free == ("b", "d")
    assert held.fixed == {"c": 4.0, "a": 3.0}
    assert held.start == {"b": 2.0}
    assert problem.free == ("a", "b", "d")


def test_each_state_of_a_problem_is_observed_often_enough_but_for_its_beginning(lv):
    t = np.arange(6.0)
    few = np.column_stack([t, np.where(t < 3, t**2, np.nan)])
    with pytest.raises(od.InputError, match="state 'predator' has too few observations: 3; 4 are needed"):
        Problem(lv.model, od.Data(t, few, ["prey", "predator"]), positive=False)
    assert Problem(lv.model, od.Data(t, few * [1, np.nan], ["prey", "predator"]), positive=False).hidden == (
        "predator",
    )
    beginning = od.Data(t, np.column_stack([t, t**2]), ["prey", "predator"]).first(0.5)
    assert Problem(lv.model, beginning, positive=False).count.tolist() == [3, 3]


def test_an_experiment_alone_has_what_was_said_of_it_and_its_local_parameters_as_just_parameters():
    t = np.arange(6.0)
    model = od.Model.from_text("x' = -k*x + a\nlocal k\nlog k")
    data = od.Data.join({name: od.Data(t, 1.0 + t, ["x"]) for name in ("one", "two")})
    joint = Problem(
        model, data, bounds={"k": (0.1, 5.0), "x": (0.0, None)}, fixed={"k[two]": 2.0}, start={"a": 1.0}, positive=False
    )
    one, two = joint.alone("one"), joint.alone("two")
    assert (one.parameters, one.free, two.free) == (("k", "a"), ("k", "a"), ("a",))
    assert two.fixed == {"k": 2.0}
    assert one.limits("k") == (0.1, 5.0)
    assert one.limits("x") == (0.0, np.inf)
    assert one.scale == {"k": "log"}
    assert [e.name for e in two.data.experiments] == ["two"]


def test_a_value_that_misses_its_bound_by_rounding_is_held_at_it(decay, decay_data):
    problem = Problem(decay, decay_data, bounds={"k": (1e-5, 1e3)}, scale={"k": "log"}, positive=False)
    assert problem.holding("k", float(np.exp(np.log(1e-5)))).fixed["k"] == 1e-5
    assert problem.holding("k", 1e-5 * (1 - 1e-15)).fixed["k"] == 1e-5
    with pytest.raises(od.InputError, match="outside its bounds"):
        problem.holding("k", 0.9e-5)
