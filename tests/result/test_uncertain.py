"""More kinds of intervals, each asked for by its name."""

import pytest

import odinfer as od
from odinfer.result.uncertain import with_uncertainty


def test_each_kind_is_added_and_progress_is_told(decay: od.Model, decay_data: od.Data):
    fit = od.fit(decay, decay_data)
    told: list[float] = []
    found = with_uncertainty(fit, "profile", 0, lambda what, share: told.append(share))
    assert "profile" in found.intervals_by_kind()
    assert told == [0.0]
    assert "profile" not in fit.intervals_by_kind()


@pytest.mark.parametrize("kind", ["bootstrap"])
def test_the_seed_decides(decay: od.Model, decay_data: od.Data, kind: str):
    fit = od.fit(decay, decay_data)
    one, two = (with_uncertainty(fit, kind, 3).interval(kind=kind) for _ in range(2))
    assert one == two
