"""What the page computes by itself: trajectories that agree with Python's, and clicks that become text."""

import itertools
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from odinfer.apps.command.example import FOLDER, names
from odinfer.apps.studio import javascript
from odinfer.apps.studio.interactive import Source, choice_of, problems, understand
from odinfer.model.model import Model
from odinfer.problem.condition import Condition

TRAJECTORY = """
const m = await load(given.module), { trajectory } = await page("solver.js");
const { courses, shown, p, free } = given;
return courses.map((course, i) => trajectory(m, { ...course, shown }, given.given, p, free[i]));
"""


def solved(condition: Condition, theta: np.ndarray, free: np.ndarray, times: np.ndarray) -> np.ndarray:
    """States (N, K) at increasing times by SciPy, from corner to corner; at a jump, those before it."""
    x = condition.initial(theta[None], free[None])[0]
    stops = np.unique([condition.start, *condition.between(condition.start, times[-1]), times[-1]])
    found = np.tile(x, (len(times), 1))
    for a, b in itertools.pairwise(stops):
        for jump in condition.jumps:
            if jump.time == a:
                x = condition.jumped(jump, x[None], theta[None])[0][0]
        inside = (times > a) & (times <= b)

        def field(t: float, y: np.ndarray, a: float = a, b: float = b) -> np.ndarray:
            return condition.evaluate(condition.inside(a, b, np.array([t])), y[None], theta[None])[0]

        where = np.unique(np.append(times[inside], b))
        y = solve_ivp(field, (a, b), x, "LSODA", t_eval=where, rtol=1e-9, atol=1e-11).y.T
        found[inside], x = y[: inside.sum()], y[-1]
    return found


@pytest.mark.filterwarnings("ignore::odinfer.errors.InputWarning")
@pytest.mark.parametrize("name", names())
def test_trajectories_of_examples_are_those_of_python(node, name):
    text, source = (FOLDER / f"{name}.ode").read_text(), Source(FOLDER / f"{name}.csv", choice_of({}))
    (problem,) = problems(text, name, source, [])
    said, model = understand(text, name, source), problem.model
    p = np.array([model.fixed.get(n, 0.7 if n != "K" else 900.0) for n in model.parameters])
    count = min(len(problem.data.experiments), 3)
    free = [np.linspace(0.4, 0.9, len(model.states)) for _ in range(count)]
    asked = {
        "module": said["module"], "courses": said["experiments"][:count], "shown": len(said["columns"]),
        "p": p.tolist(), "given": [model.states.index(s) for s in said["given"]], "free": [f.tolist() for f in free],
    }  # fmt: skip
    for i, curve in enumerate(node.run(TRAJECTORY, asked)):
        assert curve["ended"] is None
        t, x = np.array(curve["t"]), np.array(curve["x"]).T
        once = np.append(True, np.diff(t) > 0)  # before a jump
        condition = problem.condition(i)
        expected = solved(condition, p, free[i][model.free_initial], t[once])
        size = np.abs(expected).max(0) + 1e-12
        assert np.abs((x[once] - expected) / size).max() < 3e-4
        m = said["columns"].index(said["observed"][0])
        first = model.program((problem.observed[0].arguments[0],))
        with np.errstate(all="ignore"):
            y = first.evaluate(t[once], x[once], np.tile(p, (once.sum(), 1)), condition.inputs_at(t[once]))[:, 0]
        if not model.declarations.steps:
            assert np.array(curve["y"][m])[once] == pytest.approx(y, rel=1e-6, abs=1e-9, nan_ok=True)


def one(node, text: str, end: float, p: list[float], free: list[float]):
    model = Model.from_text(text)
    condition = {"start": 0, "end": end, "corners": [], "jumps": [], "infusions": [], "inputs": []}
    asked = {
        "module": javascript.module(model, []),
        "courses": [condition],
        "shown": 0,
        "p": p,
        "given": [],
        "free": [free],
    }
    return node.run(TRAJECTORY, asked)[0]


def test_a_stiff_system_is_followed(node):
    found = one(node, "x' = y\ny' = m*(1 - x^2)*y - x", 2000.0, [1000.0], [2.0, 0.0])
    assert found["ended"] is None
    assert found["x"][0][-1] == pytest.approx(1.70617, abs=2e-3)


def test_a_trajectory_that_blows_up_ends_where_it_does(node):
    found = one(node, "x' = a*x^2", 3.0, [1.0], [1.0])
    assert found["ended"] == pytest.approx(1.0, abs=1e-3)
    assert np.isfinite(found["x"][0]).all()


def test_a_system_that_settles_has_its_points_where_something_is_seen(node):
    text, condition = "x' = -k*(x - 3)", {"start": -1e6, "seen": 0, "end": 10, "corners": [0]}
    given = {"jumps": [], "infusions": [], "inputs": []} | condition
    asked = {"module": javascript.module(Model.from_text(text), []), "courses": [given], "shown": 0, "p": [0.5]}
    found = node.run(TRAJECTORY, {**asked, "given": [], "free": [[7.0]]})[0]
    assert found["t"][0] == -1e6
    assert sum(-10 <= t <= 10 for t in found["t"]) > 200
    assert found["x"][0][-1] == pytest.approx(3, rel=1e-4)


