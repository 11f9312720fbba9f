"""A lane computes in another process; whatever happens there, the next call finds one."""

import asyncio
import os
import time

import pytest

from odinfer.apps.studio.worker_process import Ended, Lane
from odinfer.errors import InputError


def begin():
    pass


def echo(value, tell=None):
    if tell is not None:
        tell("half way")
    return value, os.getpid()


def refuse():
    raise InputError("no")


def fail():
    raise KeyError("inside")


def hang():
    time.sleep(600)


def die():
    os._exit(3)


def fill():
    return len(bytearray(1 << 40))


@pytest.fixture(scope="module")
def lane():
    running = Lane(begin)
    yield running
    running.kill()


def call(lane, function, *args, **more):
    return asyncio.run(lane.call(function, *args, **more))


def test_it_answers_from_another_process_and_tells_on_the_way(lane):
    told: list[str] = []
    value, process = call(lane, echo, 3, tell=told.append)
    assert (value, told) == (3, ["half way"])
    assert process != os.getpid()
    assert call(lane, echo, 4)[1] == process


def test_what_is_refused_is_refused_here_and_faults_are_faults(lane):
    with pytest.raises(InputError, match="no"):
        call(lane, refuse)
    with pytest.raises(RuntimeError, match="KeyError: 'inside'"):
        call(lane, fail)
    with pytest.raises(InputError, match="not enough memory"):
        call(lane, fill)


def test_a_process_that_dies_or_hangs_is_replaced(lane):
    with pytest.raises(Ended):
        call(lane, die)
    with pytest.raises(InputError, match="takes longer"):
        call(lane, hang, timeout=0.5)
    assert call(lane, echo, 5)[0] == 5


def test_to_cancel_is_to_kill(lane):
    async def cancelled():
        asking = asyncio.create_task(lane.call(hang))
        await asyncio.sleep(0.3)
        lane.kill()
        await asking

    with pytest.raises(Ended):
        asyncio.run(cancelled())
    assert call(lane, echo, 6)[0] == 6


def test_what_is_closed_ends_who_waits_and_refuses_who_comes_later():
    lane = Lane(begin)

    async def closed():
        asking = asyncio.create_task(lane.call(hang))
        await asyncio.sleep(0.3)
        lane.close()
        await asking

    for late in (lambda: asyncio.run(closed()), lambda: call(lane, echo, 7)):
        with pytest.raises(Ended):
            late()
