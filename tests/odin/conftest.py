"""A risk that is minimised in several test files."""

import pytest

import odinfer as od
from odin.risks import risk_of
from odinfer.odin.dense_engine import Dense


@pytest.fixture(scope="session")
def easy(lv, lv_data) -> Dense:
    return risk_of(od.Problem(lv.model, lv_data, positive=False))
