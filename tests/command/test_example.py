"""Examples to try: every one can be read and fitted as it is, and none overwrites a file that differs."""

import json
import os
from pathlib import Path

import pytest

import odinfer as od
from command.commands import odinfer
from odinfer.command import describe as check
from odinfer.command import example
from odinfer.problem.model import Model
from odinfer.problem.problem import Problem
from odinfer.problem.tables.read import read_csv


def test_examples_are_listed_and_written_unless_a_file_would_be_lost(tmp_path: Path):
    listed = odinfer("example", cwd=tmp_path)
    assert listed.code == 0
    assert all(name in listed.stdout for name in example.names())
    written = odinfer("example", "sir", cwd=tmp_path)
    assert written.code == 0
    assert sorted(os.listdir(tmp_path / "sir")) == ["sir.csv", "sir.ode", "truth.json"]
    assert odinfer("example", "sir", cwd=tmp_path).code == 0
    (tmp_path / "sir" / "sir.csv").write_text("mine")
    refused = odinfer("example", "sir", "sir", cwd=tmp_path)
    assert refused.code == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "sir" / "sir.csv").read_text() == "mine"
    assert odinfer("example", "sir", "sir", "--force", cwd=tmp_path).code == 0
    assert (tmp_path / "sir" / "sir.csv").read_text() != "mine"


@pytest.mark.parametrize("name", example.names())
def test_every_example_reads_without_a_finding(name: str, tmp_path: Path):
    ode, data, truth = example.write(name, tmp_path)
    model = Model.from_file(ode)
    problem = Problem(model, read_csv(data, model.states, model.inputs))
    assert check.findings(problem) == []
    assert set(json.loads(truth.read_text())) == set(problem.free)


def test_every_example_says_in_a_line_what_it_shows():
    names = example.names()
    assert len(names) >= 6
    for name, what in names.items():
        assert len(what) > 10, name
        assert not what.startswith("#")


def test_the_truth_of_an_example_is_that_of_its_data(tmp_path: Path):
    for name in ("lotka_volterra", "fitzhugh_nagumo", "protein_transduction"):
        _, _, truth = example.write(name, tmp_path / name)
        assert json.loads(truth.read_text()) == od.systems.SYSTEMS[name].theta


def test_an_unknown_example_gets_a_suggestion_and_nothing_is_written(tmp_path: Path):
    with pytest.raises(od.InputError, match="did you mean 'lotka_volterra'"):
        example.write("lotka_voltera", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_place_that_cannot_be_written_to_is_an_input_error(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(od.InputError, match="cannot write to"):
        example.write("sir", tmp_path / "file" / "deep")
