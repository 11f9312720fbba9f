"""ODIN from data to answer: what it finds, what it respects, and how it says that it cannot."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS
from odinfer.errors import Status
from odinfer.gp.kernels import KERNELS
from odinfer.methods.odin import CONTRADICTS_ABOVE

ODIN = od.Odin(refine=False)


def noisy(model, theta, x0, t, sd, seed=0, **options) -> od.Data:
    x = od.simulate(model, theta, x0, t, **options)
    return od.Data(t, x + sd * np.random.default_rng(seed).normal(size=x.shape), states=model.states)


def both_stages(fit):
    return [fit.stages["odin"].theta, fit.stages["refined"].theta]


@pytest.fixture(scope="session")
def wrong() -> od.Model:
    """The paper's wrong equation for the prey."""
    return od.Model.from_text("prey' = a*prey^2 + b*predator\npredator' = -c*predator + d*prey*predator")


@pytest.fixture(scope="session")
def swing(oscillator) -> od.Data:
    return noisy(oscillator, {"a": -4.0, "b": -0.3}, [2.0, 0.0], np.linspace(0.0, 5.0, 25), 0.05)


# --- right answers


def test_noise_free_data_give_the_true_parameters(lv, logistic, oscillator):
    cases = [
        (lv.model, lv.theta, lv.x0, lv.t),
        (logistic, {"r": 1.2, "K": 50.0}, [2.0], np.linspace(0.0, 8.0, 25)),
        (oscillator, {"a": -4.0, "b": -0.3}, [2.0, 0.0], np.linspace(0.0, 6.0, 40)),
    ]
    for model, theta, x0, t in cases:
        fit = od.fit(model, od.Data(t, od.simulate(model, theta, x0, t), states=model.states))
        for stage in both_stages(fit):
            assert stage == pytest.approx(theta, rel=0.02), model.name
        assert set(fit.verdicts.values()) == {CONSISTENT}


def test_a_negative_parameter_is_found_without_a_declaration(oscillator, swing):
    fit = od.fit(oscillator, swing)
    for stage in both_stages(fit):
        assert stage["a"] == pytest.approx(-4.0, rel=0.1)
        assert stage["b"] < 0


def test_one_state_is_enough(decay, decay_data):
    fit = od.fit(decay, decay_data)
    assert fit.theta["k"] == pytest.approx(0.7, abs=0.08)
    assert fit.states.shape == (15, 1)


def test_two_states_and_five_points_survive(lv):
    for seed in range(3):
        fit = od.fit(lv.model, lv.sample(0.1, seed, np.linspace(0.0, 2.0, 5)))
        assert fit.states.shape == (5, 2)
        assert np.isfinite(fit.states.to_numpy()).all()
        assert np.isfinite(list(fit.theta.values())).all()
        assert fit.status in {s.value for s in Status}


def test_the_wrong_equation_is_named_and_the_right_one_acquitted(lv, lv_data, lv_fit, wrong):
    fit = od.fit(wrong, lv_data)
    assert fit.verdicts == {"prey": CONTRADICTS, "predator": CONSISTENT}
    assert fit.gamma["prey"] > 100 * fit.gamma["predator"]
    assert fit.details["equation_tests"]["prey"]["p"] <= 0.025
    # The estimate is that of the best trajectory; ODIN's states follow the data, since γ lets the wrong equation go.
    assert fit.theta == fit.stages["refined"].theta
    assert np.sqrt(np.mean((fit.stages["odin"].x[0] - lv.x) ** 2)) < 0.15
    assert set(lv_fit.verdicts.values()) == {CONSISTENT}
    assert max(lv_fit.gamma.values()) < 1e-3


@pytest.mark.parametrize("seed", [1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 8))])
def test_the_verdicts_of_the_paper_hold_on_several_draws(lv, wrong, seed):
    second = od.Model.from_text("prey' = a*prey - b*prey*predator\npredator' = -c*predator")
    data = lv.sample(0.1, seed)
    assert od.fit(wrong, data).verdicts == {"prey": CONTRADICTS, "predator": CONSISTENT}
    assert od.fit(second, data).verdicts == {"prey": CONSISTENT, "predator": CONTRADICTS}
    assert set(od.fit(lv.model, data).verdicts.values()) == {CONSISTENT}


