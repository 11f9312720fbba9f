"""The command as a user runs it: what it prints, what it writes, and how it ends."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import odinfer as od
from apps.command.commands import Run, odinfer
from odinfer.apps.command import example
from odinfer.apps.command.cli import app
from odinfer.data.reader import read_csv
from odinfer.paper.systems import lotka_volterra

OUTPUTS = {"fit.json", "fit.nc", "states.csv", "plot.png", "report.html"}


def near_truth(estimated: dict[str, float], truth: dict[str, float], tolerance: float = 0.25) -> bool:
    return all(abs(estimated[name] - value) <= tolerance * abs(value) for name, value in truth.items())


# --- fit


def test_a_fit_ends_well_and_finds_the_truth(fitted: Run):
    assert (fitted.code, fitted.stderr) == (0, "")
    content = json.loads((fitted.folder / "lotka_volterra-fit" / "fit.json").read_text())
    assert near_truth(content["theta"], json.loads((fitted.folder / "truth.json").read_text()))


def test_a_fit_in_a_pipe_prints_plain_text_with_all_names_and_what_to_open(fitted: Run):
    assert "\x1b" not in fitted.stdout
    assert {"a", "b", "c", "d", "prey", "predator"} <= {line.split(" ")[0] for line in fitted.stdout.splitlines()}
    assert "converged" in fitted.stdout
    last = fitted.stdout.splitlines()[-1]
    assert last.startswith(f"Open {Path('lotka_volterra-fit') / 'report.html'} first")
    for name in OUTPUTS:
        assert name in last


def test_a_fit_writes_its_outputs_and_nothing_else(fitted: Run):
    folder = fitted.folder / "lotka_volterra-fit"
    assert {path.name for path in folder.iterdir()} == OUTPUTS
    assert all(path.stat().st_size > 100 for path in folder.iterdir())
    assert set(os.listdir(fitted.folder)) == {
        "lotka_volterra.ode",
        "lotka_volterra.csv",
        "truth.json",
        "lotka_volterra-fit",
    }


def test_json_is_one_document_and_an_undeclared_column_becomes_an_input(tmp_path: Path):
    ode, data, truth = example.write("driven_oscillator", tmp_path)
    ode.write_text(ode.read_text().replace("input u\n", ""))
    run = odinfer("fit", ode, data, "--json", "-o", "deep/out", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert near_truth(json.loads(run.stdout)["theta"], json.loads(truth.read_text()))
    assert json.loads(run.stdout) == json.loads((tmp_path / "deep" / "out" / "fit.json").read_text())
    (note,) = run.stderr.splitlines()
    assert note.startswith("note: 'u' is a column of the data")


def test_quiet_prints_nothing_and_replaces_older_outputs_only(tmp_path: Path):
    ode, data, truth = example.write("two_doses", tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    (out / "fit.json").write_text("old")
    (out / "notes.txt").write_text("mine")
    run = odinfer("fit", ode, data, "--quiet", "-o", "out", cwd=tmp_path)
    assert run[1:] == (0, "", "")
    content = json.loads((out / "fit.json").read_text())
    assert near_truth(content["theta"], json.loads(truth.read_text()))
    assert len(content["experiments"]) == 2
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(("kind", "words"), [("profile", "profile likelihood"), ("bootstrap", "bootstrap")])
def test_other_intervals_are_printed_saved_and_drawn(tmp_path: Path, kind: str, words: str):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    run = odinfer("fit", ode, data, "--uncertainty", kind, "-o", "out", cwd=tmp_path)
    assert (run.code, run.stderr) == (0, "")
    assert f"Intervals: 95 %, {words}." in run.stdout
    fit = od.load(tmp_path / "out" / "fit.json")
    assert set(fit.profiles) == (set(fit.theta) if kind == "profile" else set())
    if kind != "profile":  # whose ends are those of the default
        assert fit.interval(kind=kind) != fit.interval()
    printed = next(line for line in run.stdout.splitlines() if line.split()[:1] == ["a"])
    low, high = fit.interval(kind=kind)["a"]
    assert f"{low:.4g}" in printed
    assert f"{high:.4g}" in printed


def test_uncertainty_of_what_has_none_is_a_note_and_an_unknown_kind_an_error(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    run = odinfer("fit", ode, data, "--method", "gpr", "--uncertainty", "bootstrap", cwd=tmp_path)
    assert run.code == 0
    assert run.stderr.startswith("note: no bootstrap: ")
    run = odinfer("fit", ode, data, "--uncertainty", "bootstap", cwd=tmp_path)
    assert run[1:] == (2, "", "error: --uncertainty: unknown kind 'bootstap'; did you mean 'bootstrap'?\n")


def test_options_of_the_smoother_that_have_no_part_are_named(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = -k*x\nx(0) = 5\nk > 0")
    (tmp_path / "d.csv").write_text("time,x\n0,5.1\n1,3\n2,1.9\n3,1.1\n4,0.6\n5,0.5\n")
    run = odinfer("fit", "m.ode", "d.csv", "--gamma", "1", "--starts", "3", cwd=tmp_path)
    assert run.code == 0
    assert "--gamma and --starts were not used: initial values are given" in run.stderr


def test_a_fit_that_does_not_converge_is_exit_code_1_and_still_written(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    code = (
        "import dataclasses, odinfer.methods.odin as o; from odinfer.apps.command.cli import main\n"
        "fit = o.Odin.fit\n"
        "o.Odin.fit = lambda *a, **k: dataclasses.replace(fit(*a, **k), converged=False, status='gave up')\n"
        "main()"
    )
    run = odinfer("fit", ode, data, "--no-refine", "--gamma", "0.01", "--kernel", "rbf", cwd=tmp_path, code=code)
    assert run.code == 1
    assert run.stderr == "not converged: gave up\n"
    options = json.loads((tmp_path / "lotka_volterra-fit" / "fit.json").read_text())["options"]
    assert (options["refine"], options["gamma"], options["kernel"]) == (False, 0.01, "rbf")


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(ode))
    run = odinfer("fit", ode, data, "--quiet", cwd=tmp_path)
    assert run[1:] == (0, "", "")


# --- check


def test_check_describes_and_warns_without_writing(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    lines = data.read_text().splitlines()
    data.write_text("\n".join([f"{lines[0]},note", *(f"{line},x" for line in lines[1:])]))
    before = sorted(os.listdir(tmp_path))
    run = odinfer("check", ode, data, "--set", "a=0:10", "--log", "b,c", cwd=tmp_path)
    assert run.code == 0
    assert "Looks good." in run.stdout
    assert "0 to 10" in run.stdout
    assert run.stderr.splitlines() == [run.stderr.rstrip()]
    assert run.stderr.startswith("warning: ")
    assert "'note'" in run.stderr
    assert sorted(os.listdir(tmp_path)) == before


# --- simulate


def table(text: str) -> tuple[list[str], np.ndarray]:
    header, *rows = csv.reader(io.StringIO(text))
    return header, np.array([[float(cell or "nan") for cell in row] for row in rows])


def test_simulate_prints_the_solution_or_writes_it(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = -k*x\ny' = k*x\nfixed k = 0.5")
    command = ("simulate", "m.ode", "--x0", "x=2,y=0", "--times")
    printed = odinfer(*command, "0:4:5", cwd=tmp_path)
    header, values = table(printed.stdout)
    assert header == ["time", "x", "y"]
    np.testing.assert_allclose(values[:, 0], np.arange(5))
    np.testing.assert_allclose(values[:, 1], 2 * np.exp(-0.5 * np.arange(5)), rtol=1e-7)
    noisy = [odinfer(*command, "0,1,2.5", "--noise", "0.1", "--seed", "7", "-o", name, cwd=tmp_path) for name in "ab"]
    assert [run[1:] for run in noisy] == [(0, "", "")] * 2
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert table((tmp_path / "a").read_text())[1][:, 0].tolist() == [0.0, 1.0, 2.5]
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "m.ode"]


def test_simulate_takes_inputs_and_parameters_from_files(tmp_path: Path):
    ode, data, truth = example.write("driven_oscillator", tmp_path)
    command = ("simulate", ode, "--theta", truth, "--x0", "position=1,velocity=0", "--times", "0:10:41")
    run = odinfer(*command, "--inputs", data, cwd=tmp_path)
    assert run.code == 0, run.stderr
    observed = read_csv(data, ["position", "velocity"], ["u"]).y
    assert np.abs(table(run.stdout)[1][:, 1:] - observed).max() < 0.25


def test_a_solution_that_blows_up_is_exit_code_1_and_said(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = x^2")
    run = odinfer("simulate", "m.ode", "--x0", "x=1", "--times", "0:2:6", cwd=tmp_path)
    assert run.code == 1
    assert "blows up before time 2" in run.stderr
    values = table(run.stdout)[1]
    np.testing.assert_allclose(values[:3, 1], 1 / (1 - values[:3, 0]), rtol=1e-6)
    assert np.isnan(values[3:, 1]).all()  # after time 1


# --- compare


def test_the_command_compares_optional_terms_and_says_how_many(tmp_path: Path):
    prey, predator = "prey' = a*prey - b*prey*predator [- e*prey^2]", "predator' = -c*predator + d*prey*predator"
    (tmp_path / "lv.ode").write_text(f"{prey}\n{predator}\n0 < e < 10")
    data = lotka_volterra.sample(0.1, 0)
    rows = "\n".join(f"{t},{x},{y}" for t, (x, y) in zip(data.t, data.y, strict=True))
    (tmp_path / "d.csv").write_text(f"time,prey,predator\n{rows}\n")
    run = odinfer("compare", "lv.ode", "d.csv", "--set", "e=0:5", "-o", "out", "--draws", "19", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert "make 2 candidates" in run.stderr
    assert "lv [no optional term] is preferred over lv [- e*prey^2]" in run.stdout
    assert (tmp_path / "out" / "comparison.html").exists()
    for wrong, words in ((["lv.ode"], "model files and then"), (["lv.ode", "d.csv", "--set", "q=0:1"], "'q'")):
        run = odinfer("compare", *wrong, cwd=tmp_path)
        assert run.code == 2
        assert words in run.stderr
        assert len(run.stderr.splitlines()) == 1


# --- help, version


@pytest.mark.parametrize("command", [command.name or command.callback.__name__ for command in app.registered_commands])
def test_help_shows_examples(command: str, tmp_path: Path):
    run = odinfer(command, "--help", cwd=tmp_path)
    assert run.code == 0
    assert f"odinfer {command} " in run.stdout.partition("Example")[2]


def test_help_and_version_are_quick_since_they_load_nothing_heavy(tmp_path: Path):
    heavy = "{'jax', 'scipy', 'pandas', 'matplotlib', 'xarray'} & {*sys.modules}"
    code = f"import sys; from odinfer.apps.command.cli import main\ntry: main()\nfinally: print({heavy})"
    for arguments in (["--help"], ["--version"], ["example"]):
        run = odinfer(*arguments, cwd=tmp_path, code=code)
        assert run.code == 0
        assert run.stdout.splitlines()[-1] == "set()"
    assert odinfer("--version", cwd=tmp_path).stdout.startswith("odinfer ")


# --- from a cold shell: what a command does not need is never imported, neither by it nor by its worker processes


@pytest.fixture
def without(tmp_path: Path):
    """An environment in which importing any of these modules fails, in this process and those it starts."""

    def env(*modules: str) -> dict[str, str]:
        for name in modules:
            (tmp_path / "poison" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "poison" / name / "__init__.py").write_text(f"raise RuntimeError('{name} was imported')")
        return {"PYTHONPATH": os.pathsep.join([str(tmp_path / "poison"), os.environ.get("PYTHONPATH", "")])}

    return env


SLOW = ("jax", "xarray", "dask", "distributed")


@pytest.mark.parametrize(
    "words",
    [
        "check lotka_volterra.ode lotka_volterra.csv",
        "simulate lotka_volterra.ode --theta a=2,b=1,c=4,d=1 --x0 prey=5,predator=3 --times 0:2:5",
        "fit lotka_volterra.ode lotka_volterra.csv",
    ],
)
def test_text_models_need_neither_jax_nor_pandas_nor_xarray(words: str, without, tmp_path: Path):
    example.write("lotka_volterra", tmp_path)
    run = odinfer(*words.split(), cwd=tmp_path, env=without(*SLOW, "pandas"))
    assert (run.code, run.stderr) == (0, "")


def test_an_import_that_was_forbidden_is_noticed(without, tmp_path: Path):
    example.write("lotka_volterra", tmp_path)
    run = odinfer("fit", "lotka_volterra.ode", "lotka_volterra.csv", cwd=tmp_path, env=without("scipy"))
    assert run.code != 0
    assert "scipy was imported" in run.stderr


def test_workers_and_candidates_need_no_jax(without, tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    rows = data.read_text().splitlines()
    many = [f"experiment,{rows[0]}", *(f"{e},{row}" for e in "ab" for row in rows[1:])]
    (tmp_path / "many.csv").write_text("\n".join(many))
    env = without(*SLOW)
    run = odinfer("fit", ode, "many.csv", "--each", "--workers", "2", "-o", "each", cwd=tmp_path, env=env)
    assert run.code == 0, run.stderr
    estimates = list(csv.DictReader((tmp_path / "each" / "estimates.csv").read_text().splitlines()))
    assert [row["status"] for row in estimates] == ["converged"] * 2
    (tmp_path / "other.ode").write_text(ode.read_text().replace("d*prey*predator", "d*prey"))
    run = odinfer("compare", ode, "other.ode", data, "-o", "compared", cwd=tmp_path, env=env)
    assert run.code == 0, run.stderr


def test_the_command_is_a_module_too():
    run = subprocess.run([sys.executable, "-m", "odinfer", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("odinfer ")
