"""A series as a job: equal contents have equal keys, and whatever goes wrong is a status."""

from dataclasses import dataclass, replace

import pytest

import odinfer as od
from odinfer.apps.each.job import How, compute, job, row_of, usable
from odinfer.parallel.resume import failure
from odinfer.version import __version__


@dataclass(frozen=True)
class Broken:
    name: str = "broken"

    def fit(self, problem, seed=0, progress=None):
        raise ZeroDivisionError("of all things")


@pytest.fixture
def one(decay, many) -> od.Problem:
    return od.Problem(decay, many.only("s1"))


def test_equal_contents_have_equal_keys_and_others_have_others(one, many, decay):
    how = How(od.Odin())
    again = od.Problem(od.Model.from_text("x' = -k*x", name="decay"), many.only("s1"))
    assert job(one, how).key == job(again, how).key
    others = [
        job(od.Problem(decay, many.only("s2")), how),
        job(replace(one, positive=True), how),
        job(replace(one, sigma={"x": 0.1}), how),
        job(replace(one, prior={"k": ("normal", 1.0, 1.0)}), how),
        job(one, How(od.Odin(), 1)),
        job(one, How(od.Odin(refine=False))),
        job(one, How(od.TwoStep())),
        job(one, How(od.Odin(), test=True)),
        job(one, How(od.Odin(), uncertainty="profile")),
    ]
    assert len({job(one, how).key, *(other.key for other in others)}) == 10
    assert job(one, how).run["version"] == __version__


def test_whatever_goes_wrong_in_a_fit_is_a_status(one):
    made = compute(one, How(Broken()))
    assert made["outcome"] == failure("failed: ZeroDivisionError: of all things")
    assert made["timing"]["seconds"] >= 0


def test_a_record_is_usable_as_it_is_made_and_not_with_anything_else_in_it(one):
    how = How(od.Odin())
    own = job(one, how)
    record = {"key": own.key, "run": dict(own.run), **compute(*own.args)}
    assert usable(record)
    assert usable({**record, "outcome": failure("failed: so")})
    assert row_of(record["outcome"], one).theta.keys() == {"k"}
    outcome = record["outcome"]
    for spoilt in (
        {**record, "key": "0" * 64},
        {**record, "outcome": {**outcome, "fit": None}},
        {**record, "outcome": {**outcome, "status": "excellent"}},
        {**record, "outcome": {**outcome, "row": {**outcome["row"], "theta": {"k": [1.0]}}}},
        {**record, "outcome": {**outcome, "row": {**outcome["row"], "more": 1}}},
        {**record, "outcome": {"status": "converged", "converged": True, "theta": {}}},
        {**record, "outcome": {}},
    ):
        assert not usable(spoilt)


def test_more_is_added_to_each_fit_if_asked_for(one):
    outcome = compute(one, How(od.Odin(), uncertainty="profile", test=True))["outcome"]
    assert '"model_test"' in outcome["fit"]
    assert outcome["converged"]
