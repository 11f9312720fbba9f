"""A comparison that several test files look at."""

import pytest

import odinfer as od
from odinfer.selection.compare import Comparison
from selection.rivals import RIGHT, WRONG


@pytest.fixture(scope="session")
def found(lv_data) -> Comparison:
    """A wrong model and the right one, in this order."""
    return od.compare([WRONG, RIGHT], lv_data, draws=79, holdout="gaps", seed=1)
