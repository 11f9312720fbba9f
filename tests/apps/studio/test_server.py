"""What the page asks the server for: data, models, fits, files; and what hostile files get told."""

import csv
import io
import json
import shlex
import subprocess
import sys
import threading
import time
import zipfile
from urllib.parse import quote

import pytest

import odinfer as od
from apps.command.commands import odinfer
from apps.studio.running import Running
from odinfer.apps.command.example import FOLDER, names
from odinfer.apps.studio import server

LV = (FOLDER / "lotka_volterra.ode").read_text()
DECAY = "x' = -k*x"
ROWS = b"time,x\n" + b"".join(b"%d,%.3f\n" % (i, 5 * 0.7**i + 0.01 * (-1) ** i) for i in range(12))


def test_the_page_and_its_files_are_there_and_no_others(studio):
    for path in (
        "/",
        "/static/app.js",
        "/static/studio.css",
        "/static/uplot.js",
        "/static/uplot.css",
        "/static/icon.svg",
    ):
        assert studio.ask("GET", path)[0] == 200, path
    for path in (
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
        "/static/README.md",
        "/x",
        "/static/",
    ):
        assert studio.ask("GET", path)[0] == 404, path
    assert server.PAGE.is_dir()


@pytest.mark.parametrize("name", names())
def test_every_example_can_be_opened_and_understood(tab, name):
    status, found = tab.ask("POST", "/api/example", {"name": name})
    assert status == 200
    assert found["error"] is None
    assert found["experiments"][0]["columns"]
    status, said = tab.ask("POST", "/api/understand", {"name": name, "text": found["text"]})
    assert (status, said["error"], said["data_error"]) == (200, None, None)
    assert said["observed"]
    assert len(said["experiments"]) == len(found["experiments"])


def test_sliders_get_a_guess_from_the_data_and_nothing_where_there_is_none(tab):
    ask = {"name": "m", "text": DECAY}
    assert tab.ask("POST", "/api/guess", ask) == (200, {})
    tab.upload("mine.csv", ROWS)
    status, found = tab.ask("POST", "/api/guess", ask)
    assert status == 200
    assert found["values"]["k"] == pytest.approx(0.357, rel=0.02)
    assert found["values"]["x(0)"] == pytest.approx(5, rel=0.02)
    assert tab.ask("POST", "/api/guess", {"name": "m", "text": "x' = ("}) == (200, {"failed": True})
    assert tab.ask("POST", "/api/guess", {"name": "m"})[0] == 400


def test_tabs_do_not_see_each_other(studio):
    one, two = studio.tab(), studio.tab()
    assert one.upload("mine.csv", ROWS)[0] == 200
    assert one.ask("PUT", "/api/page", {"models": [{"name": "mine", "text": DECAY}]})[0] == 200
    job = one.run("fit", ("mine", DECAY))
    assert job["state"] == "done"
    assert two.ask("GET", "/api/session")[1] | {"examples": [], "projects": []} == {
        "page": {},
        "data": None,
        "revision": 0,
        "jobs": [],
        "examples": [],
        "projects": [],
    }
    for path in (f"/api/jobs/{job['id']}/stream", f"/api/jobs/{job['id']}/files/report.html"):
        assert two.ask("GET", path)[0] == 400
    assert two.ask("DELETE", f"/api/jobs/{job['id']}")[0] == 400
    assert studio.ask("GET", "/api/session")[0] == 410
    assert studio.ask("GET", "/api/session", X_Session="guess")[0] == 410
    # What it was before a reload is there after it.
    kept = one.ask("GET", "/api/session")[1]
    assert (kept["data"], kept["page"]["models"][0]["text"]) == ("mine.csv", DECAY)
    assert kept["jobs"][0]["answer"]["theta"]["k"] == pytest.approx(0.357, abs=0.02)


def test_the_command_and_the_script_give_the_same_numbers(tab, tmp_path):
    text = "height' = r*height\nr < 0"
    data = ROWS.replace(b"time,x", b"Day no,my height [cm]")
    choice = {"time": "Day no", "names": {"my height [cm]": "height"}, "sd": {}}
    assert tab.upload("trees 1.csv", data)[0] == 200
    job = tab.run("profile", ("growth", text), choice=choice)
    assert job["state"] == "done", job
    tab.files(job, tmp_path)
    theta = job["answer"]["theta"]
    assert json.loads((tmp_path / "fit.json").read_text())["theta"] == pytest.approx(theta)
    command = (tmp_path / "command.txt").read_text().strip()
    assert command == job["answer"]["command"]
    words = shlex.split(command)
    assert words[0] == "odinfer"
    again = odinfer(*words[1:], "-o", "again", cwd=tmp_path)
    assert again.code == 0, again.stderr
    found = od.load(tmp_path / "again" / "fit.json")
    assert found.theta == pytest.approx(theta, rel=1e-12)
    assert found.interval(kind="profile")["r"] == pytest.approx(job["answer"]["intervals"]["profile"]["r"], rel=1e-9)
    subprocess.run([sys.executable, "fit.py"], cwd=tmp_path, check=True, capture_output=True)
    script = od.load(tmp_path / "fit.json")
    assert script.theta == pytest.approx(theta, rel=1e-12)
    assert "profile" in script.intervals_by_kind()


