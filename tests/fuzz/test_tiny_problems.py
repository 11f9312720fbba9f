"""A fit of few, exact, constant, missing, huge or tiny data is a fit that can be shown, or one line."""

import warnings

import numpy as np

import odinfer as od
from fuzz.attacks import LENGTHS, SEEDS, attack, check_line
from odinfer.errors import InputError, InputWarning

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
    attack(check_fit, times, 3, seed=SEEDS)  # some take half a minute
