"""Models and fits that several test files of this folder share, and an independent judge of confidence limits."""

import importlib.util
from pathlib import Path

import pytest

import odinfer as od
from odinfer.likelihood.collocation_batch import CollocationTrajectories
from uncertainty.growth import growth_data


@pytest.fixture(scope="session")
def line() -> od.Model:
    return od.Model.from_text("x' = k; real k", name="line")


@pytest.fixture(scope="session")
def growth_fit(logistic) -> od.Fit:
    return od.fit(od.Problem(logistic, growth_data(), positive=False))


@pytest.fixture(scope="session")
def maximum(growth_fit):
    return growth_fit.maximum()


@pytest.fixture(scope="session")
def on(maximum) -> CollocationTrajectories:
    return CollocationTrajectories.of(maximum.likelihood, maximum.refined)


@pytest.fixture(scope="session")
def judge():
    """benchmarks/ends.py: the likelihood by SymPy and SciPy alone."""
    path = Path(__file__).parents[2] / "benchmarks" / "ends.py"
    spec = importlib.util.spec_from_file_location("ends", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)  # which has what benchmarks share
        spec.loader.exec_module(module)
    return module
