"""Evidence by chains: the dense formula, and a search that finds what the dense one does, however long the series."""

import numpy as np
import pytest

from odinfer.gp.evidence import Hyperparameters, Limits, Series, empirical_bayes, log_evidence
from odinfer.gp.markov.binning import Binned
from odinfer.gp.markov.evidence import at_ratio, bayes_by_chains

BOUNDS = (1e-10, 1e6)


def wave(n: int, speed: float = 4.0, noise: float = 0.1, seed: int = 0, span: float = 3.4) -> Series:
    t = np.linspace(0.0, span, n)
    return Series(t, np.sin(speed * t) + noise * np.random.default_rng(seed).normal(size=n))


def whole(s: Series) -> Binned:
    return Binned.of(s.t, s.y[:, None], np.arange(len(s.t)))


@pytest.mark.parametrize("name", ["matern32", "matern52", "matern72", "warped-matern52"])
@pytest.mark.parametrize("rho", [1e-4, 1e-1])
def test_the_evidence_is_that_of_the_dense_formula(name, rho):
    state = [wave(40), wave(25, seed=1)]
    hyper = Hyperparameters(name, (0.5, 0.4) if "warped" in name else (0.5,), 1.0, rho, 0.0)
    found, value = at_ratio(hyper, np.log(rho), [whole(s) for s in state], None, Limits.of(BOUNDS, False))
    assert found.noise == pytest.approx(rho * found.variance)
    assert value == found.evidence == pytest.approx(log_evidence(found, state), abs=1e-6)
    for other in (0.8, 1.25):  # the variance is at its best
        moved = Hyperparameters(name, hyper.shape, other * found.variance, other * found.noise, 0.0)
        assert log_evidence(moved, state) < value


@pytest.mark.parametrize("known", [None, 0.01])
@pytest.mark.parametrize("speed", [4.0, 30.0])
def test_the_search_finds_what_the_dense_one_finds(known, speed):
    series = [[wave(300, speed)], [wave(300, speed, noise=0.03, seed=2)]]
    names = ("matern52", "warped-matern52")
    chains = bayes_by_chains(series, names, [known, None], 2.0, BOUNDS, True)
    dense = empirical_bayes(series, names, [known, None], 2.0, weak_prior=True)
    for a, b in zip(chains, dense, strict=True):
        assert a.kernel == b.kernel
        assert a.evidence == pytest.approx(b.evidence, abs=0.05)
        np.testing.assert_allclose(a.noise, b.noise, rtol=0.02)


@pytest.mark.parametrize("speed", [2.0, 300.0])
def test_fast_and_slow_signals_of_a_long_series_are_found(speed):
    (found,) = bayes_by_chains([[wave(30_000, speed)]], ("matern52",), [None], 0.0, BOUNDS, True)
    assert np.sqrt(found.noise) == pytest.approx(0.1, rel=0.02)
    assert 0.2 < found.shape[0] * speed < 30.0


def test_many_short_series_are_searched_together():
    state = [wave(20, seed=i) for i in range(40)]
    (found,) = bayes_by_chains([state], ("matern52",), [None], 0.0, BOUNDS, True)
    (dense,) = empirical_bayes([state], ("matern52",), [None], 0.0, weak_prior=True)
    assert found.evidence == pytest.approx(dense.evidence, abs=0.05)
