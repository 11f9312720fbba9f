"""Where the sliders start: near the data, wherever a model can be, and quickly enough not to be waited for."""

import numpy as np
import pytest

from odinfer.apps.command.example import FOLDER, names
from odinfer.apps.studio.initial_guess import begin, guess
from odinfer.apps.studio.interactive import Source, choice_of, problems
from odinfer.likelihood.loglik import solution

NOTHING = choice_of({})


def misses(text: str, source: Source, values: dict[str, float]) -> list[float]:
    """What the curves of the sliders leave of the variance of each column, the experiments together."""
    problem = problems(text, "m", source, [])[-1]
    several = len(problem.data.experiments) > 1
    left: dict[str, list[np.ndarray]] = {}
    for i, e in enumerate(problem.data.experiments):
        course, model = problem.course(i), problem.model

        def value(name: str, e=e) -> float:
            return values.get(f"{name}[{e.name}]" if several else name, values.get(name, np.nan))

        theta = np.array([model.fixed.get(p, value(p)) for p in model.parameters])
        x0 = np.array([value(f"{model.states[k]}(0)") for k in model.free_initial])
        x = solution(course, theta, course.initial(theta[None], x0[None])[0], e.t)
        assert x is not None
        for m, column in enumerate(problem.observed):
            program = model.program((column.arguments[0],))
            own = np.tile(theta, (len(e.t), 1))
            seen = program.evaluate(e.t, x, own, course.inputs_at(e.t))[:, 0]
            y = e.y[:, m] if e.limit is None else np.where(e.limit[:, m] == 0, e.y[:, m], np.nan)
            left.setdefault(column.name, []).append(np.stack([y, seen]))
    found = []
    for parts in left.values():
        y, curve = np.concatenate(parts, axis=1)
        found.append(np.nanmean((y - curve) ** 2) / np.nanvar(y))
    return found


@pytest.mark.filterwarnings("ignore::odinfer.errors.InputWarning")
@pytest.mark.parametrize("name", names())
def test_the_first_curve_of_every_example_is_near_its_data(name):
    source, text = Source(FOLDER / f"{name}.csv", NOTHING), (FOLDER / f"{name}.ode").read_text()
    found = guess(text, name, source)
    assert max(misses(text, source, found["values"])) < 0.4
    assert guess(text, name, source) == found
    assert all(size > 0 for key, size in found["sizes"].items() if key in found["values"])


def written(tmp_path, rows: dict[str, np.ndarray]) -> Source:
    path = tmp_path / "data.csv"
    lines = [",".join(rows), *(",".join(f"{v:.6g}" for v in row) for row in zip(*rows.values(), strict=True))]
    path.write_text("\n".join(lines))
    return Source(path, NOTHING)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(tmp_path, size):
    t = np.linspace(0, 50 * size, 30)
    source = written(tmp_path, {"time": t, "x": 7 / size * np.exp(-0.1 / size * t)})
    found = guess("x' = -k*x", "m", source)
    assert found["values"]["k"] == pytest.approx(0.1 / size, rel=0.05)
    assert found["values"]["x(0)"] == pytest.approx(7 / size, rel=0.05)


def test_bounds_and_fixed_values_hold(tmp_path):
    t = np.linspace(0, 5, 30)
    source = written(tmp_path, {"time": t, "x": 7 * np.exp(-t), "y": 3 * np.exp(-2 * t)})
    text = "x' = -k*x\ny' = -m*y\n2 < k < 3\nfixed m = 5"
    found = guess(text, "m", source)["values"]
    assert 2 <= found["k"] <= 3
    assert found["m"] == 5


def test_a_long_series_and_a_model_that_blows_up_have_a_guess_as_well(tmp_path):
    t = np.linspace(0, 10, 20_000)
    source = written(tmp_path, {"time": t, "x": 1 + np.sin(t)})
    for text in ("x' = a*x^2 + b*x^3", "x' = exp(a*x)", "x' = v\nv' = -k*x - c"):
        found = guess(text, "m", source)["values"]
        assert np.isfinite([*found.values()]).all()
        assert "x(0)" in found


def test_experiments_with_parameters_of_their_own_are_looked_at_one_by_one():
    source, text = Source(FOLDER / "theophylline.csv", NOTHING), (FOLDER / "theophylline.ode").read_text()
    found = guess(text, "m", source)["values"]
    own = {found[f"V[{i}]"] for i in range(1, 13)}
    assert len(own) > 8
    assert max(misses(text, source, found)) < 0.1


def test_what_a_guess_needs_is_loaded():
    begin()


def test_experiments_that_observe_different_columns_are_looked_at_together(tmp_path):
    t = np.linspace(0, 4, 12)
    rows = ["time,experiment,u,y,z"]
    rows += [f"{v:.4g},1,1,{5 * np.exp(-v):.4g}," for v in t] + [f"{v:.4g},2,2,,{5 * np.exp(-2 * v):.4g}" for v in t]
    (tmp_path / "data.csv").write_text("\n".join(rows))
    text = "x' = -k*u*x\ny ~ normal(x, s)\nz ~ normal(x, r)\ninput u; 0.01 < k < 10; log s, r; x(0) = 5"
    found = guess(text, "m", Source(tmp_path / "data.csv", NOTHING))
    assert found["values"]["k"] == pytest.approx(1, rel=0.1)


def test_sliders_of_a_model_that_no_search_follows_start_at_natural_sizes(tmp_path):
    t = np.linspace(0.0, 4.0, 9)
    found = guess("V' = I - V\nwhen V > 1: V = 0", "m", written(tmp_path, {"time": t, "V": t % 1}))
    assert set(found["values"]) == {"I", "V(0)"}
