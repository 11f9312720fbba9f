"""Many decays that several test files look at: most alike, one too short, one much faster, one that is no decay."""

import numpy as np
import pytest

import odinfer as od

T = np.linspace(0.0, 4.0, 12)
SHORT, FAST, RISING = "too short", "<b>fast</b>", "rising"


def series(count: int = 10) -> od.Data:
    rng = np.random.default_rng(3)
    noise = lambda: 0.03 * rng.normal(size=12)  # noqa: E731
    parts = {f"s{i}": 3.0 * np.exp(-(0.7 + 0.02 * rng.normal()) * T) + noise() for i in range(count)}
    parts |= {FAST: 3.0 * np.exp(-2.5 * T) + noise(), RISING: 1.0 + np.sin(2 * T) + noise()}
    data = {name: od.Data(T, y, states=["x"]) for name, y in parts.items()}
    return od.Data.join({**data, SHORT: od.Data(T[:3], parts["s0"][:3], states=["x"])})


@pytest.fixture(scope="session")
def many() -> od.Data:
    return series()


@pytest.fixture(scope="session")
def fits(decay, many) -> od.Fits:
    return od.fit_each(decay, many)
