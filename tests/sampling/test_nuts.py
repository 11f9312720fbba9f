"""The sampler draws from the density, and takes smaller steps where its first ones lose the way."""

import numpy as np
import pytest

from odinfer._jax import jnp
from odinfer.sampling import nuts


def gaussian(data, r):
    return -0.5 * (r**2 / data).sum()


def hook(data, r):
    """Far out, x is bent into a wall of y; its marginal distribution stays normal."""
    return -0.5 * r[0] ** 2 - 0.5 * data * (r[1] - r[0] ** 4) ** 2


def arguments(log_density, data, told):
    start = 0.1 * np.random.default_rng(0).normal(size=(2, 2))
    return log_density, data, start, np.zeros(2), np.eye(2), 400, 300, 1, lambda *step: told.append(step)


def test_a_gaussian_is_drawn_at_once():
    told = []
    found = nuts.sample(*arguments(gaussian, jnp.array([1.0, 4.0]), told))
    assert found.positions.shape == (2, 400, 2)
    assert found.positions.reshape(-1, 2).std(0) == pytest.approx([1.0, 2.0], rel=0.2)
    assert [what for what, _ in told] == ["finding step widths"] * 3 + ["sampling"] * 4
    assert [share for _, share in told] == sorted(share for _, share in told)


def test_where_draws_diverge_it_is_tried_again_with_smaller_steps():
    told = []
    found = nuts.sample(*arguments(hook, 1e4, told))
    words = [what for what, _ in told]
    assert words.index("sampling, smaller ones") < 3 + 4 + 3  # the first attempt was given up before its end
    large = nuts._run_chains(*arguments(hook, 1e4, []), nuts._TARGET_ACCEPTANCE[0], np.inf)
    assert found.stats["diverging"].mean() < large.stats["diverging"].mean()
    assert found.stats["n_steps"].mean() > large.stats["n_steps"].mean()
