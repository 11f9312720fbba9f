"""Correlation functions against high precision, and what every one of them must satisfy."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError
from odinfer.gp.kernels import KERNELS, kernel

FEW = settings(max_examples=12, derandomize=True, deadline=None)
TIMES = st.floats(0.0, 6.0)
NAMES = sorted(KERNELS)


def matern(order):
    """From the general half-integer formula, p = order − 1/2 with order 3/2, 5/2, 7/2."""

    def k(d, length):
        p = int(order - mp.mpf(1) / 2)
        z = mp.sqrt(2 * order) * abs(d) / length
        terms = (mp.factorial(p + i) / mp.factorial(i) / mp.factorial(p - i) * (2 * z) ** (p - i) for i in range(p + 1))
        return mp.exp(-z) * mp.factorial(p) / mp.factorial(2 * p) * mp.fsum(terms)

    return k


LAGS = {
    "rbf": lambda d, length: mp.exp(-(d**2) / (2 * length**2)),
    "matern32": matern(mp.mpf(3) / 2),
    "matern52": matern(mp.mpf(5) / 2),
    "matern72": matern(mp.mpf(7) / 2),
    "rational-quadratic": lambda d, length, alpha: (1 + d**2 / (2 * alpha * length**2)) ** (-alpha),
    "periodic": lambda d, length, period: mp.exp(-2 * mp.sin(mp.pi * d / period) ** 2 / length**2),
}


def exact(name, s, t, shape):
    """k(s, t) in high precision, written down independently of the package."""
    if name == "sigmoid":
        a, b = shape
        return mp.asin((a + b * s * t) / mp.sqrt((a + b * s**2 + 1) * (a + b * t**2 + 1)))
    if name.startswith("warped-"):
        *shape, tau = shape
        return LAGS[name.removeprefix("warped-")](mp.log(1 + s / tau) - mp.log(1 + t / tau), *shape)
    return LAGS[name](s - t, *shape)


def exact_gram(name, s, t, shape):
    """k, dk/ds, dk/dt, d²k/ds dt at one pair of times."""
    with mp.workdps(40):
        s, t, shape = mp.mpf(s), mp.mpf(t), [mp.mpf(v) for v in shape]
        at = [(0, 0), (1, 0), (0, 1), (1, 1)]
        return [float(mp.diff(lambda a, b: exact(name, a, b, shape), (s, t), n)) for n in at]


def shapes(name):
    return st.lists(
        st.floats(0.4, 3.0), min_size=len(KERNELS[name].shape_names), max_size=len(KERNELS[name].shape_names)
    )


def some_shape(name, length=0.9):
    return np.array([length, 1.3, 0.7][: len(KERNELS[name].shape_names)])


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_kernel_and_derivatives_equal_high_precision(name, data):
    s, t, shape = data.draw(TIMES), data.draw(TIMES), data.draw(shapes(name))
    got = KERNELS[name].gram(np.array([s]), np.array([t]), np.array(shape))
    at_s, at_t = exact_gram(name, s, s, shape), exact_gram(name, t, t, shape)
    # By Cauchy–Schwarz no entry exceeds these: the natural units of the error.
    largest = [np.sqrt(at_s[i] * at_t[j]) for i, j in ((0, 0), (3, 0), (0, 3), (3, 3))]
    for value, right, unit in zip(got, exact_gram(name, s, t, shape), largest, strict=True):
        assert abs(float(value[0, 0]) - right) <= 1e-11 * unit


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_derivatives_at_equal_times_equal_high_precision(name, data):
    t, shape = data.draw(TIMES), data.draw(shapes(name))
    got = KERNELS[name].gram(np.array([t]), np.array([t]), np.array(shape))
    right = exact_gram(name, t, t, shape)
    for value, wanted in zip(got, right, strict=True):
        assert float(value[0, 0]) == pytest.approx(wanted, rel=1e-11, abs=1e-11 * np.sqrt(right[0] * right[3]))


@pytest.mark.parametrize(
    ("name", "factor"), [("rbf", 1.0), ("matern32", 3.0), ("matern52", 5.0 / 3.0), ("matern72", 7.0 / 5.0)]
)
@FEW
@given(length=st.floats(0.05, 20.0), t=st.floats(-5.0, 5.0))
def test_the_derivative_has_the_known_variance(name, factor, length, t):
    g = KERNELS[name].gram(np.array([t]), np.array([t]), np.array([length]))
    assert float(g.dCd[0, 0]) == pytest.approx(factor / length**2, rel=1e-12)
    assert float(g.C[0, 0]) == 1.0
    assert float(g.dC[0, 0]) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_left_and_right_derivatives_are_transposes_and_the_second_is_symmetric(name):
    rng = np.random.default_rng(1)
    a, b = np.sort(rng.uniform(0, 5, 9)), np.sort(rng.uniform(0, 5, 6))
    k, shape = KERNELS[name], some_shape(name)
    one, other = k.gram(a, b, shape), k.gram(b, a, shape)
    np.testing.assert_allclose(one.C, other.C.T, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(one.dC, other.Cd.T, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(one.dCd, other.dCd.T, rtol=1e-13, atol=1e-15)
    same = k.gram(a, a, shape)
    np.testing.assert_allclose(same.dC, same.Cd.T, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(same.dCd, same.dCd.T, rtol=1e-13, atol=1e-15)
    assert np.abs(same.dC).max() > 0.1


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_states_and_derivatives_have_a_joint_covariance(name, data):
    n = data.draw(st.integers(2, 10))
    t = np.sort(data.draw(st.lists(TIMES, min_size=n, max_size=n)))
    g = KERNELS[name].gram(t, t, np.array(data.draw(shapes(name))))
    joint = np.block([[g.C, g.Cd], [g.dC, g.dCd]])
    low, *_, high = np.linalg.eigvalsh(joint)
    assert low >= -1e-12 * high


@pytest.mark.parametrize("name", NAMES)
def test_a_stack_of_shapes_gives_a_stack_of_matrices(name):
    k = KERNELS[name]
    a, b = np.linspace(0, 3, 5), np.linspace(0, 3, 4)
    stack = np.stack([[some_shape(name, length) for length in (0.5, 1.0, 2.0)]] * 2)
    for i, matrix in enumerate(k.gram(a, b, stack)):
        assert matrix.shape == (2, 3, 5, 4)
        np.testing.assert_allclose(matrix[1, 2], k.gram(a, b, stack[1, 2])[i], rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_candidate_shapes_are_positive_and_one_column_per_name(name):
    t = np.array([0.0, 0.1, 0.3, 1.0, 2.0, 2.1])
    shapes, steps = KERNELS[name].shapes(t)
    assert shapes.shape == (len(shapes), len(KERNELS[name].shape_names))
    assert len(shapes) >= 10
    assert (shapes > 0).all()
    assert (steps > 0).all()
    assert len(steps) == shapes.shape[1]


@pytest.mark.parametrize("name", sorted(LAGS))
def test_a_slow_warp_gives_back_plain_time(name):
    t, tau, shape = np.linspace(0, 3, 7), 1e7, some_shape(name)
    lengths = [i for i, n in enumerate(KERNELS[name].shape_names) if n in ("lengthscale", "period")]
    if name == "periodic":
        lengths = [1]  # its lengthscale has no unit of time
    warped_shape = np.append(shape, tau)
    warped_shape[lengths] /= tau
    plain, warped = KERNELS[name].gram(t, t, shape), KERNELS[f"warped-{name}"].gram(t, t, warped_shape)
    for a, b in zip(plain, warped, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4 * np.abs(a).max())


def test_an_unknown_kernel_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match="did you mean 'matern52'"):
        kernel("matern53")
    assert kernel("rbf").name == "rbf"
