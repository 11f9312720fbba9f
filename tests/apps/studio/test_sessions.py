"""Jobs wait for each other, can be cancelled waiting or running, and tell the whole story to whoever comes late."""

import json
import threading

from odinfer.apps.studio.sessions import MOST_SESSIONS, Sessions

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
    others = [sessions.new() for _ in range(MOST_SESSIONS)]
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


def test_new_data_have_a_new_place(tmp_path):
    session = Sessions(tmp_path).new()
    session.keep("d.csv", b"1")
    before = session.data
    session.keep("d.csv", b"2")
    assert before != session.data
    assert session.data is not None
    assert session.data.read_bytes() == b"2"
