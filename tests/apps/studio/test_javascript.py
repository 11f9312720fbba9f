"""What the page computes of a model is what Python computes of it, operator by operator and in any combination."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from odinfer.apps.studio.javascript import module
from odinfer.errors import InputError
from odinfer.model.expression import ARITY
from odinfer.model.model import Model

RUN = """
const m = await load(given.module);
const out = new Float64Array(2);
return given.points.map(({ t, x, p, u }) => { m.field(t, x, p, u, out); return out[0]; });
"""
NAMES = ("x", "y", "a", "b", "u", "t")
VALUES = (-1e3, -2.0, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 2.0, 3.0, 1e3)


def model_of(expression: str) -> Model:
    # The last equation makes sure of all names, whatever the expression has.
    text = f"x' = {expression}\ny' = x + y + a + b + u + t\ninput u"
    return Model.from_text(text)


def both(node, model: Model, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values by Python and by JavaScript at points (M, 6): x, y, a, b, u, t."""
    theta = {"a": points[:, 2], "b": points[:, 3]}
    order = [theta[name] for name in model.parameters]
    with np.errstate(all="ignore"):
        python = model.evaluate(points[:, 5], points[:, :2], np.stack(order, -1), points[:, 4:5])[:, 0]
    asked = [
        {"t": q[5], "x": q[:2], "p": [float(v[i]) for v in order], "u": q[4:5]} for i, q in enumerate(points.tolist())
    ]
    found = node.run(RUN, {"module": module(model, []), "points": asked})
    return python, np.array([float(v) for v in found])


def equal(one: np.ndarray, two: np.ndarray, slack: float) -> np.ndarray:
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    with np.errstate(all="ignore"):
        return same | (np.abs(one - two) <= slack * np.maximum(np.abs(one), 1e-300))


ONE = [f"{name}(x)" for name in ARITY if 1 in ARITY[name] and name not in ("min", "max", "pow", "hill", "where")]
TWO = ["x + y", "x - y", "x*y", "x/y", "x^y", "x**y", "pow(x, y)", "min(x, y)", "max(x, y)", "min(x, y, a)", "-x", "+x"]
TWO += [f"where(x {sign} y, 1, 2)" for sign in ("<", "<=", ">", ">=", "==", "!=")]
TWO += [
    "where(x < y and y < 1, 1, 2)",
    "where(x < y or y < 1, 1, 2)",
    "where(not x < y, 1, 2)",
    "where(0 <= x < y, 1, 2)",
]
TWO += [
    "x^2",
    "x^3",
    "x^7",
    "x^-2",
    "x^0.5",
    "x^1000",
    "x²·y",
    "hill(x, a, b)",
    "piecewise(1, x < 0, 2, y > 1, x)",
    "1/sign(x)",
]


@pytest.mark.parametrize("expression", ONE + TWO)
def test_every_operator_and_function_means_the_same(node, expression):
    grid = np.array([(x, y, 1.5, 2.5, 0.5, 1.0) for x in VALUES for y in VALUES])
    python, javascript = both(node, model_of(expression), grid)
    assert equal(python, javascript, 1e-12).all(), grid[~equal(python, javascript, 1e-12)][0]


def test_every_function_of_the_language_is_among_these():
    assert {name for name in ARITY if not any(f"{name}(" in text for text in ONE + TWO)} == set()


numbers = st.sampled_from(("0", "1", "2", "0.5", "3.7", "1e-3", "12"))
leaves = st.sampled_from(NAMES) | numbers


def wider(inner):
    calls = [st.builds(call.replace("(x)", "({})").format, inner) for call in ONE]
    calls += [st.builds("hill({}, {}, {})".format, inner, inner, inner)]
    pairs = [st.builds(f"({{}} {op} {{}})".format, inner, inner) for op in ("+", "-", "*", "/", "^")]
    pairs += [st.builds(f"{name}({{}}, {{}})".format, inner, inner) for name in ("min", "max")]
    conditions = st.builds("{} {} {}".format, inner, st.sampled_from(("<", "<=", ">", ">=", "==", "!=")), inner)
    both_ways = st.builds("{} {} {}".format, conditions, st.sampled_from(("and", "or")), conditions)
    neither = st.builds("not ({})".format, conditions)
    chosen = st.builds("where({}, {}, {})".format, conditions | both_ways | neither, inner, inner)
    pieces = st.builds("piecewise({}, {}, {}, {}, {})".format, inner, conditions, inner, conditions, inner)
    return st.one_of(*calls, *pairs, chosen, pieces, st.builds("(-{})".format, inner))


@settings(max_examples=150, deadline=None)
@given(expression=st.recursive(leaves, wider, max_leaves=12), seed=st.integers(0, 2**32 - 1))
def test_random_expressions_mean_the_same(node, expression, seed):
    try:
        model = model_of(expression)
    except InputError:
        return  # constants that are not finite are refused
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.choice(VALUES, (6, 6)), rng.normal(size=(6, 6))])
    python, javascript = both(node, model, points)
    same = equal(python, javascript, 1e-9)
    # Libraries differ in the last digit: where that digit matters, it matters to Python as well.
    nearby = [both(node, model, points * (1 + s * 1e-13))[0] for s in (-1, 1)] if not same.all() else []
    for i in np.flatnonzero(~same):
        assert any(not equal(python[i : i + 1], n[i : i + 1], 1e-10)[0] for n in nearby), (expression, points[i])


def test_nothing_of_the_users_text_is_in_a_module():
    text = module(Model.from_text("verylongname' = -otherlongname*verylongname\nat 2: verylongname = 0"), [])
    assert "longname" not in text
