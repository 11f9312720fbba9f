"""Sessions, the queue of jobs, and the processes they run in."""

import asyncio
import json
import os
import threading
import time

import pytest

import odinfer as od
from odinfer.apps.command.example import FOLDER
from odinfer.apps.studio.answers import answer_of
from odinfer.apps.studio.interactive import Source, choice_of
from odinfer.apps.studio.jobs import JobRequest, preload, run
from odinfer.apps.studio.sessions import MAX_SESSIONS, Job, Queue, Sessions
from odinfer.apps.studio.worker_process import WorkerEnded, WorkerProcess
from odinfer.errors import InputError

SLOW = "x' = -k*x"
ROWS = b"time,x\n" + b"".join(b"%d,%.3f\n" % (i, 5 * 0.7**i + 0.01 * (-1) ** i) for i in range(12))


def order(tab, kind="sample"):
    return tab.ask("POST", "/api/jobs", {"kind": kind, "models": [{"name": "m", "text": SLOW}]})[1]["id"]


def test_a_running_job_is_cancelled_and_the_next_one_runs(studio):
    one, two = studio.tab(), studio.tab()
    for tab in (one, two):
        tab.upload("d.csv", ROWS)
    first, second, third = order(one), order(two, "fit"), order(two, "fit")
    assert two.ask("DELETE", f"/api/jobs/{third}")[1]["state"] == "cancelled"
    stories: list[str] = []
    watching = threading.Thread(target=lambda: stories.append(one.ask("GET", f"/api/jobs/{first}/stream")[1]))
    watching.start()
    assert one.ask("DELETE", f"/api/jobs/{first}")[1]["state"] == "cancelled"
    watching.join(timeout=30)
    assert json.loads(stories[0].splitlines()[-1])["state"] == "cancelled"
    lines = [json.loads(line) for line in two.ask("GET", f"/api/jobs/{second}/stream")[1].splitlines()]
    assert lines[-1]["state"] == "done"
    assert sum("answer" in line for line in lines) == 1
    # Whoever comes late hears the end of it.
    late = json.loads(two.ask("GET", f"/api/jobs/{second}/stream")[1])
    assert (late["state"], "answer" in late) == ("done", True)


def test_old_sessions_make_room_for_new_ones(tmp_path):
    sessions = Sessions(tmp_path)
    first = sessions.new()
    first.keep("d.csv", ROWS)
    others = [sessions.new() for _ in range(MAX_SESSIONS)]
    assert sessions.get(first.id) is None
    assert not first.folder.exists()
    assert sessions.get(others[0].id) is others[0]


def test_a_module_has_an_address_per_session_and_old_ones_go(tmp_path):
    sessions = Sessions(tmp_path)
    one, two = sessions.new(), sessions.new()
    assert one.module("export {}") != two.module("export {}")
    assert sessions.module(one.module("export {}")) == "export {}"
    first = one.module("1")
    for i in range(60):
        one.module(f"// {i}")
    assert sessions.module(first) is None


def test_a_job_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("odinfer.apps.studio.sessions.MAX_JOB_SECONDS", 0.01)
    session, worker = Sessions(tmp_path).new(), WorkerProcess(begin)
    session.keep("d.csv", ROWS)

    async def ended() -> Job:
        queue = Queue(worker, lambda _: done.set())
        done, job = asyncio.Event(), queue.add(session, "bootstrap", (("m", "x' = -k*x"),), choice_of({}))
        working = asyncio.create_task(queue.work())
        await done.wait()
        working.cancel()
        return job

    job = asyncio.run(ended())
    worker.kill()
    assert job.state == "failed"
    assert "takes longer than 0.01 seconds" in job.messages["error"]


def test_new_data_have_a_new_place(tmp_path):
    session = Sessions(tmp_path).new()
    session.keep("d.csv", b"1")
    before = session.data
    session.keep("d.csv", b"2")
    assert before != session.data
    assert session.data is not None
    assert session.data.read_bytes() == b"2"


