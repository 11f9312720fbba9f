"""The maximum of a growth curve, and trajectories on its meshes."""

import pytest

from odinfer.trajectory.batch import OnMeshes


@pytest.fixture(scope="module")
def maximum(growth_fit):
    return growth_fit.maximum()


@pytest.fixture(scope="module")
def on(maximum) -> OnMeshes:
    return OnMeshes.of(maximum.like, maximum.refined)
