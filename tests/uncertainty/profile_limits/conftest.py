"""The maximum of a growth curve, trajectories on its meshes, and a judge of ends."""

import importlib.util
from pathlib import Path

import pytest

from odinfer.likelihood.collocation_batch import OnMeshes


@pytest.fixture(scope="module")
def maximum(growth_fit):
    return growth_fit.maximum()


@pytest.fixture(scope="module")
def on(maximum) -> OnMeshes:
    return OnMeshes.of(maximum.like, maximum.refined)


@pytest.fixture(scope="module")
def judge():
    """benchmarks/ends.py: the likelihood by SymPy and SciPy alone."""
    path = Path(__file__).parents[3] / "benchmarks" / "ends.py"
    spec = importlib.util.spec_from_file_location("ends", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)  # which has what benchmarks share
        spec.loader.exec_module(module)
    return module
