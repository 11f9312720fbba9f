"""Populations of tempered chains: moves and swaps keep their books, their bounds and their temperatures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.model.priors import FLAT
from odinfer.paper.parallel_tempering import Population, compiled_rounds, proposal_roots, respace_temperatures
from odinfer.paper.sampler_options import SamplerOptions
from odinfer.sampling import density as ds

FEW = settings(max_examples=25, derandomize=True, deadline=None)
P, J = 2, 3
BETA = np.array([0.01, 0.2, 1.0])
SHARES = np.array([0.2, 0.2, 0.3])
NEVER, ALWAYS = np.inf, -np.inf


class Setting:
    """A small problem with its density, chains and their moves."""

    def __init__(self, decay, decay_data, sampled=True) -> None:
        problem = od.Problem(decay, decay_data, bounds={"k": (0.0, 2.0)}, positive=False)
        options = SamplerOptions(kernel="matern52", jitter=1e-2, state_range=4.0)
        _, self.form, self.target, z, phi = options.begin(problem, "learn", P * J, 0, (FLAT, 0.0, 1.0))
        self.K, self.M = self.target.y.shape
        self.z, self.phi = z.reshape(P, J, self.K, self.M), phi.reshape(P, J, 1)
        self.log_gamma = np.log(0.1) + 0.1 * np.arange(P * J, dtype=float).reshape(P, J, 1)
        self.factors, self.hessians, self.run = compiled_rounds(self.form, sampled)
        cov = np.linalg.inv(self.target.C_inv + self.target.weight[:, :, None] * np.eye(self.M))
        v = np.concatenate([self.z[0, 0].ravel(), self.phi[0, 0], self.log_gamma[0, 0]][: 3 if sampled else 2])
        self.size = len(v)
        whole = proposal_roots(np.asarray(self.hessians(self.target, np.tile(v, (J, 1)))), BETA)
        self.roots = np.linalg.cholesky(cov), whole
        self.widths = np.tile([0.3, 0.1, 1.0, 0.3], (J, 1))
        self.state = self.at(self.z, self.phi, self.log_gamma)

    def at(self, z, phi, log_gamma) -> Population:
        return Population(z, phi, log_gamma, *self.factors(self.target, z, phi, log_gamma))

    def rounds(self, count=1500, state=None, seed=0, moves=None, swaps=None, odd=None, gain=0.0, widths=None):
        """`moves` and `swaps` are logs that gains must exceed, those of random numbers if None."""
        rng = np.random.default_rng(seed)
        log_v = [
            np.log(rng.random((count, P, J))) if given is None else np.full((count, P, J), given)
            for given in (moves, swaps)
        ]
        noise = (
            rng.random((count, P, J)), rng.random((count, P, J)), log_v[0], rng.normal(size=(count, P, J, self.size)),
            rng.integers(0, 2, count) if odd is None else np.full(count, odd), log_v[1],
        )  # fmt: skip
        tuning = (self.widths if widths is None else widths, np.zeros((J, 4)))
        return self.run(self.target, self.roots, SHARES, state or self.state, BETA, tuning, noise, gain)


@pytest.fixture(scope="module")
def setting(decay, decay_data) -> Setting:
    return Setting(decay, decay_data)


def test_the_books_are_those_of_the_shared_densities(setting):
    form, target, s = setting.form, setting.target, setting.state
    for p, j in ((0, 0), (1, 2)):
        z, phi, log_gamma = s.z[p, j], s.phi[p, j], s.log_gamma[p, j]
        f = ds.vector_field(form, target, z, phi)
        assert s.data[p, j] == pytest.approx(float(ds.log_data(target, z)))
        experts = ds.log_gp(target, z) + ds.log_gradient(target, z, f, np.exp(log_gamma))
        assert s.experts[p, j] == pytest.approx(float(experts))
        exponential = float((log_gamma - np.exp(log_gamma)).sum())  # of rate one, on the scale of log γ
        assert s.prior[p, j] == pytest.approx(float(ds.log_prior(form, target.parameters, phi)) + exponential)


def test_outside_the_bounds_there_is_no_prior(setting):
    for phi, z in ((-0.1, 0.0), (2.1, 0.0), (1.0, 5.0), (1.0, -5.0)):
        other = setting.at(setting.z + z, np.full_like(setting.phi, phi), setting.log_gamma)
        assert (np.asarray(other.prior) == -np.inf).all()


def test_after_any_number_of_rounds_the_books_are_right_and_the_bounds_hold(setting):
    state, _, _, trace = setting.rounds()
    again = setting.at(state.z, state.phi, state.log_gamma)
    for name in ("data", "experts", "prior"):
        np.testing.assert_allclose(getattr(state, name), getattr(again, name), rtol=1e-9, atol=1e-9)
    assert (np.asarray(state.phi) != setting.phi).any()
    assert ((trace >= 0.0) & (trace <= 2.0)).all()
    assert np.abs(np.asarray(state.z)).max() <= 4.0


def test_a_move_that_is_refused_changes_nothing_and_only_neighbours_swap(setting):
    for odd, order in ((0, [1, 0, 2]), (1, [0, 2, 1])):
        state, _, sums, _ = setting.rounds(1, moves=NEVER, swaps=ALWAYS, odd=odd)
        for before, after in zip(setting.state, state, strict=True):
            np.testing.assert_array_equal(np.asarray(after), np.asarray(before)[:, order])
        swapped, proposed = (np.asarray(v) for v in sums[3:5])
        assert swapped.tolist() == proposed.tolist() == ([P, 0, 0] if odd == 0 else [0, P, 0])
    still = setting.rounds(1, moves=NEVER, swaps=NEVER)[0]
    for before, after in zip(setting.state, still, strict=True):
        np.testing.assert_array_equal(after, before)


def test_a_move_is_judged_by_data_prior_and_the_factors_tempered(setting):
    old, new = setting.state, setting.rounds(1, moves=ALWAYS, swaps=NEVER)[0]
    rise = (new.data - old.data) + BETA * (new.experts - old.experts) + (new.prior - old.prior)
    moved = np.asarray(
        (new.z != old.z).any((2, 3)) | (new.phi != old.phi).any(2) | (new.log_gamma != old.log_gamma).any(2)
    )
    assert moved.all()
    for shift, taken in ((-1e-6, new), (1e-6, old)):
        found = setting.rounds(1, moves=np.asarray(rise) + shift, swaps=NEVER)[0]
        for mine, right in zip(found, taken, strict=True):
            np.testing.assert_array_equal(mine, right)


def test_a_gamma_that_is_tied_to_its_chain_stays_where_others_swap(decay, decay_data):
    tied = Setting(decay, decay_data, sampled=False)
    state = tied.rounds(1, moves=NEVER, swaps=ALWAYS, odd=0)[0]
    for name in ("z", "phi"):
        np.testing.assert_array_equal(getattr(state, name), getattr(tied, name)[:, [1, 0, 2]])
    np.testing.assert_array_equal(state.log_gamma, tied.log_gamma)
    again = tied.at(state.z, state.phi, state.log_gamma)
    np.testing.assert_allclose(state.experts, again.experts, rtol=1e-9)


def test_a_swap_is_judged_by_the_tempered_factors_alone(setting):
    experts = np.asarray(setting.state.experts)
    gain = (BETA[0] - BETA[1]) * (experts[:, 1] - experts[:, 0])  # of exchanging chains 0 and 1
    for shift, taken in ((-1e-6, True), (1e-6, False)):
        for p in range(P):
            state = setting.rounds(1, moves=NEVER, swaps=gain[p] + shift, odd=0)[0]
            assert (np.asarray(state.phi)[p, 0] == setting.phi[p, 1]).all() == taken


def test_widths_stay_unless_they_are_to_adapt_and_adapt_towards_a_quarter_of_moves_taken(setting):
    _, (widths, count), _, _ = setting.rounds()
    np.testing.assert_array_equal(widths, setting.widths)
    assert np.asarray(count).sum() == 1500 * P * J
    far = np.tile([30.0, 10.0, 1e-3, 1e-3], (J, 1))
    state, (adapted, _), _, _ = setting.rounds(gain=2.0, widths=far)
    assert (np.asarray(adapted)[:, :2] < far[:, :2]).all()
    assert (np.asarray(adapted)[:, 2:] > far[:, 2:]).all()
    _, _, sums, _ = setting.rounds(state=state, seed=1, widths=np.asarray(adapted))
    tried, taken = (np.asarray(v) for v in sums[5:7])
    rate = taken / tried
    assert ((rate > 0.1) & (rate < 0.5)).all()


def test_the_curvature_of_the_data_is_the_weight_of_the_observations(setting):
    v = np.concatenate([setting.z[0, 0].ravel(), setting.phi[0, 0], setting.log_gamma[0, 0]])
    data, experts, prior = np.asarray(setting.hessians(setting.target, v[None]))[0]
    right = np.diag(np.append(-setting.target.weight.ravel(), [0.0, 0.0]))
    np.testing.assert_allclose(data, right, atol=1e-9)
    assert np.linalg.eigvalsh(experts[:-2, :-2]).max() < 0  # Gaussian in the states of a linear equation
    assert prior[-1, -1] == pytest.approx(-np.exp(v[-1]))


LADDERS = st.lists(st.floats(0.05, 0.9), min_size=1, max_size=8)


@FEW
@given(ratios=LADDERS, seed=st.integers(0, 1000))
def test_respaced_temperatures_rise_to_one_and_gaps_follow_the_swaps(ratios, seed):
    beta = np.append(np.cumprod(ratios[::-1])[::-1], 1.0)
    swapped = np.append(np.random.default_rng(seed).integers(0, 101, len(ratios)), 0)
    moved = respace_temperatures(beta, swapped, np.full(len(beta), 100))
    assert moved[-1] == 1.0
    assert (np.diff(moved) > 0).all()
    before, after = np.diff(np.log(beta)), np.diff(np.log(moved))
    np.testing.assert_array_equal(np.sign(np.round(after / before - 1.0, 9)), np.sign(swapped[:-1] - 50))


def test_one_temperature_has_no_gaps():
    np.testing.assert_array_equal(respace_temperatures(np.ones(1), np.zeros(1), np.zeros(1)), [1.0])


@FEW
@given(seed=st.integers(0, 1000))
def test_shapes_are_finite_for_any_curvature_and_right_for_a_gaussian(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, 5, 5))
    parts = root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(5)
    H = -np.stack([parts[0], parts[1], np.zeros((5, 5))])
    R = proposal_roots(np.stack([H, H]), np.array([0.3, 1.0]))
    for b, r in zip((0.3, 1.0), R, strict=True):
        np.testing.assert_allclose(r @ r.T @ (parts[0] + b * parts[1]), np.eye(5), atol=1e-6)
    anything = rng.normal(size=(2, 3, 5, 5))
    anything[0, 0, 0, 0] = np.nan
    assert np.isfinite(proposal_roots(anything, np.array([0.3, 1.0]))).all()
