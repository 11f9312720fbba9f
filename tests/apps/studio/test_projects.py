"""Work is never lost: one file holds all of a tab, every tab is saved by itself, and what is damaged is refused."""

from __future__ import annotations

import io
import json
import time
import zipfile

import pytest

from apps.studio.browsing import LONG, example, fit
from apps.studio.running import Running
from odinfer.apps.studio.projects import ENDING

DATA = b"time,x\n0,8\n1,5.5\n2,4.1\n3,2.8\n4,2\n5,1.4\n"
PAGE = {"models": [{"id": "1", "name": "decay", "text": "x' = -k*x\n", "values": {}}], "current": 0}


def zipped(said, **files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("project.json", json.dumps(said))
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return stream.getvalue()


def found(tab):
    return tab.ask("GET", "/api/session")[1]


def test_a_project_has_data_models_and_results_and_opens_in_another_tab(studio, tab):
    tab.upload("my data.csv", DATA)
    job = tab.run("fit", ("decay", "x' = -k*x\n"))
    tab.ask("PUT", "/api/page", {**PAGE, "asked": {job["id"]: {"data": 1}}})
    status, content = tab.ask("GET", "/api/project")
    assert status == 200
    other = studio.tab()
    assert other.ask("POST", "/api/project", content)[0] == 200
    mine, theirs = found(tab), found(other)
    assert theirs["page"] == mine["page"]
    assert (theirs["data"], theirs["revision"]) == ("my data.csv", 1)
    assert theirs["jobs"] == mine["jobs"]
    name = "fit.json"
    path = f"/api/jobs/{job['id']}/files/{name}"
    assert other.ask("GET", path)[1] == tab.ask("GET", path)[1]
    assert other.upload("later.csv", DATA)[1]["revision"] > 1


GOOD = {"version": 1, "page": PAGE, "data": "", "revision": 0, "jobs": []}
JOB = {"id": "0" * 16, "kind": "fit", "models": [["m", "x' = x"]]}
ANSWER = {"kind": "fit", "headline": "fine"}


@pytest.mark.parametrize(("content", "words"), [
    (b"", "not a project"),
    (b"PK\x03\x04 and then nothing", "not a project"),
    (zipped([]), "not a project"),
    (zipped({**GOOD, "version": 99}), "version 99"),
    (zipped({**GOOD, "data": "a.csv"}), "no data"),
    (zipped({**GOOD, "page": {"models": [{"name": 3}]}}), "not a project"),
    (zipped({**GOOD, "jobs": [{**JOB, "id": "../../x", "messages": {"answer": ANSWER}}]}), "not a project"),
    (zipped({**GOOD, "jobs": [{**JOB, "messages": {"answer": ANSWER, "files": ["../x"]}}]}), "not a project"),
    (zipped({**GOOD, "jobs": [{**JOB, "messages": {"answer": "fine"}}]}), "not a project"),
])  # fmt: skip
def test_what_is_no_project_is_refused_and_nothing_is_lost(tab, content, words):
    tab.upload("d.csv", DATA)
    status, answer = tab.ask("POST", "/api/project", content)
    assert status == 400
    assert words in answer["error"]
    assert found(tab)["data"] == "d.csv"


def saved(folder, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        files = list((folder / "odinfer" / "projects").glob(f"*{ENDING}"))
        if files:
            return files
        time.sleep(0.05)
    raise AssertionError("nothing was saved")


def test_a_killed_studio_has_saved_every_tab_for_its_user_only(tmp_path):
    studio = Running(projects=tmp_path)
    studio.login()
    tab = studio.tab()
    tab.upload("d.csv", DATA)
    tab.ask("PUT", "/api/page", PAGE)
    (file,) = saved(tmp_path)
    studio.process.kill()
    studio.process.communicate()
    assert file.stat().st_mode & 0o077 == 0
    again = Running(projects=tmp_path)
    again.login()
    tab = again.tab()
    (project,) = found(tab)["projects"]
    assert (project["data"], project["models"]) == ("d.csv", ["decay"])
    assert tab.ask("POST", "/api/project", b"", X_Project=project["id"])[0] == 200
    assert found(tab)["page"] == PAGE
    assert tab.ask("POST", "/api/project", b"", X_Project="../../secret")[0] == 400
    assert again.stop() == (0, "")


@pytest.mark.browser
@pytest.mark.timeout(240)
def test_after_the_studio_stops_the_page_says_so_and_a_new_one_has_everything(browser, tmp_path):
    studio = Running(projects=tmp_path)
    context = browser.new_context()
    page = context.new_page()
    page.goto(studio.url)
    page.wait_for_selector("#examples button")
    assert "token" not in page.url
    assert page.is_hidden("#continue")
    example(page, "Prey and predators")
    fit(page)
    page.click("#downloads summary")
    page.wait_for_selector("#files button:has-text('report.html')", timeout=LONG)
    headline = page.inner_text("#headline")
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(tmp_path / "sent.odinfer")
    assert download.value.suggested_filename == "lotka_volterra.odinfer"
    assert studio.stop() == (0, "")
    page.wait_for_selector("#stopped:not([hidden])", timeout=LONG)
    assert "has stopped" in page.inner_text("#stopped")
    again = Running(projects=tmp_path)
    page.goto(again.url)
    page.click("#projects button:has-text('lotka_volterra')")
    page.wait_for_selector("#verdict:not([hidden])", timeout=LONG)
    assert page.inner_text("#headline") == headline
    assert page.is_hidden("#stale")
    assert page.input_value("[aria-label='Value of a']") == "2.019"
    other = context.new_page()
    other.goto(f"http://{again.host}/")
    other.wait_for_selector("#examples button")
    other.set_input_files("#file", tmp_path / "sent.odinfer")
    other.wait_for_selector("#verdict:not([hidden])", timeout=LONG)
    assert other.inner_text("#headline") == headline
    context.close()
    assert again.stop() == (0, "")
