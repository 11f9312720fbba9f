"""Trajectories that go forward are worth what those on meshes are, and lead to the same maxima."""

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.collocation_batch import CollocationTrajectories
from odinfer.likelihood.forward_batch import ForwardTrajectories, trajectories_near
from odinfer.uncertainty.bootstrap import refitted
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.quantities import HeldUnknown

T = np.linspace(0.0, 6.0, 13)


def maximum(text: str, states: list[str], x: np.ndarray) -> Maximum:
    y = x + 0.03 * np.random.default_rng(2).normal(size=x.shape)
    return od.fit(od.Model.from_text(text), od.Data(T, y, states=states)).maximum()


@pytest.fixture(scope="module")
def chain():
    """A hidden state, a column that is no state, and noise with a name."""
    text = """x' = -k*x; y' = k*x - n*y; x(0) = 2; y(0) = 0
    z ~ normal(s*y, e); 0 < k < 9; 0 < n < 9; 0 < e < 1; fixed s = 3"""
    y = 2.0 * 0.9 / (0.4 - 0.9) * (np.exp(-0.9 * T) - np.exp(-0.4 * T))
    return maximum(text, ["z"], 3.0 * y[:, None])


@pytest.fixture(scope="module")
def both(chain):
    ahead = ForwardTrajectories.of(chain.likelihood, chain.refined)
    assert ahead is not None
    return CollocationTrajectories.of(chain.likelihood, chain.refined), ahead


def test_copies_of_a_maximum_have_its_objective_noise_and_states(chain, both):
    on, ahead = (own.start(chain.refined, 3) for own in both)
    np.testing.assert_allclose(ahead.value, on.value, atol=1e-4)
    np.testing.assert_allclose(ahead.noise, on.noise)
    np.testing.assert_allclose(ahead.x0[0], on.x0[0])
    np.testing.assert_allclose(both[1].observed(ahead)[0], both[0].observed(on)[0], atol=1e-4)


def test_after_a_step_values_and_gradients_are_those_on_meshes(chain, both):
    move = 0.05 * np.random.default_rng(0).normal(size=(4, chain.likelihood.unknowns.size))
    found = [own.move(own.start(chain.refined, 4), move) for own in both]
    np.testing.assert_allclose(found[1].value, found[0].value, atol=1e-3, rtol=1e-4)
    (H, g), (H2, g2) = (own.gauss_newton(batch) for own, batch in zip(both, found, strict=True))
    np.testing.assert_allclose(g2, g, rtol=1e-3, atol=1e-3 * np.abs(g).max())
    np.testing.assert_allclose(H2.dense(), H.dense(), rtol=1e-3, atol=1e-3 * np.abs(H.dense()).max())


def test_with_an_unknown_held_both_find_the_same_maximum(chain, both):
    place = np.array([chain.likelihood.unknowns.phi_index[0]])
    held, values = HeldUnknown(chain.likelihood.unknowns, place), []
    for own in both:
        start = own.start(chain.refined, 1)
        found = own.maximise(start, held, 1.1 * held.value(start))
        np.testing.assert_allclose(held.value(found), 1.1 * held.value(start))
        values.append(found.value[0])
    assert values[0] > chain.objective + 0.01
    assert values[1] == pytest.approx(values[0], abs=1e-3)


def test_simulated_data_have_the_same_refits(chain, both):
    found = [refitted(own, chain.refined, chain.info.sigma, 5, (0, 0)) for own in both]
    np.testing.assert_allclose(found[1][1].value, found[0][1].value, atol=1e-3)
    np.testing.assert_allclose(found[1][1].phi, found[0][1].phi, rtol=1e-2)
    assert np.ptp(found[0][1].value) > 0.1


def test_some_of_many_keep_their_own_data(chain, both):
    on, found = refitted(both[1], chain.refined, chain.info.sigma, 4, (0, 0))
    some = np.array([3, 1])
    part = on.take(some)
    nothing = np.zeros((2, chain.likelihood.unknowns.size))
    np.testing.assert_allclose(part.move(found.take(some), nothing).value, found.value[some], atol=1e-9)


def test_trajectories_of_text_go_forward_and_those_of_functions_stay_on_meshes(chain, monkeypatch):
    assert isinstance(trajectories_near(chain.likelihood, chain.refined), ForwardTrajectories)
    monkeypatch.setattr(BatchLikelihood, "can", lambda problem: False)
    assert isinstance(trajectories_near(chain.likelihood, chain.refined), CollocationTrajectories)
