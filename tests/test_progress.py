"""Progress: a step that is a part of something tells its share of the whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.progress import no_progress, sub_progress

SHARES = st.floats(0.0, 1.0)


@settings(max_examples=50, deadline=None)
@given(SHARES, SHARES, SHARES)
def test_a_part_goes_from_its_start_to_its_stop(start, stop, share):
    told = []
    progress = sub_progress(lambda what, share: told.append((what, share)), start, stop)
    for s in (0.0, share, 1.0):
        progress("step", s)
    assert [what for what, _ in told] == ["step"] * 3
    assert told[0][1] == start
    assert told[2][1] == pytest.approx(stop)
    assert told[1][1] == pytest.approx((1 - share) * start + share * stop)


def test_parts_of_parts_tell_the_share_of_the_whole():
    told = []
    outer = sub_progress(lambda what, share: told.append(share), 0.5, 1.0)
    inner = sub_progress(outer, 0.5, 1.0)
    for share in (0.0, 0.5, 1.0):
        inner("step", share)
    assert told == [0.75, 0.875, 1.0]


def test_steps_that_follow_each_other_never_go_back():
    told = []
    for i in range(4):
        progress = sub_progress(lambda what, share: told.append(share), i / 4, (i + 1) / 4)
        for share in (0.0, 0.3, 1.0):
            progress("step", share)
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)


def test_where_nobody_listens_nobody_is_told():
    assert sub_progress(None, 0.2, 0.4) is no_progress
    assert no_progress("step", 0.5) is None