def test_a_fit_is_plain_data(lv_fit: od.Fit):
    preload()
    found = json.loads(json.dumps(answer_of(lv_fit), allow_nan=False))
    assert found["theta"] == pytest.approx(lv_fit.theta)
    assert found["intervals"]["likelihood"]["a"] == pytest.approx(lv_fit.interval()["a"])
    (curves,) = found["experiments"].values()
    assert {*curves["columns"]} == {*lv_fit.state_names}
    for column in curves["columns"].values():
        assert all(low <= y <= high for low, y, high in zip(column["low"], column["y"], column["high"], strict=True))
    assert len(curves["times"]) == len(curves["residuals"]["prey"]) == len(lv_fit.states)
    assert found["headline"].startswith("All equations are consistent with the data")


def test_the_answer_comes_before_the_files_and_intervals_go_on_from_it(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(ROWS)
    source, told = Source(path, choice_of({})), []
    made = [JobRequest(kind, (("m", "x' = -k*x"),), source, "d.csv", tmp_path / kind) for kind in ("fit", "bootstrap")]
    for order in made:
        found = run(order, told.append)
        assert {"report.html", "fit.json", "m.ode", "d.csv", "command.txt", "fit.py"} <= {*found["files"]}
        assert all((order.folder / name).is_file() for name in found["files"])
    answers = [m["answer"] for m in told if "answer" in m]
    assert answers[0]["theta"] == answers[1]["theta"]
    assert "bootstrap" in answers[1]["intervals"]
    assert len(answers[1]["draws"]["bootstrap"]["k"]) == 200
    assert [*told[0]] == ["progress", "share"]


def test_what_cannot_have_intervals_says_why(tmp_path):
    source = Source(FOLDER / "lotka_volterra.csv", choice_of({"names": {"prey": "nothing"}}))
    with pytest.raises(InputError, match="'nothing', which the model does not have"):
        run(JobRequest("fit", (("m", "prey' = a*prey"),), source, "d.csv", tmp_path), print)


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
def worker():
    running = WorkerProcess(begin)
    yield running
    running.kill()


def call(worker, function, *args, **more):
    return asyncio.run(worker.call(function, *args, **more))


def test_it_answers_from_another_process_and_tells_on_the_way(worker):
    told: list[str] = []
    value, process = call(worker, echo, 3, tell=told.append)
    assert (value, told) == (3, ["half way"])
    assert process != os.getpid()
    assert call(worker, echo, 4)[1] == process


def test_what_is_refused_is_refused_here_and_faults_are_faults(worker):
    with pytest.raises(InputError, match="no"):
        call(worker, refuse)
    with pytest.raises(RuntimeError, match="KeyError: 'inside'"):
        call(worker, fail)
    with pytest.raises(InputError, match="not enough memory"):
        call(worker, fill)


def test_a_process_that_dies_or_hangs_is_replaced(worker):
    with pytest.raises(WorkerEnded):
        call(worker, die)
    with pytest.raises(InputError, match="takes longer"):
        call(worker, hang, timeout=0.5)
    assert call(worker, echo, 5)[0] == 5


def test_to_cancel_is_to_kill(worker):
    async def cancelled():
        asking = asyncio.create_task(worker.call(hang))
        await asyncio.sleep(0.3)
        worker.kill()
        await asking

    with pytest.raises(WorkerEnded):
        asyncio.run(cancelled())
    assert call(worker, echo, 6)[0] == 6


def test_what_is_closed_ends_who_waits_and_refuses_who_comes_later():
    worker = WorkerProcess(begin)

    async def closed():
        asking = asyncio.create_task(worker.call(hang))
        await asyncio.sleep(0.3)
        worker.close()
        await asking

    for late in (lambda: asyncio.run(closed()), lambda: call(worker, echo, 7)):
        with pytest.raises(WorkerEnded):
            late()
