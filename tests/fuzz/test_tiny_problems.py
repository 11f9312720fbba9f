"""A fit of few, exact, constant, missing, huge, tiny, clumped or repeated data gives a fit to be shown, or one line."""

import warnings

import numpy as np
import pytest

import odinfer as od
from fuzz.attacks import LENGTHS, SEEDS, attack, check_line
from odinfer.diagnostics.verdicts import CONTRADICTS
from odinfer.errors import InputError, InputWarning
from odinfer.likelihood.refinement import refine_from

EQUATIONS = (
    "x' = -k*x", "x' = a - b*x", "x' = r*x*(1 - x/K)", "x' = -v*x/(k + x)", "x' = a*x^p",
    "x' = a*x - b*x*y; y' = -c*y + d*x*y", "x' = y; y' = -a*x - b*y", "x' = y; y' = m*(1 - x^2)*y - x",
    "x' = -a*x; y' = a*x - b*y; z' = b*y", "x' = s*(y - x); y' = x*(r - z) - y; z' = x*y - b*z",
)  # fmt: skip
MODELS = tuple(od.Model.from_text(text) for text in EQUATIONS)
SCALES = (1.0, 1.0, 1.0, 1e-9, 1e9, 1e-150, 1e150)


def tiny(rng: np.random.Generator) -> tuple[od.Model, np.ndarray, np.ndarray]:
    """A model, 4 to 8 times and values (N, K) of it, of which nothing need be reasonable."""
    model = MODELS[rng.integers(len(MODELS))]
    N, K = int(rng.integers(4, 9)), len(model.states)
    t = np.cumsum(rng.choice([1.0, 1e-6, 0.5], N)) * rng.choice(SCALES)
    kind = rng.integers(4)
    if kind == 0:
        y = np.tile(rng.choice([0.0, 1.0, -2.0], K), (N, 1))  # constants
    elif kind == 1:
        y = np.exp(-rng.uniform(0.1, 2.0, K) * np.arange(N)[:, None])  # exact
    else:
        y = rng.normal(size=(N, K)) + 2.0 * (kind == 2)
    y = y * rng.choice(SCALES)
    y[rng.random((N, K)) < rng.choice([0.0, 0.0, 0.3])] = np.nan
    y[rng.random((N, K)) < rng.choice([0.0, 0.0, 0.3])] = 0.0
    return model, t, y