def test_models_are_compared_and_everything_comes_in_one_archive(tab, tmp_path):
    tab.upload("d.csv", ROWS)
    job = tab.run("compare", ("one", DECAY), ("two", "x' = -k*x + c"))
    assert job["state"] == "done", job
    answer = job["answer"]
    assert {row["name"] for row in answer["rows"]} == {"one", "two"} == {*answer["fits"]}
    assert answer["headline"].startswith("one is preferred")
    _, content = tab.ask("GET", f"/api/jobs/{job['id']}/files/everything.zip")
    inside = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert {"comparison.html", "one.ode", "two.ode", "d.csv", "compare.py", "command.txt"} <= {*inside}


def test_downloads_are_never_shown_as_pages_of_the_studio(tab):
    tab.upload("d.csv", ROWS)
    job = tab.run("fit", ("m", DECAY))
    path = f"/api/jobs/{job['id']}/files/report.html"
    _, headers, _ = tab.studio.ask("GET", path, X_Session=tab.key)
    assert headers["content-disposition"] == "attachment"
    assert headers["content-security-policy"] == "sandbox"
    for name in ("../../page", "..%2fx", "nothing.txt"):
        assert tab.ask("GET", f"/api/jobs/{job['id']}/files/{name}")[0] == 404


def bomb() -> bytes:
    """A small Excel file that unpacks to half a gigabyte."""
    stream, piece = io.BytesIO(), b" " * 1_000_000
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("xl/worksheets/sheet1.xml", "w") as sheet,
    ):
        for _ in range(510):
            sheet.write(piece)
    return stream.getvalue()


