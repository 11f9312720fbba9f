"""Problems whose states are all columns start from ODIN's estimate, however they are written down."""

import numpy as np
import pytest

import odinfer as od
from odinfer.search.gaussian_relaxation import gaussian_relaxation, lift_to_problem

T = np.linspace(0.0, 2.0, 20)
LV = "x' = a*x - b*x*y; y' = -c*y + d*x*y"
MORE = "seen = x; seen ~ normal(seen, s); y ~ normal(y, r); x(0) = x0; y(0) = 3*y0; log s, r"
BOUNDS = "; ".join(f"-1e8 < {name} < 1e8" for name in ("a", "b", "c", "d", "x0", "y0"))
WIDE = f"{BOUNDS}; 1e-8 < s < 1e8; 1e-8 < r < 1e8"


def problem(text=f"{LV}; {MORE}; {WIDE}", columns=("seen", "y"), **more):
    y = od.systems.lotka_volterra.sample(0.1, 1, T).y
    return od.Problem(od.Model.from_text(text), od.Data(T, y, states=columns, **more))


def test_the_plain_problem_has_the_equations_and_what_they_depend_on():
    plain = gaussian_relaxation(problem())
    assert plain.fully_observed_gaussian
    assert plain.columns == ("x", "y")
    assert plain.free == ("a", "b", "c", "d")
    assert plain.limits("a") == (-1e8, 1e8)
    np.testing.assert_array_equal(plain.data.experiments[0].y, problem().data.experiments[0].y[:, [1, 0]])


@pytest.mark.parametrize(
    "text",
    [
        f"{LV}; {MORE}; at 1: x = x + 1",
        f"{LV}; seen = 2*x; seen ~ normal(seen, s)",
        f"{LV}; seen ~ lognormal(x, s)",
    ],
)
def test_what_smoothing_cannot_have_has_no_plain_problem(text):
    assert gaussian_relaxation(problem(text)) is None


def test_a_start_has_what_the_plain_trajectory_tells():
    whole = problem()
    plain = gaussian_relaxation(whole)
    own, first = plain.phi(np.array([2.0, 1.0, 4.0, 1.0, 1, 1, 1, 1])), np.array([5.0, 3.0])
    x0, phi = lift_to_problem(whole, plain, own, [first], 0)
    values = dict(zip(whole.parameters, whole.theta(phi), strict=True))
    for name, value in zip(plain.free, plain.theta(own)[plain.free_index], strict=True):
        assert values[name] == value
    assert values["x0"] == x0[0][0] == first[0]
    assert x0[0][1] == pytest.approx(3 * values["y0"])


def test_the_same_data_give_the_same_estimate_however_they_are_written_down():
    plain, whole = od.fit(problem(LV, ("x", "y"))), od.fit(problem())
    for name in "abcd":
        assert whole.theta[name] == pytest.approx(plain.theta[name], rel=1e-4)
    assert whole.maximum().loglik == pytest.approx(plain.maximum().loglik, abs=1e-4)
    assert whole.details["starts"] == whole.details["starts_agreeing"] == 10
