"""Grids are data: what a file says is what is run, and what it says wrongly is said in one line."""

import pytest

from bench_runs import GRID, write_grid
from odinfer.errors import InputError
from odinfer.paper.bench import grid as grids


def test_the_paper_has_its_six_settings_four_candidates_and_sizes_up_to_a_thousand(paper):
    settings = {c.setting for c in paper.cells if c.candidate is None and c.case.size is None}
    assert settings == {
        "LV, σ = 0.1", "LV, σ = 0.5", "FHN, SNR = 100", "FHN, SNR = 10", "PT, σ = 0.001", "PT, σ = 0.01",
    }  # fmt: skip
    assert {c.candidate.name for c in paper.cells if c.candidate} == {"M11", "M01", "M10", "M00"}
    sizes = {c.case.size for c in paper.cells if c.case.size}
    assert {10, 1000} <= sizes
    for method in ("agm", "fgpgm", "rkg3", "odin-paper", "odin", "limit"):
        assert {c.setting for c in paper.cells if c.method.name == method and not c.candidate} >= settings


def test_defaults_run_samplers_on_fewer_draws_and_full_runs_all(paper):
    usual = {c.method.name: n for c, n in paper.chosen(systems="lotka_volterra")}
    assert usual["odin-paper"] == usual["rkg3"] == 100
    assert max(usual["agm"], usual["fgpgm"]) <= 20
    assert {n for _, n in paper.chosen(full=True)} == {100}
    assert {n for _, n in paper.chosen(draws=2)} == {2}


def test_a_grid_of_ones_own_may_have_a_model_file(tmp_path):
    (tmp_path / "decay.ode").write_text("x' = -k*x")
    text = GRID.format(draws=2, systems="['decay']", methods="['odin']", timeout=9)
    (tmp_path / "g.toml").write_text(text.replace('equations = "x\' = -k*x"', 'model = "decay.ode"'))
    grid = grids.read(str(tmp_path / "g.toml"))
    assert [run.system["equations"] for _, run in grid.runs(grid.chosen())] == ["x' = -k*x"] * 2
    again = grids.of_content(grid.content)
    assert [r.key for _, r in again.runs(again.chosen())] == [r.key for _, r in grid.runs(grid.chosen())]


BROKEN = {
    "not TOML": ("draws = 3", "draws = = 3", "is not valid TOML"),
    "unknown entry": ("timeout", "time_out", "unknown entry 'time_out'; did you mean 'timeout'"),
    "unknown system": ("[systems.decay]\nequations", "[systems.decoy]\nlabel", "systems.decoy: unknown system"),
    "unknown method": ('method = "fgpgm"', 'method = "fgpgn"', "unknown method 'fgpgn'; did you mean 'fgpgm'"),
    "system of an experiment": ("['lotka_volterra']", "['lotka']", "experiment 1: unknown system 'lotka'"),
    "method of an experiment": ("['odin']", "['odinn']", "unknown method 'odinn'; did you mean 'odin'"),
    "draws": ("draws = 3", "draws = 0", "'draws' must be a whole number from 1 to 100,000"),
    "noise": ("noise = [0.1]", "noise = [-0.1]", "'noise' must be a positive number"),
    "preset": ('preset = "default"', 'preset = "papre"', "unknown preset 'papre'; did you mean 'paper'"),
    "theta": ("{ k = 0.7 }", "{ r = 0.7 }", "theta has no value of 'k'"),
    "x0": ("{ x = 3.0 }", "{ z = 3.0 }", "x0 has no value of 'x'"),
    "equations": ("x' = -k*x", "x' = -k*", "systems.decay"),
    "times": ("count = 12", "count = 2", "at least 4 times"),
    "option": ('label = "ODIN"', "options = { kernle = 'rbf' }", "method 'odin' on lotka_volterra"),
    "option value": ('label = "ODIN"', "options = { kernel = 'rbff' }", "rbff"),
    "nothing": ("methods = ['odin']", "methods = []", "has no runs"),
    "date": ("timeout = 100.0", "timeout = 2020-01-01", "'timeout' must be a positive number"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_grid_is_one_clear_line(tmp_path, what):
    path = write_grid(tmp_path)
    old, new, words = BROKEN[what]
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError) as caught:
        grids.read(str(path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_names_of_flags_get_a_suggestion(paper):
    with pytest.raises(InputError, match="--methods: the grid has no 'odn'; did you mean 'odin'"):
        paper.chosen(methods="gpr,odn")
    with pytest.raises(InputError, match="--systems: the grid has no 'lotka_voltera'; did you mean"):
        paper.chosen(systems="lotka_voltera")
    with pytest.raises(InputError, match="--draws must be"):
        paper.chosen(draws=0)
    with pytest.raises(InputError, match="no grid 'papr'"):
        grids.read("papr")