def test_the_curve_of_a_long_oscillation_has_all_its_bends(node):
    found = one(node, "x' = v\nv' = -x", 400 * np.pi, [], [1.0, 0.0])
    t, x = np.array(found["t"]), np.array(found["x"][0])
    assert (np.diff(t) > 0).all()
    assert len(t) < 10_000
    middle = (t[1:] + t[:-1]) / 2
    assert np.abs((x[1:] + x[:-1]) / 2 - np.cos(middle)).max() < 0.1


WITHIN = """
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
const { within } = await page("charts.js");
return within(...given);
"""


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-1, 9, [[0, 1, 2, 3], [0, 10, 20, 30]]),
        (0.5, 2.5, [[0.5, 1, 2, 2.5], [5, 10, 20, 25]]),
        (1.2, 1.4, [[1.2, 1.4], [12, 14]]),
        (4, 5, [[], []]),
    ],
)
def test_of_a_curve_only_what_is_in_sight_is_drawn(node, low, high, expected):
    found = node.run(WITHIN, [[0, 1, 2, 3], [0, 10, 20, 30], low, high])
    assert [found["t"], found["y"]] == [pytest.approx(values) for values in expected]


STATEMENTS = "const s = await page('statements.js'); return s[given.name](...given.args);"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x' = a*x", "x' = a*x\n0 < a < 5\n"),
        ("x' = a*x\n1 < a < 2\n", "x' = a*x\n0 < a < 5\n"),
        ("x' = a*x; a > 1; a<=9  # mine\nb > 2", "x' = a*x  # mine\nb > 2\n0 < a < 5\n"),
        ("x' = a*x\naa > 1\n3 > a", "x' = a*x\naa > 1\n0 < a < 5\n"),
    ],
)
def test_bounds_are_written_in_place_of_others(node, text, expected):
    assert node.run(STATEMENTS, {"name": "withBounds", "args": [text, "a", 0, 5]}) == expected


def test_bounds_and_fixed_values_go_again(node):
    text = "x' = a*x\n"
    bounded = node.run(STATEMENTS, {"name": "withBounds", "args": [text, "x(0)", 0, None]})
    assert bounded == "x' = a*x\n0 < x(t0)\n"
    assert node.run(STATEMENTS, {"name": "withBounds", "args": [bounded, "x(0)", None, None]}) == text
    fixed = node.run(STATEMENTS, {"name": "withFixed", "args": ["x' = a*x\nstart a = 2", "a", 3]})
    assert fixed == "x' = a*x\nfixed a = 3\n"
    assert node.run(STATEMENTS, {"name": "withFixed", "args": [fixed, "a", None]}) == text
    for made in (bounded, fixed):
        Model.from_text(made)


@pytest.mark.parametrize(
    ("name", "args", "text", "expected"),
    [
        ("withScale", ["a", "log"], "x' = a*x\n", "x' = a*x\nlog a\n"),
        ("withScale", ["a", "log"], "x' = a*b*x; log b  # mine\n", "x' = a*b*x; log b, a  # mine\n"),
        ("withScale", ["a", None], "x' = a*b*x\nlog b, a", "x' = a*b*x\nlog b"),
        ("withScale", ["a", None], "x' = a*x\nlog a\n", "x' = a*x\n"),
        ("withScale", ["a", "log"], "x' = log(a)*x\nlinear a", "x' = log(a)*x\nlog a\n"),
        ("withScale", ["x(0)", "log"], "x' = a*x\n", "x' = a*x\nlog x(t0)\n"),
        ("withLocal", ["a", True], "x' = a*x\n", "x' = a*x\nlocal a\n"),
        ("withLocal", ["a", False], "x' = a*x\nlocal a", "x' = a*x"),
        ("withStart", ["a", 2], "x' = a*x\nstart a = 3", "x' = a*x\nstart a = 2\n"),
        ("withStart", ["a", None], "x' = a*x\nstart a = 3; start b = 2", "x' = a*x\nstart b = 2"),
        ("withDistribution", ["a", "normal(2, 1)"], "x' = a*x\n", "x' = a*x\na ~ normal(2, 1)\n"),
        ("withDistribution", ["a", "uniform(0, 1)"], "x' = a*x; a ~ normal(2, 1)", "x' = a*x\na ~ uniform(0, 1)\n"),
        ("withDistribution", ["a", None], "x' = a*x\na ~ normal(2, 1)  # known\n", "x' = a*x\n# known\n"),
        ("withDistribution", ["x(0)", "normal(1, 2)"], "x' = x\nx(0) ~ normal(2,1)", "x' = x\nx(0) ~ normal(1, 2)\n"),
    ],
)
def test_what_is_clicked_becomes_text(node, name, args, text, expected):
    assert node.run(STATEMENTS, {"name": name, "args": [text, *args]}) == expected


