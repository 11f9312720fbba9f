"""What `check` says about a problem, and what it finds."""

import numpy as np
import pytest

import odinfer as od
from odinfer.apps.command.check import describe, findings, noise
from odinfer.data.data import Data
from odinfer.errors import InputError, InputWarning
from odinfer.model.model import Model
from odinfer.problem.problem import Problem

T = np.linspace(0.0, 4.0, 21)
X = 5.0 * np.exp(-0.7 * T)


def problem(text: str, y=X, t=T, inputs=None, **known) -> Problem:
    model = Model.from_text(text)
    return Problem(model, Data(t, y, states=model.states, inputs=inputs), **known)


def noisy(sd: float, seed: int = 0) -> np.ndarray:
    return X + sd * np.random.default_rng(seed).normal(size=X.shape)


def test_an_experiment_into_which_nothing_enters_is_told_about_doses():
    model = od.Model.from_text("gut' = -ka*gut; body' = ka*gut - ke*body; gut(0) = 0; body(0) = 0; c ~ normal(body/V)")
    t, c = np.arange(6.0), [0.0, 3.0, 4.0, 3.5, 3.0, 2.0]
    dosed, other = od.Data(t, c, states=["c"], doses=[(0, 100)]), od.Data(t, c, states=["c"])
    said = findings(od.Problem(model, od.Data.join({"dosed": dosed, "other": other})))
    assert any("experiment 'other' and nothing enters; give an initial value, or doses" in one for one in said)
    assert not any("experiment 'dosed'" in one and "nothing enters" in one for one in said)
    with pytest.raises(od.InputError, match="every state starts at 0 and stays there"):
        findings(od.Problem(model, other))


def test_many_findings_of_one_kind_are_summed_up_and_so_are_many_experiments():
    t = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 30.0, 31.0])
    parts = [od.Experiment(f"plot {i}", t, np.exp(-0.1 * t)[:, None], {}) for i in range(30)]
    problem = od.Problem(od.Model.from_text("x' = -k*x"), od.Data.from_experiments(("x",), parts))
    assert sum("has a gap" in sentence for sentence in findings(problem)) == 2
    assert "28 more like this one" in findings(problem)
    assert "and 10 more" in describe(problem)


def test_a_good_problem_has_no_findings():
    assert findings(problem("x' = -k*x", noisy(0.1))) == []


def test_the_description_names_everything_that_was_understood():
    p = problem(
        "x' = -k*x + s*c + u\ninput u",
        inputs={"u": T},
        bounds={"k": (0, 10)},
        scale={"k": "log"},
        start={"k": 2},
        fixed={"s": 3.5},
        prior={"c": ("normal", 2, 0.5)},
        sigma={"x": 0.25},
    )
    text = describe(p)
    for piece in ("21 observations", "0 to 10", "log", "fixed at 3.5", "normal(2, 0.5)", "0 to 4", "u", "0.25 (given)"):
        assert piece in text
    assert max(map(len, text.splitlines())) <= 100


def test_missing_values_are_counted_per_state():
    y = np.column_stack([X, X])
    y[:3, 1] = np.nan
    text = describe(problem("x' = -k*x\nz' = -k*z", y))
    counts = [line.split()[:3] for line in text.splitlines() if line.startswith(("x ", "z "))]
    assert counts == [["x", "21", "0"], ["z", "18", "3"]]


def test_replicates_are_observations_but_no_times_and_no_gaps():
    with pytest.warns(InputWarning, match="several values"):
        p = problem("x' = -k*x", np.ravel([noisy(0.1, seed) for seed in range(3)], "F"), np.repeat(T, 3))
    text = describe(p)
    assert "63 observations" in text
    assert "1           21     0 to 4" in text
    assert findings(p) == []


@pytest.mark.parametrize("sd", [0.02, 0.2])
def test_the_noise_is_estimated_within_a_factor_of_two(sd: float):
    estimates = [noise(problem("x' = -k*x", noisy(sd, seed)), "x") for seed in range(20)]
    assert sd / 2 < np.median(estimates) < 2 * sd


def test_parameters_that_only_occur_as_a_product_cannot_be_told_apart():
    (sentence,) = findings(problem("x' = -a*b*x + c", noisy(0.1)))
    assert "'a', 'b'" in sentence
    assert "'c'" not in sentence


def test_a_fixed_value_or_a_prior_tells_a_product_apart():
    assert findings(problem("x' = -a*b*x", noisy(0.1), fixed={"a": 1.0})) == []
    assert findings(problem("x' = -a*b*x", noisy(0.1), prior={"a": ("normal", 1, 0.1)})) == []