@pytest.mark.parametrize("which", ["right", "wrong"])
def test_odins_own_verdict_is_whether_gamma_exceeds_its_limit(lv, lv_data, wrong, which):
    fit = od.fit(od.Problem(lv.model if which == "right" else wrong, lv_data), method=ODIN)
    for state, gamma in fit.gamma.items():
        assert fit.verdicts[state] == (CONTRADICTS if gamma > CONTRADICTS_ABOVE else CONSISTENT)
    assert (CONTRADICTS in fit.verdicts.values()) == (which == "wrong")


def test_what_a_fit_was_computed_from_stays_with_it(lv_fit):
    kept = lv_fit.cache
    assert kept.search == od.Odin().search
    assert kept.minima.engine.problem.free == lv_fit.problem.free
    assert kept.minima.solutions[0].risk == lv_fit.stages["odin"].objective
    assert lv_fit.maximum() is kept.maximum


def test_a_model_of_uncoupled_states_is_fitted_as_its_parts():
    t = np.linspace(0.0, 4.0, 18)
    parts = [("x' = -k*x", [0.7], [3.0]), ("n' = r*n*(1 - n/2)", [1.5], [0.2])]
    alone, columns = [], []
    for i, (text, theta, x0) in enumerate(parts):
        model = od.Model.from_text(text)
        data = noisy(model, theta, x0, t, 0.05, seed=i)
        columns.append(data.y)
        alone.append(od.fit(model, data))
    model = od.Model.from_text("\n".join(text for text, _, _ in parts))
    joint = od.fit(model, od.Data(t, np.hstack(columns), states=model.states))
    for fit in alone:
        for stage, tolerance in (("odin", 1e-2), ("refined", 1e-4)):
            for name, value in fit.stages[stage].theta.items():
                assert joint.stages[stage].theta[name] == pytest.approx(value, rel=tolerance)
        state = fit.state_names[0]
        np.testing.assert_allclose(joint.states[state], fit.states[state], atol=1e-3)


def test_a_large_gamma_gives_gaussian_process_regression(lv, lv_data):
    method = od.Odin(refine=False, gamma=1e10, temper=1.0, grid=1, kernel="matern52")
    fit = od.fit(od.Problem(lv.model, lv_data), method=method)
    risk = method.risk(od.Problem(lv.model, lv_data))
    t = (lv_data.t - lv_data.t[0]) / lv_data.t.std()
    for k, h in enumerate(risk.hypers):
        y = (lv_data.y[:, k] - lv_data.y[:, k].mean()) / lv_data.y[:, k].std()
        C = h.variance * KERNELS["matern52"].gram(t, t, np.array(h.shape)).C + method.jitter * np.eye(20)
        mean = C @ np.linalg.solve(C + h.noise * np.eye(20), y)
        regression = lv_data.y[:, k].mean() + lv_data.y[:, k].std() * mean
        np.testing.assert_allclose(fit.states.iloc[:, k], regression, atol=1e-5)


# --- the same answer


def test_the_order_of_rows_does_not_matter(lv, lv_data, lv_fit):
    order = np.random.default_rng(0).permutation(len(lv_data.t))
    with pytest.warns(od.InputWarning, match="sorted"):
        shuffled = od.Data(lv_data.t[order], lv_data.y[order], states=lv_data.states)
    assert od.fit(lv.model, shuffled).theta == pytest.approx(lv_fit.theta, rel=1e-6)


