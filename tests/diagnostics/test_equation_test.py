"""Right equations are acquitted, wrong ones accused, and the rate of false alarms is what is stated."""

import numpy as np
import pytest

import odinfer as od
from odinfer.diagnostics.equation_test import judge as judge_by
from odinfer.odin.multistart import Search
from odinfer.paper.systems import lotka_volterra

WRONG_PREY = "prey' = a*prey^2 + b*predator\npredator' = -c*predator + d*prey*predator"


def judge(problem, **options):
    return judge_by(problem, od.Odin().search, **options)


def accused(model, data, **options):
    return {j.state: j.contradicts for j in judge(od.Problem(model, data, positive=False), **options)}


def test_a_right_model_is_acquitted_without_a_simulation_where_nothing_is_suspicious():
    found = judge(od.Problem(lotka_volterra.model, lotka_volterra.sample(0.1, 0), positive=False))
    assert [(j.contradicts, j.p, j.draws) for j in found] == [(False, 1.0, 0)] * 2


def test_only_the_wrong_equation_of_a_mixed_model_is_accused():
    found = judge(od.Problem(od.Model.from_text(WRONG_PREY), lotka_volterra.sample(0.1, 0), positive=False), draws=99)
    prey, predator = found
    assert prey.contradicts
    assert not predator.contradicts
    assert prey.gamma > 0.5
    assert prey.expected < 0.1
    assert prey.p <= 0.025
    assert prey.draws == 8  # its signal is far beyond those of all simulations


def test_a_large_gamma_is_no_accusation_where_the_equations_own_solution_leaves_only_noise():
    prey, _ = judge(od.Problem(lotka_volterra.model, lotka_volterra.sample(0.5, 100_001), positive=False))
    assert prey.gamma > 1.0  # the smoother took noise for signal
    assert (prey.contradicts, prey.signal, prey.p) == (False, 0.0, 1.0)


def test_the_same_seed_gives_the_same_judgement():
    problem = od.Problem(od.Model.from_text(WRONG_PREY), lotka_volterra.sample(0.3, 1), positive=False)
    assert judge(problem, draws=19, seed=4) == judge(problem, draws=19, seed=4)


def test_several_experiments_are_judged_together():
    data = od.Data.join({"a": lotka_volterra.sample(0.1, 0), "b": lotka_volterra.sample(0.1, 1)})
    assert accused(od.Model.from_text(WRONG_PREY), data, draws=39, level=0.1) == {"prey": True, "predator": False}


def test_one_state_is_enough():
    t = np.linspace(0, 3, 20)
    noise = 0.02 * np.random.default_rng(0).normal(size=20)
    data = od.Data(t, 1 / (1 + 9 * np.exp(-2 * t)) + noise, ["x"])
    assert accused(od.Model.from_text("x' = r*x*(1 - x/K)"), data, draws=39) == {"x": False}
    assert accused(od.Model.from_text("x' = r*x"), data, draws=39) == {"x": True}


@pytest.fixture
def searched(monkeypatch):
    """The problems on which ODIN's search was run."""
    problems, run = [], Search.run

    def counted(self, problem, seed=0):
        problems.append(problem)
        return run(self, problem, seed)

    monkeypatch.setattr(Search, "run", counted)
    return problems


def test_what_a_fit_has_solved_is_judged_without_solving_it_again(lv_fit, searched):
    assert judge(lv_fit.problem, minima=lv_fit.cache.minima) == judge(lv_fit.problem)
    assert searched == [lv_fit.problem]  # by the second one


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_right_models_are_accused_in_at_most_5_percent_and_wrong_ones_in_at_least_95_percent():
    n = 60
    right = [any(accused(lotka_volterra.model, lotka_volterra.sample(0.5, 90_000 + i)).values()) for i in range(n)]
    wrong = [
        accused(od.Model.from_text(WRONG_PREY), lotka_volterra.sample(0.1, 90_000 + i), draws=99) for i in range(n)
    ]
    assert np.mean(right) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / n)
    assert np.mean([w["prey"] for w in wrong]) >= 0.95
    assert np.mean([w["predator"] for w in wrong]) <= 0.05
