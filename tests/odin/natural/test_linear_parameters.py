"""Parameters in which a field is linear are found, whatever the others are."""

import numpy as np
import pytest

import odinfer as od
from odinfer.scaling.linear_parameters import linear_parameters


def found(text: str) -> set[str]:
    model = od.Model.from_text(text)
    return {p for p, linear in zip(model.parameters, linear_parameters(model), strict=True) if linear}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x' = a*x - b*x*y; y' = c*x*y - d*y", {"a", "b", "c", "d"}),
        ("s' = -v*s/(k + s) + b", {"v", "b"}),
        ("x' = a*b*x", {"a"}),  # either, but not both
        ("x' = k^2 - exp(-m*t)*q", {"q"}),
        ("x' = u*c + log(d)\ninput u", {"c"}),
        ("x' = (a + b)*x + a", {"a", "b"}),
    ],
)
def test_parameters_of_first_degree_are_found(text, expected):
    assert found(text) == expected


def test_linear_parameters_move_the_field_along_straight_lines():
    model = od.Model.from_text("c' = v*c^n/(k^n + c^n) - d*c*e; e' = a - v*c")
    linear = linear_parameters(model)
    rng = np.random.default_rng(1)
    t, x, one, other = (rng.uniform(0.5, 2.0, shape) for shape in (9, (9, 2), (9, 5), (9, 5)))
    other = np.where(linear, other, one)
    ends = [model.evaluate(t, x, (1.0 - s) * one + s * other, np.zeros((9, 0))) for s in (0.0, 0.25, 1.0)]
    np.testing.assert_allclose(ends[1], 0.75 * ends[0] + 0.25 * ends[2], rtol=1e-12)


def test_a_field_that_is_nowhere_finite_has_none():
    assert found("x' = a*log(-1 - b^2)") == set()