def test_a_missing_cell_equals_a_point_that_was_never_there(lv, lv_data):
    y = np.array(lv_data.y)
    y[5] = np.nan
    gone = od.Data(np.delete(lv_data.t, 5), np.delete(lv_data.y, 5, 0), states=lv_data.states)
    dropped = od.fit(lv.model, gone)
    assert od.fit(lv.model, od.Data(lv_data.t, y, states=lv_data.states)).theta == pytest.approx(
        dropped.theta, rel=1e-6
    )
    y = np.array(lv_data.y)
    y[7, 1] = np.nan
    wide = od.fit(lv.model, od.Data(lv_data.t, y, states=lv_data.states))
    t = np.repeat(lv_data.t, 2)  # a row per observation, that one left out
    long = np.full((40, 2), np.nan)
    long[::2, 0], long[1::2, 1] = y[:, 0], y[:, 1]
    keep = ~np.isnan(long).all(1)
    assert keep.sum() == 39
    fit = od.fit(lv.model, od.Data(t[keep], long[keep], states=lv_data.states))
    assert fit.theta == pytest.approx(wide.theta, rel=1e-6)
    assert abs(wide.theta["a"] - dropped.theta["a"]) > 1e-6


SCRIPT = """
import json
import odinfer as od
lv = od.systems.lotka_volterra
fit = od.fit(lv.model, lv.sample(0.1, seed=0), seed=3)
print(json.dumps([[v.hex() for v in s.theta.values()] + [v.hex() for v in s.x[0].ravel().tolist()]
                  for s in fit.stages.values()]))
"""


def test_the_same_seed_gives_the_same_bits_here_and_in_another_process(lv, lv_data):
    def bits():
        stages = od.fit(lv.model, lv_data, seed=3).stages.values()
        return [[v.hex() for v in (*s.theta.values(), *s.x[0].ravel().tolist())] for s in stages]

    mine = bits()
    assert bits() == mine
    # Environment as it is: a different number of threads must not matter.
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=os.environ.copy()
    )
    assert json.loads(run.stdout) == mine


def test_another_seed_gives_the_same_optimum(lv, lv_data, lv_fit):
    assert od.fit(lv.model, lv_data, seed=12).theta == pytest.approx(lv_fit.theta, rel=1e-3)


def test_arrays_of_the_caller_are_left_as_they_were(lv):
    t, y = np.array(lv.t), np.array(lv.sample(0.1, 0).y)
    u = np.linspace(0.0, 1.0, 20)
    model = od.Model.from_text(
        "prey' = a*prey - b*prey*predator + u\npredator' = -c*predator + d*prey*predator\ninput u"
    )
    before = t.copy(), y.copy(), u.copy()
    options = {"bounds": {"a": (0.0, 5.0)}, "start": {"b": 1.0}, "sigma": {"prey": 0.1}}
    kept = json.dumps(options)
    od.fit(od.Problem(model, od.Data(t, y, states=lv.model.states, inputs={"u": u}), **options))
    for old, new in zip(before, (t, y, u), strict=True):
        np.testing.assert_array_equal(old, new)
    assert json.dumps(options) == kept


@pytest.mark.parametrize("seed", [0, 1])
def test_the_scale_of_a_parameter_is_found_whatever_it_is(seed):
    """The world's population: a limit of 9e9 beside a rate of 0.03, and years that begin at 1950."""
    model, t = od.Model.from_text("n' = r*n*(1 - n/K)"), np.arange(1950.0, 2101.0, 5.0)
    x = od.simulate(model, {"r": 0.03, "K": 9e9}, [2.5e9], t)
    y = x * (1.0 + 0.02 * np.random.default_rng(seed).normal(size=x.shape))
    fit = od.fit(model, od.Data(t, y, states=["n"]), seed=seed)
    for name, truth in {"r": 0.03, "K": 9e9}.items():
        low, high = fit.interval()[name]
        assert 0.9 * truth < low < truth < high < 1.1 * truth


# --- what is known beforehand


@pytest.mark.parametrize("how", ["positive=True", "a > 0 in the text"])
def test_positivity_is_honoured(how, oscillator, swing):
    if how == "positive=True":
        problem = od.Problem(oscillator, swing, positive=True)
    else:
        problem = od.Problem(od.Model.from_text("x' = v\nv' = a*x + b*v\na > 0; b > 0"), swing)
    fit = od.fit(problem)
    for stage in fit.stages.values():
        assert stage.theta["a"] >= 0
        assert stage.theta["b"] >= 0
    assert any("the data contradict it" in w for w in fit.warnings)
    assert fit.verdicts["v"] == CONTRADICTS


