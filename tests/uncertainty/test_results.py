"""Results as plain data: intervals and bands from profiles, refits and draws; levels that are none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.uncertainty.results import (
    BAND,
    Bootstrap,
    Posterior,
    Profile,
    Uncertainty,
    checked_level,
    sample_intervals,
)
from odinfer.uncertainty.small_sample import quantile, threshold

FEW = settings(max_examples=25, derandomize=True, deadline=None)
LEVELS = st.floats(0.05, 0.99)


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, "high"])
def test_a_level_that_is_none_is_refused(lv_fit, level):
    with pytest.raises(od.InputError, match="level"):
        lv_fit.interval(level)


@given(level=st.floats(allow_nan=True, allow_infinity=True))
def test_levels_are_strictly_between_zero_and_one(level):
    if 0.0 < level < 1.0:
        assert checked_level(level) == level
    else:
        with pytest.raises(od.InputError, match="level must be between 0 and 1"):
            checked_level(level)


def parabola(freedom=np.inf, count=1.0, limits=(-np.inf, np.inf), reach=4.0, sides=(-1.0, 1.0)) -> Profile:
    """The likelihood of a normal distribution around 3 with standard deviation 0.5."""
    z = np.linspace(sides[0] * reach, sides[1] * reach, 41)
    return Profile("k", 3.0, 3.0 + 0.5 * z, -0.5 * z**2, limits, freedom, count)


@FEW
@given(level=LEVELS)
def test_the_interval_of_a_parabola_is_normal(level):
    half = 0.5 * quantile(np.inf, level)
    np.testing.assert_allclose(parabola().interval(level), [3.0 - half, 3.0 + half], rtol=1e-9)


@FEW
@given(level=LEVELS, freedom=st.floats(2.0, 50.0))
def test_few_observations_widen_it_by_the_threshold(level, freedom):
    half = 0.5 * np.sqrt(threshold(freedom, 1.4, level))
    found = parabola(freedom, 1.4, reach=30.0).interval(level)
    np.testing.assert_allclose(found, [3.0 - half, 3.0 + half], rtol=1e-9)


def test_where_the_likelihood_never_falls_so_far_the_limit_is_the_end():
    assert parabola(reach=1.0, limits=(0.0, np.inf)).interval() == (0.0, np.inf)
    one_sided = parabola(sides=(-1.0, 0.0), limits=(-np.inf, 3.0)).interval()
    assert one_sided == pytest.approx((3.0 - 0.5 * BAND, 3.0))


@pytest.fixture
def refits() -> Bootstrap:
    rng = np.random.default_rng(0)
    draws = np.stack([rng.normal(size=500), np.log(rng.uniform(1.0, 2.0, 500))], -1)
    x = rng.normal(size=(500, 6, 2)) * np.arange(1, 7)[:, None]
    return Bootstrap(("a", "b"), ("b",), draws, (np.arange(6.0),), (x,), failed=3)


def test_intervals_and_bands_of_refits_are_their_quantiles(refits):
    np.testing.assert_allclose(refits.theta["b"], np.exp(refits.draws[:, 1]))
    np.testing.assert_array_equal(refits.theta["a"], refits.draws[:, 0])
    for level in (0.5, 0.95):
        left_out = 0.5 * (1 - level)
        for name, found in refits.interval(level).items():
            np.testing.assert_allclose(found, np.quantile(refits.theta[name], [left_out, 1 - left_out]))
        np.testing.assert_allclose(refits.band(level=level), np.quantile(refits.x[0], [left_out, 1 - left_out], axis=0))
    low, high = refits.band()
    assert low.shape == (6, 2)
    assert ((high - low)[5] > (high - low)[0]).all()


def test_draws_of_all_chains_count(refits):
    draws = {"a": np.arange(400.0).reshape(4, 100)}
    nothing = {key: {} for key in ("x0", "sigma", "stats", "r_hat", "ess")}
    found = Posterior("trajectory", draws, **nothing, divergences=0, status="", converged=True, seconds=0.0,
                      t=refits.t, x=refits.x)  # fmt: skip
    assert found.interval(0.9)["a"] == pytest.approx((0.05 * 399, 0.95 * 399))
    assert found.interval(0.9) == sample_intervals(draws, 0.9)
    np.testing.assert_array_equal(found.band(), refits.band())


def test_intervals_come_by_name():
    nothing = np.zeros((2, 2))
    ends = np.array([1.0, -np.inf]), np.array([2.0, 5.0])
    found = Uncertainty(("a", "b"), (), nothing, np.ones(2), 0.95, *ends)
    assert found.interval() == {"a": (1.0, 2.0), "b": (-np.inf, 5.0)}


def test_results_are_one_line_when_they_are_printed(lv_fit):
    profile, bootstrap = lv_fit.profile("a"), lv_fit.bootstrap(10)
    for result in (profile, bootstrap, lv_fit.uncertainty, lv_fit.problem):
        assert "\n" not in repr(result)
        assert len(repr(result)) < 400
    assert repr(profile).startswith("<Profile likelihood: a = 2.0")
    assert repr(bootstrap).startswith("<Bootstrap: 10 refits; 95 %: a ")


def test_draws_go_to_arviz_with_statistics_of_the_sampler():
    draws = np.random.default_rng(0).normal(size=(2, 50))
    stats = {"diverging": np.zeros((2, 50), bool)}
    made = Posterior("trajectory", {"k": draws}, {"x": draws}, {"x": draws}, stats, {}, {}, 0, "converged", True, 1.0)
    found = made.to_arviz()
    np.testing.assert_array_equal(found["posterior"]["k"].to_numpy(), draws)
    assert {"x0_x", "sigma_x"} <= {*found["posterior"].data_vars}
    assert "diverging" in found["sample_stats"].data_vars
    assert repr(made).startswith("<Posterior (trajectory): 2 chains × 50 draws, converged; 95 %: k ")
