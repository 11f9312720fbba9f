"""Models and fits that several test files of this folder share."""

import pytest

import odinfer as od
from uncertainty.growth import growth_data


@pytest.fixture(scope="session")
def line() -> od.Model:
    return od.Model.from_text("x' = k", name="line")


@pytest.fixture(scope="session")
def growth_fit(logistic) -> od.Fit:
    return od.fit(logistic, growth_data())