def check_fit(seed: int) -> None:
    model, t, y = tiny(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # constants are odd, and said to be
        try:
            fit = od.fit(model, od.Data(t, y, states=list(model.states)))
        except InputError as error:
            check_line(str(error))
            return
    assert str(fit)
    assert set(fit.theta) == set(model.parameters)
    for low, high in fit.interval().values() if fit.uncertainty is not None else ():
        assert low <= high


@LENGTHS
def test_no_fit_of_a_tiny_problem_raises_anything_but_an_input_error(times):
    attack(check_fit, times, 3, np.inf, seed=SEEDS)  # some take half a minute


# equations with the ranges of their parameters and initial values (uniform in the log) and the last time
SYSTEMS = (
    ("x' = -k*x", {"k": (0.2, 2)}, ((1, 9),), 4.0),
    ("x' = k*(A - x)", {"k": (0.3, 2), "A": (2, 9)}, ((0.1, 1),), 5.0),
    ("n' = r*n*(1 - n/K)", {"r": (0.5, 2), "K": (3, 30)}, ((0.2, 2),), 7.0),
    ("x' = y; y' = -a*x - b*y", {"a": (1, 6), "b": (0.1, 0.8)}, ((1, 3), (0.1, 1)), 6.0),
    ("c' = -(e + p)*c + q*d; d' = p*c - q*d", {"e": (0.2, 1), "p": (0.2, 1), "q": (0.1, 1)}, ((5, 15), (0.1, 1)), 8.0),
    ("x' = a*x - b*x*y; y' = -c*y + d*x*y", {"a": (1, 3), "b": (0.5, 2), "c": (2, 5), "d": (0.5, 2)},
     ((3, 6), (1, 4)), 2.0),
    ("S' = -b*S*I; I' = b*S*I - g*I", {"b": (0.5, 1.5), "g": (0.1, 0.4)}, ((0.9, 1), (0.01, 0.05)), 25.0),
)  # fmt: skip
KNOWN = tuple(od.Model.from_text(text) for text, *_ in SYSTEMS)


def drawn(rng: np.random.Generator, times: np.ndarray, noise: float) -> tuple[od.Problem, dict, np.ndarray]:
    """A problem of a system with data at times between 0 and 1, scaled to its own; its parameters and true states."""
    i = int(rng.integers(len(SYSTEMS)))
    (_, ranges, initial, last), model = SYSTEMS[i], KNOWN[i]
    theta, x0 = ({k: float(np.exp(rng.uniform(*np.log(r)))) for k, r in ranges.items()},
                 [float(np.exp(rng.uniform(*np.log(r)))) for r in initial])  # fmt: skip
    t = last * times
    once, row = np.unique(t, return_inverse=True)
    x = od.simulate(model, theta, x0, once)[row]
    y = x + noise * np.maximum(np.ptp(x, axis=0), 1e-3 * np.abs(x).max(0)) * rng.normal(size=x.shape)
    return od.Problem(model, od.Data(t, y, states=model.states)), theta, x


def fitted(problem: od.Problem) -> od.Fit:
    """The fit, shown; an exception or a warning of the computation is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fit = od.fit(problem)
    assert str(fit)
    for name, (low, high) in (fit.interval() if fit.uncertainty is not None else {}).items():
        assert low <= fit.theta[name] <= high
    return fit


def check_few(seed: int) -> bool:
    rng = np.random.default_rng(seed)
    N = int(rng.integers(4, 6))
    problem, *_ = drawn(rng, np.sort(np.append([0.0], rng.uniform(0.05, 1.0, N - 1))), rng.choice([0.01, 0.05, 0.2]))
    fit = fitted(problem)
    K = len(problem.model.states)
    unknowns = len(problem.free) + 2 * K
    assert (fit.uncertainty is None) == (unknowns >= N * K or fit.details["stage_used"] != "refined")
    assert (unknowns >= N * K) == any("there are no intervals" in note for note in fit.warnings)
    return CONTRADICTS in fit.verdicts.values()


def check_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, theta, x = drawn(rng, np.linspace(0.0, 1.0, int(rng.integers(8, 25))), 0.0)
    fit = fitted(problem)
    assert fit.converged
    assert CONTRADICTS not in fit.verdicts.values()
    for name, value in theta.items():
        assert abs(fit.theta[name] / value - 1.0) < 1e-4, (name, fit.theta[name], value)
    for state, sigma in fit.sigma.items():
        assert sigma < 1e-4 * np.abs(x[:, problem.model.states.index(state)]).max(), (state, sigma)


def check_clumped(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clumps = np.sort(rng.uniform(0.0, 1.0, int(rng.integers(3, 6))))
    spread = rng.choice([1e-6, 1e-3, 0.02])
    t = np.sort((clumps[:, None] + spread * rng.uniform(size=(len(clumps), int(rng.integers(3, 7))))).ravel())
    problem, theta, x = drawn(rng, t - t[0], 0.03)
    fit = fitted(problem)
    truth = np.array([theta[p] for p in problem.parameters])
    best = refine_from(problem, truth, [(problem.data.t, x)])
    assert best is None or fit.details["loglik"] > best.loglik - 0.1, (fit.details["loglik"], best.loglik)


def check_replicates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.append([0.0, 1.0], rng.uniform(0.05, 0.95, int(rng.integers(0, 6))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # replicates are said to be kept
        problem, *_ = drawn(rng, np.sort(np.repeat(times, int(rng.integers(3, 6)))), 0.1)
    fit = fitted(problem)
    # No trajectory can do better than a mean of its own for every time.
    t, y = problem.data.experiments[0].moments, problem.data.y
    left = np.stack([((y[t == time] - y[t == time].mean(0)) ** 2).sum(0) for time in np.unique(t)]).sum(0)
    most = -0.5 * len(y) * (np.log(2 * np.pi * left / len(y)) + 1.0).sum()
    assert fit.details["loglik"] < most + 1e-6, (fit.details["loglik"], most)


@LENGTHS
def test_few_data_have_intervals_only_where_something_is_left_to_tell(times):
    attack(check_few, times, 2, np.inf, seed=SEEDS)


@pytest.mark.slow
def test_few_data_rarely_accuse_a_right_model():
    assert sum(check_few(seed) for seed in range(1000, 1040)) <= 5  # of 40 at a level of 5 %


@LENGTHS
def test_exact_data_give_exact_estimates_and_next_to_no_noise(times):
    attack(check_exact, times, 4, np.inf, seed=SEEDS)


@LENGTHS
def test_the_optimum_of_clumped_times_is_found(times):
    attack(check_clumped, times, 2, np.inf, seed=SEEDS)


@LENGTHS
def test_no_trajectory_does_better_than_a_mean_for_every_time_that_was_measured_again(times):
    attack(check_replicates, times, 2, np.inf, seed=SEEDS)