FAMILIES = {
    "normal": {"arguments": ["mean", "sd"]}, "student": {"arguments": ["mean", "sd", "df"]},
    "poisson": {"arguments": ["mean"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "family", "given"),
    [
        ("x' = -x; y ~ normal(max(x, 1), 0.1*x)  # z ~ poisson(x)", "normal", ["max(x, 1)", "0.1*x"]),
        ("x' = -x\ny ~ student(x, df = 7)", "student", ["x", None, "7"]),
        ("x' = -x\ny~poisson( rho*x [+ b] )", "poisson", ["rho*x [+ b]"]),
        ("x' = -x\nyy ~ poisson(x)", None, None),
    ],
)
def test_the_distribution_of_a_column_is_read_and_written_as_it_stands(node, text, family, given):
    said = node.run(STATEMENTS, {"name": "distribution", "args": [text, "y", FAMILIES]})
    assert said == (None if family is None else {"family": family, "given": given})
    if family is not None:
        titles = FAMILIES[family]["arguments"]
        words = node.run(STATEMENTS, {"name": "distributionWords", "args": [family, given, titles]})
        again = node.run(STATEMENTS, {"name": "withDistribution", "args": [text, "y", words]})
        assert node.run(STATEMENTS, {"name": "distribution", "args": [again, "y", FAMILIES]}) == said


ENDS = "const s = await page('rows.js'); return s.ends(...given);"


def test_sliders_have_room_around_any_value(node):
    row = {"low": None, "high": None, "log": False, "signed": False}
    for value in (2.02, 1e-9, 3e7, 0.0):
        low, high = node.run(ENDS, [row, value, None, 0])
        assert low == 0
        assert high >= 2 * value
        assert float(f"{high:.1g}") == pytest.approx(high)
    low, high = node.run(ENDS, [row, -0.01, None, 4])
    assert low <= -2
    assert high >= 2
    low, high = node.run(ENDS, [row | {"log": True}, 0.5, None, 1])
    assert 0 < low < 0.01
    assert high > 20
    assert node.run(ENDS, [row | {"low": 1, "high": 3}, 2, None, 1]) == [1, 3]


@pytest.mark.parametrize("kept", [[0, 3], [-3, 3]])
def test_a_slider_that_becomes_logarithmic_has_positive_ends(node, kept):
    row = {"low": None, "high": None, "log": True, "signed": False}
    low, high = node.run(ENDS, [row, 0.5, kept, 1])
    assert 0 < low < 0.5 < high


@pytest.mark.parametrize("columns", [["prey", "predator"], ["height [cm]"], ["Größe (m)", "2nd", "t", "log", "a b/c"]])
def test_the_first_model_of_any_columns_can_be_read(node, columns):
    model = Model.from_text(node.run(STATEMENTS, {"name": "firstModel", "args": [columns]}))
    assert list(model.states) == [node.run(STATEMENTS, {"name": "asName", "args": [c]}) for c in columns]
    assert {*model.scale.values()} == {"linear"}  # a column may fall as well as rise
    assert {*model.scale} == {*model.parameters}


PICTURE = """
const { picture } = await page("picture.js");
const layers = {
  bands: [{ t: [0, 1, 2], low: [1, null, 3], high: [2, 3, 4], colour: "red" }],
  points: [{ t: [0, 1], y: [1, null], colour: "blue" }],
  lines: [{ t: [0, 1, 2, 3], y: [1, 2, null, 3], colour: "green" }], moving: [] };
return picture({ span: [0, 3], y: given, log: given[0] > 0, layers, labels: ["time [h]", ""] }, "<x> & \\"y\\"");
"""


@pytest.mark.parametrize("limits", [[0, 5], [0.1, 100]])
def test_a_chart_is_saved_as_svg_with_gaps_where_values_are_missing_and_names_as_words(node, limits):
    text = node.run(PICTURE, limits)
    tree = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert '<x> & "y"' in [t.text for t in tree.iter(f"{space}text")]
    assert "time [h]" in [t.text for t in tree.iter(f"{space}text")]
    (line,) = (p.get("d") for p in tree.iter(f"{space}path") if p.get("stroke") == "green")
    assert line.count("M") == 2
    assert len(list(tree.iter(f"{space}circle"))) == 1
    assert "NaN" not in text


MIDDLE = "const s = await page('rows.js'); return s.rowsOf(given)[0].otherwise;"


@pytest.mark.parametrize(("low", "high"), [(None, 0.3), (0.3, None), (None, None), (0.1, 0.4), (0.001, 100)])
def test_a_slider_on_a_log_scale_starts_at_a_positive_value_within_its_bounds(node, low, high):
    row = {"name": "k", "low": low, "high": high, "log": True, "prior": None, "fixed": None, "start": None}
    value = node.run(MIDDLE, {"parameters": [row], "free": [], "experiments": []})
    assert (low or 0) < value < (high or float("inf"))