def test_a_problem_without_unknown_parameters_can_be_checked():
    p = problem("x' = -k*x", noisy(0.1), fixed={"k": 0.7})
    assert findings(p) == []
    assert "0 parameters to estimate, 1 fixed" in describe(p)


def test_a_parameter_without_effect_is_named():
    (sentence,) = findings(problem("x' = -k*x + 0*z", noisy(0.1)))
    assert "'z' has no effect" in sentence


def test_a_product_and_a_parameter_without_effect_are_both_found():
    sentences = findings(problem("x' = -a*b*x + 0*z", noisy(0.1)))
    assert any("'z' has no effect" in s for s in sentences)
    assert any("'a', 'b'" in s for s in sentences)


def test_a_constant_state_is_found():
    with pytest.warns(InputWarning, match="constant"):
        p = problem("x' = -k*x + c", np.full(21, 2.0))
    assert any("constant" in s for s in findings(p))


def test_few_observations_are_found():
    t = T[:5]
    sentences = findings(problem("x' = -k*x + a*t + c*t^2", X[:5], t))
    assert any("5 observations are few for 3 parameters" in s for s in sentences)


def test_noise_as_large_as_the_signal_is_found():
    sentences = findings(problem("x' = -k*x", noisy(4.0)))
    assert any("as much as its noise" in s for s in sentences)


def test_a_big_gap_is_found_with_its_place():
    t = np.r_[T[:10], T[10:] + 6.0]
    assert any("gap from 1.8 to 8" in s for s in findings(problem("x' = -k*x", noisy(0.1), t)))


def test_steps_that_grow_as_after_a_dose_are_no_gap():
    assert findings(problem("x' = -k*x", noisy(0.1), np.cumsum(1.5 ** np.arange(21.0)) / 1e3)) == []


def test_jumps_count_neither_as_noise_nor_as_little_signal():
    x = np.concatenate([5.0 * np.exp(-0.5 * np.arange(1.0, 7.0))] * 4)
    p = problem("x' = -k*x\nat 6, 12, 18: x = 5", x, np.arange(1.0, 25.0))
    assert noise(p, "x") < 0.1
    assert findings(p) == []


def test_inputs_that_end_early_are_found():
    p = problem("x' = -k*x + u\ninput u", noisy(0.1), inputs={"u": (T[:15], T[:15])})
    assert any("input 'u' is known from 0 to 2.8" in s for s in findings(p))


def test_odd_bounds_are_found():
    p = problem("x' = -k*x", noisy(0.1), bounds={"k": (1e-4, 1e3), "x": (0, 2)}, prior={"k": ("normal", -1, 0.5)})
    text = " ".join(findings(p))
    assert "7 decades" in text
    assert "--log k" in text
    assert "prior of 'k' is outside" in text
    assert "of 'x' outside its bounds 0 to 2" in text


def test_equations_that_are_not_finite_at_the_data_raise():
    with pytest.raises(InputError, match="not finite at t = 0"):
        findings(problem("x' = k*log(x - 100)"))


# --- where not every state is observed as it is


def partly(**known) -> Problem:
    model = Model.from_text("x' = -k*x\ny' = k*x - m*y\nlocal k\nx(0) = 5")
    y = 5 * 0.7 * T * np.exp(-0.7 * T) + 0.05 * np.random.default_rng(1).normal(size=T.shape)
    return Problem(model, Data.join({name: Data(T, y, states=["y"]) for name in ("one", "two")}), **known)


def test_columns_are_described_and_findings_need_not_see_every_state():
    text = describe(partly())
    assert text.splitlines()[3].startswith("column  points")
    assert "y       42      0" in text
    for line in ("x is hidden.", "Given at time 0: x(0) = 5.", "Free at time 0: y.", "One value per experiment: k."):
        assert line in text
    assert max(map(len, text.splitlines())) <= 100
    assert findings(partly()) == []


def test_a_local_parameter_has_a_row_unless_something_else_is_known_of_a_copy():
    def names(problem: Problem) -> list[str]:
        table = describe(problem).split("\n\n")[-2].splitlines()
        return [line.split()[0] for line in table[1:]]

    assert names(partly()) == ["k", "m"]
    assert names(partly(bounds={"k": (0, 9)})) == ["k", "m"]
    assert names(partly(bounds={"k[one]": (0, 9)})) == ["k[one]", "k[two]", "m"]
