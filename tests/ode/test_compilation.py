"""Compiled functions give what numpy gives, where numbers are not finite, too."""

import numpy as np

from odinfer.ode.compilation import compiled


@compiled
def quotient(a, b):
    return a / b


def test_a_division_by_zero_is_infinite_and_raises_nothing():
    assert quotient(1.0, 0.0) == np.inf
    assert np.isnan(quotient(0.0, 0.0))


def test_the_function_itself_is_kept_for_reading():
    assert quotient.py_func(6.0, 3.0) == quotient(6.0, 3.0) == 2.0