def test_bounds_hold_in_both_stages_and_are_said(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data, bounds={"c": (0.0, 3.5)}))
    for stage in fit.stages.values():
        assert 0.0 <= stage.theta["c"] <= 3.5
    assert any("'c' is at its bound" in w for w in fit.warnings)


def test_bounds_of_states_hold_at_every_grid_time_of_odin(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, bounds={"prey": (1.0, 4.0), "predator": (1.2, None)})
    fit = od.fit(problem, method=ODIN)
    assert fit.states["prey"].max() == pytest.approx(4.0)
    assert fit.states["prey"].min() >= 1.0 - 1e-9
    assert fit.states["predator"].min() >= 1.2 - 1e-9
    assert (lv_data.y[:, 0] > 4.0).any()


def test_fixed_parameters_stay_fixed(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data, fixed={"b": 1.05, "d": 1.0}))
    for stage in fit.stages.values():
        assert stage.theta["b"] == 1.05
        assert stage.theta["d"] == 1.0
        assert stage.theta["a"] == pytest.approx(2.1, abs=0.15)
    assert list(fit.theta) == ["a", "b", "c", "d"]


def test_with_all_parameters_fixed_states_and_noise_are_estimated(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data, fixed=lv.theta))
    assert fit.theta == lv.theta
    assert fit.converged
    assert np.sqrt(np.mean((fit.states.to_numpy() - lv.x) ** 2)) < 0.05
    assert fit.sigma["prey"] == pytest.approx(0.1, rel=0.5)


def test_a_model_without_parameters_can_be_fitted(decay_data):
    fit = od.fit(od.Model.from_text("x' = -0.7*x"), decay_data)
    assert fit.theta == {}
    assert fit.converged
    assert fit.states["x"].iloc[0] == pytest.approx(3.0, abs=0.15)


def test_a_start_of_the_user_is_used(decay_data):
    # Minima at k and at −k: the start decides which of them is found.
    model = od.Model.from_text("x' = -k^2*x")
    for sign in (1.0, -1.0):
        fit = od.fit(od.Problem(model, decay_data, start={"k": sign * 0.8}), method=od.Odin(starts=1))
        assert fit.theta["k"] == pytest.approx(sign * np.sqrt(0.7), rel=0.1)


def test_a_log_scale_finds_the_same_answer(lv, lv_data, lv_fit):
    fit = od.fit(od.Problem(lv.model, lv_data, scale=dict.fromkeys("abcd", "log")))
    assert fit.theta == pytest.approx(lv_fit.theta, rel=1e-3)
    tiny = od.Model.from_text("x' = -k*x\nlog k")
    t = np.linspace(0.0, 4e6, 15)
    found = od.fit(tiny, od.Data(t, 3 * np.exp(-7e-7 * t) + 0.01 * np.sin(9 * np.arange(15)), states=["x"]))
    assert found.theta["k"] == pytest.approx(7e-7, rel=0.03)


def test_known_noise_is_used_and_reported(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data, sigma={"prey": 0.3}))
    for stage in fit.stages.values():
        assert stage.sigma["prey"] == pytest.approx(0.3, rel=1e-6)
    assert fit.sigma["predator"] == pytest.approx(0.1, rel=0.5)


def test_priors_from_the_text_pull(decay_data):
    fit = od.fit(od.Model.from_text("x' = -k*x\nk ~ normal(1.5, 0.001)"), decay_data)
    for stage in both_stages(fit):
        assert stage["k"] == pytest.approx(1.5, rel=0.02)


# --- data of every shape


