"""Student's noise: its limits, its tails, and the information about its degrees of freedom."""

import mpmath as mp
import numpy as np
import pytest

from odinfer.noise.normal import Normal
from odinfer.noise.student import LARGE, Student, gradient, information

STUDENT = Student()
Z = np.array([-8.0, -1.0, 0.0, 0.3, 5.0])


def test_many_degrees_of_freedom_are_normal():
    a = (0.0, 1.0, 1e11)
    np.testing.assert_allclose(STUDENT.log_density(Z, a), Normal().log_density(Z, a[:2]), rtol=1e-9)
    np.testing.assert_allclose(STUDENT.log_cdf(Z, a), Normal().log_cdf(Z, a[:2]), rtol=1e-6)


def test_expansions_continue_the_exact_formulas():
    df = LARGE * np.array([1 - 1e-9, 1 + 1e-9])
    for f in (
        information,
        lambda df: gradient(Z[:, None], df),
        lambda df: STUDENT.log_density(Z[:, None], (0.0, 1.0, df)),
    ):
        below, above = f(df)[..., 0], f(df)[..., 1]
        np.testing.assert_allclose(below, above, rtol=1e-6)


@pytest.mark.parametrize(("z", "df"), [(-1e99, 3.0), (-1e9, 40.0), (-1e3, 3000.0)])
def test_the_tail_is_right_where_it_underflows(z, df):
    right = mp.log(mp.betainc(df / 2, 0.5, 0, df / (df + mp.mpf(z) ** 2), regularized=True) / 2)
    assert float(STUDENT.log_cdf(z, (0.0, 1.0, df))) == pytest.approx(float(right), rel=1e-12)


def test_it_forgives_an_outlier_that_normal_noise_does_not():
    r, J = STUDENT.rows(np.array([1e6]), [np.zeros(1), np.ones(1), np.full(1, 4.0)])
    assert abs(np.einsum("nr,nra->na", r, J)[0, 0]) < 1e-5
