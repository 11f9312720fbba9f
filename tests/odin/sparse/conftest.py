"""Sparse risks with their dense twins, which several test files compare."""

import pytest

from odin.sparse.many_states import dense_twin, diffusion, lorenz, sparse_risk
from odinfer.odin.risk import Risk
from odinfer.odin.sparse.risk import SparseRisk


@pytest.fixture(
    scope="session",
    params=[lambda: lorenz(10), diffusion, lambda: diffusion(gaps=True, prior={"D": ("normal", 1.0, 0.5)})],
    ids=["lorenz", "diffusion", "diffusion with gaps and a prior"],
)
def both(request) -> tuple[SparseRisk, Risk]:
    risk = sparse_risk(request.param(), grid=2)
    return risk, dense_twin(risk)