def test_experiments_share_parameters_but_not_times_or_initial_values(lv):
    second = np.linspace(0.0, 1.4, 11)
    data = od.Data.join(
        {
            "one": lv.sample(0.1, 1),
            "two": noisy(lv.model, lv.theta, [2.0, 1.0], second, 0.1, seed=2),
        }
    )
    fit = od.fit(lv.model, data)
    assert fit.theta == pytest.approx(lv.theta, rel=0.15)
    assert fit.states_of("one").shape == (20, 2)
    assert fit.states_of("two").shape == (11, 2)
    np.testing.assert_allclose(fit.states_of("two").iloc[0], [2.0, 1.0], atol=0.2)
    np.testing.assert_allclose(fit.states_of("one").iloc[0], [5.0, 3.0], atol=0.2)


def test_states_may_be_observed_at_different_times(lv):
    y = np.array(lv.sample(0.1, 4).y)
    y[::2, 0] = np.nan
    y[1::2, 1] = np.nan
    fit = od.fit(lv.model, od.Data(lv.t, y, states=lv.model.states))
    assert fit.theta == pytest.approx(lv.theta, rel=0.25)
    assert np.sqrt(np.mean((fit.states.to_numpy() - lv.x) ** 2)) < 0.12


def test_a_state_may_be_missing_in_one_of_the_experiments(lv, tmp_path):
    whole, half = lv.sample(0.1, 1).y, lv.sample(0.1, 4).y[:, 0]
    rows = [f"whole,{t},{x},{y}" for t, (x, y) in zip(lv.t, whole, strict=True)]
    rows += [f"half,{t},{x}," for t, x in zip(lv.t, half, strict=True)]
    path = tmp_path / "data.csv"
    path.write_text("experiment,time,prey,predator\n" + "\n".join(rows))
    fit = od.fit(lv.model, od.read_csv(path))
    assert fit.theta == pytest.approx(lv.theta, rel=0.2)
    assert np.sqrt(np.mean((fit.states_of("half").to_numpy() - lv.x) ** 2)) < 0.15


def test_inputs_and_explicit_time_enter_the_fit():
    model = od.Model.from_text("x' = -k*x + g*u + sin(t)\ninput u")
    t = np.linspace(0.0, 8.0, 33)
    u = (t > 3).astype(float)
    x = od.simulate(model, {"k": 0.8, "g": 2.0}, [1.0], t, inputs={"u": (t, u)})
    y = x + 0.03 * np.random.default_rng(0).normal(size=x.shape)
    fit = od.fit(model, od.Data(t, y, states=["x"], inputs={"u": u}))
    assert fit.theta["k"] == pytest.approx(0.8, rel=0.05)
    assert fit.theta["g"] == pytest.approx(2.0, rel=0.05)


def test_an_experiment_with_one_time_does_not_stop_the_others(decay, decay_data, tmp_path):
    rows = [f"{t},first,{y}" for t, y in zip(decay_data.t, decay_data.y[:, 0], strict=True)]
    path = tmp_path / "data.csv"
    path.write_text("time,experiment,x\n" + "\n".join([*rows, "0.5,second,1.0"]))
    fit = od.fit(decay, od.read_csv(path))
    assert fit.theta["k"] == pytest.approx(0.7, abs=0.08)


