"""The semantic test suite of SBML is simulated within its tolerances; what is not simulated is refused by name."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = Path(os.environ.get("SBML_SUITE", ROOT.parent / "shared" / "data" / "sbml_suite"))
pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="the SBML test suite is not there; set SBML_SUITE")

# Reactions, rules, functions, events with delays and priorities, compartments that change, hierarchical models.
SAMPLE = (
    1, 9, 13, 39, 51, 71, 139, 173, 197, 355, 405, 759, 887, 927, 931, 935, 999, 1103, 1119, 1121, 1125, 1131, 1199,
    1213, 1227, 1233, 1235, 1237, 1241, 1251, 1285, 1305, 1331, 1333, 1461, 1505, 1533, 1553, 1631, 1637, 1663, 1685,
    1721, 1779,
)  # fmt: skip
REFUSED = (
    "an algebraic rule is not", "a delay cannot", "a fast reaction", "the factorial of", "inf", "nan", "No such file",
)  # fmt: skip


def suite():
    """The program that runs the cases."""
    spec = importlib.util.spec_from_file_location("sbml_suite", ROOT / "benchmarks" / "sbml_suite.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(numbers):
    own = suite()
    outcomes = {path.name: own.outcome_of(path) for path in own.cases(SUITE, numbers)}
    assert outcomes
    bad = {name: outcome.reason for name, outcome in outcomes.items() if outcome.kind in ("wrong", "error")}
    assert not bad
    refused = {name: outcome.reason for name, outcome in outcomes.items() if outcome.kind == "refused"}
    assert not {name: why for name, why in refused.items() if not any(word in why for word in REFUSED)}
    return 1 - len(refused) / len(outcomes)


def test_a_sample_of_the_suite_is_simulated_right():
    assert check([*SAMPLE]) > 0.95


@pytest.mark.slow
def test_every_case_is_simulated_right_or_refused():
    assert check([]) > 0.92