HOSTILE = {
    "empty.csv": b"",
    "header.csv": b"time,x\n",
    "binary.csv": bytes(range(256)) * 40,
    "utf16.csv": "time,x\n0,1\n".encode("utf-16"),
    "ragged.csv": b"time,x\n0,1\n1\n",
    "not.xlsx": b"PK\x03\x04" + b"\0" * 100,
    "dtd.xlsx": b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
    "old.csv": b"\xd0\xcf\x11\xe0" + b"\0" * 600,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_line_and_what_was_there_stays(tab, name):
    assert tab.upload("good.csv", ROWS)[0] == 200
    status, found = tab.upload(name, HOSTILE[name])
    words = found["error"]
    assert status == 400 or (status == 200 and words)
    assert len(words) < 500
    assert "Traceback" not in words
    assert "/tmp" not in words
    if status == 400:
        assert tab.ask("GET", "/api/session")[1]["data"] == "good.csv"


def test_a_file_that_unpacks_to_half_a_gigabyte_is_refused(tab):
    status, found = tab.upload("bomb.xlsx", bomb())
    assert status == 400
    assert "too large" in found["error"] or "memory" in found["error"] or "no Excel" in found["error"]


def test_the_name_of_a_file_is_only_a_name(tab):
    assert tab.upload(quote("../<script>/-rf;.csv"), ROWS)[0] == 200
    job = tab.run("fit", ("../m", DECAY))
    assert job["state"] == "done", job
    assert not [name for name in job["files"] if {*name} & {*"/\\<>;"} or name.startswith("-")]


@pytest.mark.parametrize(
    "body", [b"", b"[", b"[1]", b"null", b'{"kind": 3}', b"[" * 100_000, b'{"models": [3], "kind": "fit"}']
)
def test_what_is_no_request_is_refused(tab, body):
    for path in ("/api/example", "/api/jobs", "/api/understand"):
        status, found = tab.ask("POST", path, body)
        assert status == 400
        assert found["error"]


@pytest.mark.parametrize("choice", ["text", [1], {"names": ["a"]}, {"sd": 3}, {"time": 3}])
def test_a_choice_that_is_none_is_refused(tab, choice):
    model = {"name": "m", "text": DECAY}
    both = {"name": "m", "text": DECAY, "choice": choice}
    asked = {"/api/table": choice, "/api/understand": both, "/api/guess": both}
    asked["/api/jobs"] = {"kind": "fit", "models": [model], "choice": choice}
    for path, given in asked.items():
        assert tab.ask("POST", path, given)[0] == 400, path


@pytest.mark.parametrize(
    "state", [b'{"a": NaN}', b'{"a": 1e999}', b'{"a": "\\ud800"}', b'{"\\udc00": 1}', b'{"a": "\xff"}']
)
def test_a_state_of_the_page_that_cannot_be_sent_back_is_refused(tab, state):
    assert tab.ask("PUT", "/api/page", state)[0] == 400
    assert tab.ask("GET", "/api/session")[0] == 200


@pytest.mark.parametrize("name", ["a%00b", "..%2f..%2fserver.py", "README.md", "%ff", "x" * 5000, ".", ""])
def test_an_address_that_is_no_file_of_the_page_is_not_found(tab, name):
    assert tab.ask("GET", f"/static/{name}")[0] == 404


def test_data_named_like_a_result_and_models_of_one_name_keep_their_content(tab, tmp_path):
    assert tab.upload("states.csv", ROWS)[0] == 200
    job = tab.run("compare", ("m", DECAY), ("M", DECAY + "\n"), ("m", DECAY + "  "))
    assert job["state"] == "done", job
    assert {"states-data.csv", "m.ode", "M 2.ode", "m 3.ode"} <= {*job["files"]}
    assert tab.ask("GET", f"/api/jobs/{job['id']}/files/states-data.csv")[1] == ROWS


def test_data_are_removed_when_others_take_their_place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    left = tmp_path / "odinfer-studio-killed"
    left.mkdir()
    running = Running()
    running.login()
    tab = running.tab()
    assert not left.exists()  # of a studio that was killed
    for i in range(4):
        assert tab.upload(f"d{i}.csv", ROWS)[0] == 200
    assert tab.upload("bad.csv", b"")[0] == 400
    assert [path.name for path in tmp_path.rglob("*.csv")] == ["d3.csv"]
    assert running.stop() == (0, "")


def test_a_fit_that_cannot_be_made_says_why(tab):
    assert tab.ask("POST", "/api/jobs", {"kind": "fit", "models": [{"name": "m", "text": DECAY}]})[0] == 400
    tab.upload("d.csv", ROWS)
    job = tab.run("fit", ("m", "x' = -k*"))
    assert (job["state"], "cannot read" in job["error"]) == ("failed", True)
    job = tab.run("fit", ("m", "x' = -k*x [+ c]"))
    assert "press Compare" in job["error"]


def test_excel_files_are_read(tab):
    import openpyxl

    book = openpyxl.Workbook()
    for row in csv.reader(io.StringIO(ROWS.decode())):
        book.active.append([float(v) if v[0].isdigit() else v for v in row])
    stream = io.BytesIO()
    book.save(stream)
    status, found = tab.upload("d.xlsx", stream.getvalue())
    assert status == 200
    assert [c["name"] for c in found["columns"]] == ["time", "x"]


def test_the_studio_begins_with_the_files_that_it_is_given_and_leaves_none_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "mine.ode").write_text(DECAY)
    (tmp_path / "mine.csv").write_bytes(ROWS)
    running = Running(tmp_path / "mine.ode", tmp_path / "mine.csv")
    running.login()
    tab = running.tab()
    found = tab.ask("GET", "/api/session")[1]
    assert (found["data"], found["page"]["models"]) == ("mine.csv", [{"name": "mine", "text": DECAY}])
    assert list(tmp_path.glob("odinfer-studio-*"))
    # Neither a fit that somebody follows nor a guess is waited for when it ends.
    job = tab.ask("POST", "/api/jobs", {"kind": "bootstrap", "models": [{"name": "m", "text": DECAY}]})[1]
    asked = [("GET", f"/api/jobs/{job['id']}/stream", None), ("POST", "/api/guess", {"name": "m", "text": DECAY})]
    threads = [threading.Thread(target=tab.ask, args=each) for each in asked]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    assert running.stop() == (0, "")
    for thread in threads:
        thread.join()
    assert not list(tmp_path.glob("odinfer-studio-*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.ode"], "does not exist"),
        (["missing.csv"], "No such file"),
        (["a.csv", "b.csv"], "in this order"),
        (["--port", "99999"], "--port"),
        (["--host", "256.1.1.1"], "cannot listen"),
    ],
)
def test_bad_arguments_are_one_line(tmp_path, arguments, words):
    run = odinfer("studio", "--no-open", *arguments, cwd=tmp_path)
    assert run.code == 2
    assert words in run.stderr
    assert run.stderr.count("\n") == 1