def test_experiments_of_one_time_each_are_refused(decay, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("time,experiment,x\n" + "\n".join(f"{i},e{i},{2.0 - 0.1 * i**2}" for i in range(6)))
    with pytest.raises(od.InputError):
        od.fit(decay, od.read_csv(path))


def test_a_chaotic_system_over_a_long_time_ends_with_a_status():
    lorenz = od.Model.from_text("x' = s*(y - x)\ny' = x*(r - z) - y\nz' = x*y - b*z", name="lorenz")
    truth = {"s": 10.0, "r": 28.0, "b": 8.0 / 3.0}
    data = noisy(lorenz, truth, [-8.0, 7.0, 27.0], np.linspace(0.0, 20.0, 200), 0.5)
    fit = od.fit(lorenz, data)
    assert fit.status in {s.value for s in Status}
    assert fit.theta == pytest.approx(truth, rel=0.1)
    assert np.sqrt(np.mean(fit.residuals.to_numpy() ** 2)) < 1.5


# --- options


@pytest.mark.parametrize("name", ["auto", *KERNELS])
def test_every_kernel_works_from_data_to_answer(lv, lv_data, name):
    fit = od.fit(od.Problem(lv.model, lv_data), method=od.Odin(kernel=name))
    assert fit.converged
    assert fit.stages["odin"].theta == pytest.approx(lv.theta, rel=0.2)
    assert fit.theta == pytest.approx(lv.theta, rel=0.1)
    if name != "auto":
        assert set(fit.details["kernels"].values()) == {name}


def test_both_optimisers_and_hops_agree(lv, lv_data):
    problem = od.Problem(lv.model, lv_data)
    options = {"refine": False, "jitter": 1e-3, "starts": 2}
    ours = od.fit(problem, method=od.Odin(**options))
    for changes in ({"optimizer": "lbfgsb"}, {"optimizer": "lbfgsb", "hops": 1}, {"hops": 3}):
        theirs = od.fit(problem, method=od.Odin(**options, **changes))
        assert theirs.stages["odin"].objective == pytest.approx(ours.stages["odin"].objective, abs=1.0)
        assert theirs.theta == pytest.approx(ours.theta, rel=0.02)


def test_gamma_may_be_learned_held_or_zero(lv, lv_data, wrong):
    problem = od.Problem(lv.model, lv_data)
    for gamma in (0, 0.0, 0.3):
        fit = od.fit(problem, method=od.Odin(refine=False, gamma=gamma))
        assert set(fit.gamma.values()) == {float(gamma)}
        assert fit.converged
        assert fit.theta == pytest.approx(lv.theta, rel=0.15)
    low, high = 1e-4, 0.5
    learned = od.fit(od.Problem(wrong, lv_data), method=od.Odin(refine=False, gamma_bounds=(low, high)))
    assert learned.gamma["prey"] == pytest.approx(high)
    assert learned.gamma["predator"] >= low * (1 - 1e-9)


def test_a_gamma_that_is_held_accuses_nobody(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data), method=od.Odin(refine=False, gamma=0.5))
    assert CONTRADICTS not in fit.verdicts.values()


def test_one_gamma_for_all_states(lv_data, wrong):
    fit = od.fit(od.Problem(wrong, lv_data), method=od.Odin(refine=False, shared=True))
    assert fit.gamma["prey"] == fit.gamma["predator"]


@pytest.mark.parametrize(
    "changes", [{"grid": 1}, {"grid": 4}, {"temper": 1.0}, {"temper": 50.0}, {"scale_time": False}]
)
def test_grid_and_temper_change_the_answer_a_little(lv, lv_data, changes):
    fit = od.fit(od.Problem(lv.model, lv_data), method=od.Odin(refine=False, **changes))
    default = od.fit(od.Problem(lv.model, lv_data), method=ODIN)
    assert fit.theta == pytest.approx(default.theta, rel=0.1)
    assert fit.stages["odin"].objective != default.stages["odin"].objective
    points = len(fit.experiments["1"].gradients.t)
    assert points == 19 * changes.get("grid", 2) + 1


def test_options_are_recorded_as_they_were(lv, lv_data):
    method = od.Odin(kernel="rbf", refine=False, starts=3)
    fit = od.fit(od.Problem(lv.model, lv_data), method=method, seed=5)
    assert fit.options["kernel"] == "rbf"
    assert fit.options["starts"] == fit.details["starts"] == 3
    assert fit.seed == 5
    assert od.Odin(**{k: tuple(v) if isinstance(v, list) else v for k, v in fit.options.items()}) == method


