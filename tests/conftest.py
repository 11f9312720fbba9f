"""Systems and fits that several test files share: compiling a model costs more than fitting it."""

import numpy as np
import pytest

import odinfer as od
from odinfer.paper.systems import System


@pytest.fixture(scope="session")
def lv() -> System:
    """Lotka–Volterra; its model is compiled once for all tests."""
    return od.systems.lotka_volterra


@pytest.fixture(scope="session")
def lv_data(lv: System) -> od.Data:
    return lv.sample(0.1, seed=0)


@pytest.fixture(scope="session")
def lv_fit(lv: System, lv_data: od.Data) -> od.Fit:
    return od.fit(lv.model, lv_data)


@pytest.fixture(scope="session")
def oscillator() -> od.Model:
    """A damped oscillator, linear in states and parameters."""
    return od.Model.from_text("x' = v\nv' = a*x + b*v", name="oscillator")


@pytest.fixture(scope="session")
def logistic() -> od.Model:
    return od.Model.from_text("n' = r*n*(1 - n/K)", name="logistic")


@pytest.fixture(scope="session")
def decay() -> od.Model:
    return od.Model.from_text("x' = -k*x", name="decay")


@pytest.fixture(scope="session")
def decay_data() -> od.Data:
    """x(0) = 3, k = 0.7, noise 0.05."""
    t = np.linspace(0.0, 4.0, 15)
    return od.Data(t, 3.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15), states=["x"])
