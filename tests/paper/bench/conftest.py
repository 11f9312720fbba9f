"""The paper's grid, which several test files look at."""

import pytest

from odinfer.paper.bench import grid as grids


@pytest.fixture(scope="session")
def paper() -> grids.Grid:
    return grids.read("paper")