BAD = [
    {"kernel": "mattern52"},
    {"kernel": None},
    {"optimizer": "adam"},
    {"optimizer": None},
    {"gamma": "learned"},
    {"gamma": -1.0},
    {"gamma": float("nan")},
    {"gamma": float("inf")},
    {"gamma": None},
    {"gamma_bounds": (1.0, 0.1)},
    {"gamma_bounds": (0.0, 1.0)},
    {"gamma_bounds": 3.0},
    {"jitter": 0.0},
    {"jitter": 2.0},
    {"jitter": float("nan")},
    {"jitter": "small"},
    {"grid": 0},
    {"grid": 1.5},
    {"starts": 0},
    {"starts": "many"},
    {"hops": -1},
    {"temper": 0.5},
    {"temper": float("nan")},
    {"temper": "hot"},
    {"hyper_bounds": (1.0, 0.1)},
    {"hyper_bounds": (0.0, 1.0)},
]


@pytest.mark.parametrize("options", BAD, ids=lambda o: "-".join(f"{k}={v}" for k, v in o.items()))
def test_bad_options_are_refused_in_one_line(options):
    with pytest.raises(od.InputError) as caught:
        od.Odin(**options)
    assert "\n" not in str(caught.value)
    assert next(iter(options)).split("_")[0] in str(caught.value)


# --- bad luck is not bad input


def test_equations_not_finite_at_the_data_are_refused_before_anything_else():
    t = np.linspace(0.0, 2.0, 8)
    model = od.Model.from_text("x' = k*sqrt(x)")
    with pytest.raises(od.InputError, match="not finite at t = 0"):
        od.fit(model, od.Data(t, -1.0 - t, states=["x"]))


@pytest.fixture(scope="module")
def hopeless():
    """Finite at the data, but not between the first two."""
    t = np.arange(8.0)
    return od.fit(od.Model.from_text("x' = -k*x*sqrt((t - 0.3)*(t - 0.6))"), od.Data(t, np.exp(-t), states=["x"]))


def test_a_model_that_is_finite_nowhere_near_the_data_fails_with_a_status(hopeless):
    assert hopeless.status == Status.NOT_FINITE.value
    assert not hopeless.converged
    assert np.isfinite(hopeless.states.to_numpy()).all()  # the smoothed data are left


def test_a_model_with_a_pole_between_the_data_is_not_called_consistent():
    t = np.arange(8.0)
    fit = od.fit(od.Model.from_text("x' = -k*x/(t - 0.5)"), od.Data(t, np.exp(-t), states=["x"]))
    assert CONSISTENT not in fit.verdicts.values()
    assert any("trust neither it nor its intervals" in warning for warning in fit.warnings)


def test_a_failed_fit_acquits_no_equation(hopeless):
    assert CONSISTENT not in hopeless.verdicts.values()


def test_a_failed_fit_can_be_saved_and_shown(hopeless, tmp_path):
    hopeless.save(tmp_path / "fit.json")
    assert od.load(tmp_path / "fit.json").status == hopeless.status
    assert isinstance(hopeless.summary(), str)


def test_constant_data_are_fitted(decay):
    t = np.linspace(0.0, 3.0, 8)
    with pytest.warns(od.InputWarning, match="constant"):
        data = od.Data(t, np.ones(8), states=["x"])
    fit = od.fit(decay, data)
    assert fit.theta["k"] == pytest.approx(0.0, abs=1e-3)


@pytest.mark.filterwarnings("ignore:.*several values of 'x' at one time")
def test_replicates_count_one_by_one(decay):
    t, rng = np.linspace(0.0, 4.0, 12), np.random.default_rng(3)
    y = 3.0 * np.exp(-0.7 * t)[:, None] + 0.1 * rng.normal(size=(12, 5))
    each = od.fit(decay, od.Data(np.repeat(t, 5), y.ravel(), states=["x"]))
    mean = od.fit(decay, od.Data(t, y.mean(axis=1), states=["x"]))
    # The likelihood is largest at the same place, and the noise is that of a value and not that of a mean.
    assert each.theta["k"] == pytest.approx(mean.theta["k"], rel=1e-5)
    assert each.sigma["x"] == pytest.approx(0.1, rel=0.25)
    assert mean.sigma["x"] == pytest.approx(0.1 / 5**0.5, rel=0.5)


