"""SBML models and PEtab problems that are brought to the page: text and data, or a line that says why not."""

from __future__ import annotations

import io
import zipfile
from base64 import b64encode
from pathlib import Path

import pytest

import odinfer as od
from odinfer.io.petab_reader import nominal
from sbml_files import petab, sbml

pytest.importorskip("libsbml")


def converted(tab, files, **more):
    given = {name: b64encode(content).decode() for name, content in files.items()}
    return tab.ask("POST", "/api/convert", {"files": given, **more})


def problem(folder: Path) -> dict[str, bytes]:
    petab(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_an_sbml_model_becomes_the_text_that_the_package_reads(tab, tmp_path):
    path = sbml(tmp_path)
    status, found = converted(tab, {"drug.xml": path.read_bytes()})
    assert status == 200
    assert found == {"model": "drug", "text": od.read_sbml(path).text, "values": {}}
    assert tab.ask("GET", "/api/session")[1]["data"] is None


@pytest.mark.parametrize("wrap", [
    lambda files: files,
    lambda files: {f"folder/{name}": content for name, content in files.items()},
    lambda files: {"all.zip": zipped({"__MACOSX/._a.yaml": b"x", **{f"so/deep/{n}": c for n, c in files.items()}})},
], ids=["files", "folder", "zip"])  # fmt: skip
def test_a_petab_problem_becomes_a_model_and_data_of_the_same_likelihood(tab, tmp_path, wrap):
    status, found = converted(tab, wrap(problem(tmp_path)))
    assert status == 200
    expected, values = od.read_petab(tmp_path / "drug.yaml"), nominal(tmp_path / "drug.yaml")
    assert (found["model"], found["name"], found["values"]) == ("drug", "drug.csv", values)
    assert [e["name"] for e in found["experiments"]] == ["low", "high"]
    status, said = tab.ask("POST", "/api/understand", {"name": "drug", "text": found["text"]})
    assert (status, said["error"], said["data_error"]) == (200, None, None)
    weighed = tab.ask("POST", "/api/loglik", {"name": "drug", "text": found["text"], "values": values})[1]
    assert weighed["loglik"] == pytest.approx(od.loglik(expected, values), abs=1e-6)


def bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.xml", bytes(120_000_000))
    return stream.getvalue()


SBML = b'<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1"><model/></sbml>'


@pytest.mark.parametrize(("files", "words"), [
    ({"problem.yaml": b"format_version: 1\nparameter_file: p.tsv\n"}, "names 'p.tsv', which is not here; bring all"),
    ({"p.zip": b"PK\x03\x04 and then nothing"}, "no zip archive"),
    ({"p.zip": zipped({"readme.txt": b"hello"})}, "neither an SBML model"),
    ({"p.zip": zipped({"../../out.xml": b"<a/>"})}, "out.xml is no SBML"),
    ({"../out.xml": SBML}, "outside the folder"),
    ({"p.zip": zipped({"a.xml": SBML, "b.xml": SBML})}, "these are 2 SBML models: a.xml, b.xml; bring one"),
    ({"a.yaml": b"x: 1\n"}, "format_version must be 1 or 2"),
    ({"a.xml": b"<html></html>"}, "a.xml"),
    ({}, "files are given by name"),
    ({"p.zip": bomb()}, "unpacks to more than"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_in_a_line_and_the_data_stay(tab, tmp_path, files, words):
    tab.upload("d.csv", b"time,x\n0,8\n1,5.5\n2,4.1\n3,2.8\n")
    status, answer = converted(tab, files)
    assert status == 400
    assert words in answer["error"]
    assert "/tmp" not in answer["error"]
    assert tab.ask("GET", "/api/session")[1]["data"] == "d.csv"


def test_what_was_worked_on_before_stays_as_a_project(studio, tmp_path):
    tab = studio.tab()
    page = {"models": [{"name": "worked on", "text": "x' = -k*x\n"}]}
    tab.upload("before.csv", b"time,x\n0,8\n1,5.5\n2,4.1\n3,2.8\n")
    tab.ask("PUT", "/api/page", page)
    assert converted(tab, problem(tmp_path), leave=True)[0] == 200
    after = {"models": [{"name": "after", "text": "x' = -k*x\n"}]}
    tab.ask("PUT", "/api/page", after)
    assert tab.ask("POST", "/api/example", {"name": "lotka_volterra", "leave": True})[0] == 200
    projects = tab.ask("GET", "/api/session")[1]["projects"]
    assert [(p["data"], p["models"]) for p in projects[:2]] == [("drug.csv", ["after"]), ("before.csv", ["worked on"])]


@pytest.mark.browser
@pytest.mark.timeout(240)
def test_the_page_opens_an_sbml_model_and_then_a_petab_problem_whose_files_come_together(page, tmp_path):
    page.expected.append("400")
    page.set_input_files("#file", sbml(tmp_path))
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('turn = blood*k*A')")
    page.wait_for_selector("#charts h3:has-text('B')")
    assert page.input_value("[aria-label='Value of k']") == "0.3"
    path = petab(tmp_path)
    page.set_input_files("#file", path)
    page.wait_for_selector("#message:has-text('bring all its files together')")
    page.set_input_files("#file", [p for p in tmp_path.iterdir() if p.suffix == ".tsv"])
    page.wait_for_selector("#message:has-text('needs its .yaml')")
    assert "turn = blood*k*A" in page.input_value("#editor textarea")
    page.set_input_files("#file", [*tmp_path.iterdir()])
    page.wait_for_selector("#charts h3:has-text('obs_A')")
    page.wait_for_selector("#fit:enabled")
    assert page.is_hidden("#message")
    assert page.inner_text("#file-name") == "drug.csv"
    assert page.input_value("[aria-label='Value of k']") == "0.5"  # nominal
    page.click("#home")
    page.wait_for_selector("#projects button:has-text('drug')")  # the model before, which was not lost


@pytest.mark.browser
def test_a_folder_that_is_dropped_on_the_page_is_the_problem_in_it(page, tmp_path):
    folder = tmp_path / "My problem"
    (folder / "tables" / "deep").mkdir(parents=True)
    path = petab(folder)
    (folder / ".DS_Store").write_bytes(b"\0\1")
    (folder / "tables" / "deep" / "notes.txt").write_text("mine")
    dropped_by_mouse(page, folder)
    page.wait_for_selector("body[data-view=workspace]")
    page.wait_for_selector("#file-name:has-text('drug.csv')")
    page.wait_for_function("() => document.querySelector('#model-name').value === 'drug'")
    page.wait_for_selector("#fit:enabled")
    assert page.is_hidden("#message")
    assert page.is_hidden("#dropping")
    assert page.input_value("[aria-label='Value of k']") == f"{nominal(path)['k']:g}"
    path.unlink()
    dropped_by_mouse(page, folder)
    page.wait_for_selector("#message:has-text('needs its .yaml')")
    assert page.input_value("#model-name") == "drug"


@pytest.mark.browser
def test_a_folder_with_data_and_a_model_is_both_of_them(page, tmp_path):
    (tmp_path / "data.csv").write_text("time,x\n0,4\n1,3\n2,2.2\n3,1.7\n")
    (tmp_path / "decay.ode").write_text("x' = -k*x\n")
    (tmp_path / ".DS_Store").write_bytes(b"\0\1")
    dropped_by_mouse(page, tmp_path)
    page.wait_for_selector("#file-name:has-text('data.csv')")
    page.wait_for_function("() => document.querySelector('#model-name').value === 'decay'")
    assert page.is_hidden("#message")


def dropped_by_mouse(page, *paths: Path) -> None:
    """Drop files or folders of the disk as a mouse does."""
    client = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        client.send("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 300, "data": data})
