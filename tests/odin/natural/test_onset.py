"""scaling/onset.py: from which size on a parameter matters."""

import numpy as np
import pytest

import odinfer as od
from odinfer.scaling.onset import onset


@pytest.mark.parametrize(("text", "size"), [("x' = x - q*x^2", 1e-3), ("x' = x/(1 + q*x)", 1e-3), ("x' = a + q", 1.0)])
def test_a_parameter_matters_from_where_its_term_is_of_the_size_of_the_others(text, size):
    model = od.Model.from_text(text)
    t, x = np.linspace(0.0, 1.0, 10), np.geomspace(1.0, 1e3, 10)[:, None]
    problem = od.Problem(model, od.Data(t, x, states=["x"]), positive=False)
    theta = np.ones(len(model.parameters))
    found = onset(problem, theta, model.parameters.index("q"), x)
    assert np.log10(size) - 1.5 <= found <= np.log10(size)


def test_a_parameter_that_only_multiplies_matters_always():
    problem = od.Problem(
        od.Model.from_text("x' = -k*x"), od.Data(range(6), [5, 4, 3, 2, 2, 1], states=["x"]), positive=False
    )
    assert onset(problem, np.ones(1), 0, problem.data.y) < -10