def test_units_far_from_one_do_not_matter(decay):
    t = np.linspace(0.0, 4.0, 15)
    noise = 0.02 * np.random.default_rng(0).normal(size=15)
    plain = od.fit(decay, od.Data(t, np.exp(-t) + noise, states=["x"]))
    odd = od.fit(decay, od.Data(1e7 * t + 1e8, 1e-9 * (np.exp(-t) + noise), states=["x"]))
    assert 1e7 * odd.theta["k"] == pytest.approx(plain.theta["k"], rel=1e-3)


def test_bounds_far_from_zero_can_be_fitted(decay):
    t = np.linspace(0.0, 3e-3, 12)
    for rate in (1700.0, -1700.0):
        y = np.exp(-rate * t) + 0.01 * np.random.default_rng(0).normal(size=12)
        bounds = (1500.0, 2000.0) if rate > 0 else (-2000.0, -1500.0)
        fit = od.fit(od.Problem(decay, od.Data(t, y, states=["x"]), bounds={"k": bounds}))
        assert fit.theta["k"] == pytest.approx(rate, rel=0.05)


# text, parameters with their exponents of the units of x, y and time, initial values, length
SYSTEMS = [
    (
        "x' = a*x - b*x*y; y' = c*x*y - d*y",
        {"a": (0.8, 0, 0, -1), "b": (0.4, 0, -1, -1), "c": (0.3, -1, 0, -1), "d": (0.6, 0, 0, -1)},
        (3.0, 1.0), 12.0,
    ),
    (
        "x' = r*x*(1 - x/K) - v*x*y/(h + x); y' = e*v*x*y/(h + x) - m*y",
        {"r": (1.0, 0, 0, -1), "K": (8.0, 1, 0, 0), "v": (1.2, 1, -1, -1), "h": (1.5, 1, 0, 0), "e": (0.6, -1, 1, 0),
         "m": (0.4, 0, 0, -1)},
        (4.0, 1.0), 25.0,
    ),
]  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS, ids=["products", "saturation"])
@settings(max_examples=3, derandomize=True, deadline=None)
@given(units=st.tuples(*[st.floats(-6.0, 6.0)] * 3), seed=st.integers(0, 9))
def test_estimates_do_not_depend_on_units(system, units, seed):
    text, parameters, x0, length = system
    model, t = od.Model.from_text(text), np.linspace(0.0, length, 25)
    x = od.simulate(model, {p: v[0] for p, v in parameters.items()}, x0, t)
    y = x + 0.03 * x.std(0) * np.random.default_rng(seed).normal(size=x.shape)
    size = 10.0 ** np.array(units)
    one, other = (
        od.fit(od.Problem(model, od.Data(t * u[2], y * u[:2], states=["x", "y"])), seed=seed)
        for u in (np.ones(3), size)
    )
    assert (one.status, one.verdicts) == (other.status, other.verdicts)
    for name, (_, *powers) in parameters.items():
        assert other.theta[name] / np.prod(size**powers) == pytest.approx(one.theta[name], rel=1e-5), name
    change = len(t) * np.log(size[:2]).sum()
    assert other.stages["refined"].loglik + change == pytest.approx(one.stages["refined"].loglik, abs=1e-5)


def test_numbers_in_a_text_tell_the_size_of_parameters():
    plain = od.Model.from_text("s' = -v*s/(k + s); p' = v*s/(k + s)*exp(-p/q)")
    other = od.Model.from_text("s' = -v/1e7*s/(k/1e-8 + s); p' = v/1e7*s/(k/1e-8 + s)*exp(-p/(q/1e6))")
    data = noisy(plain, {"v": 1.0, "k": 0.5, "q": 3.0}, [4.0, 0.1], np.linspace(0.0, 6.0, 20), 0.05)
    for seed in range(3):
        one, two = (od.fit(od.Problem(m, data), seed=seed) for m in (plain, other))
        sizes = {"v": 1e7, "k": 1e-8, "q": 1e6}
        assert {p: two.theta[p] / sizes[p] for p in sizes} == pytest.approx(one.theta, rel=1e-4)
