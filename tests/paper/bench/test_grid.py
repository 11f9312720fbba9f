"""Grids: what is read from a file, refused in one line, and made into runs with keys."""

import dataclasses
import math
import pickle
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_runs import GRID, write_grid
from odinfer.errors import InputError
from odinfer.paper.bench import grid as grids
from odinfer.paper.bench import values
from odinfer.paper.bench.runs import Candidate, Case, Cell, MethodEntry, Run


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


FEW = settings(max_examples=25, deadline=None)
GOOD = {
    "text": ["a", " b "], "flag": [True, False], "whole": [0, 7], "count": [1, 7], "positive": [1, 0.5],
    "table": [{}, {"a": 1}], "listed": [[], [1]], "levels": [[0.1], [1, 10]], "times": [[0.0, 1.0], []],
}  # fmt: skip
BAD = {
    "text": ["", "  ", 3, None], "flag": [1, "true", None], "whole": [-1, 1.0, True, "1"], "count": [0, -1, 2.0, True],
    "positive": [0, -0.5, math.inf, math.nan, "1"], "table": [[], "a", None], "listed": [{}, "a", None],
    "levels": [[], [0.0], [-1], ["a"], 0.1], "times": [[1.0, 1.0], [2, 1], ["a"], {"start": 0, "stop": 1}, 3],
}  # fmt: skip


@pytest.mark.parametrize("check", GOOD)
def test_right_values_are_taken(check):
    for value in GOOD[check]:
        found = getattr(values, check)(value)
        assert found == (tuple(value) if check in ("levels", "times") else value)


@pytest.mark.parametrize("check", BAD)
def test_wrong_values_are_refused_with_what_they_should_be(check):
    for value in BAD[check]:
        with pytest.raises(ValueError, match=r"^(a|true) "):
            getattr(values, check)(value)


@FEW
@given(start=st.floats(-1e3, 1e3), span=st.floats(0.1, 1e3), count=st.integers(2, 40))
def test_even_times_are_those_between_start_and_stop(start, span, count):
    found = values.times({"start": start, "stop": start + span, "count": count})
    np.testing.assert_array_equal(found, np.linspace(start, start + span, count))


def test_a_table_gets_its_defaults_and_its_checks():
    known = {"title": (values.text, "none"), "draws": (values.count, None)}
    assert values.checked_table({"draws": 3}, "here", known) == {"title": "none", "draws": 3}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "here: 'draws' is missing"),
        ({"draw": 3}, "here: unknown entry 'draw'; did you mean 'draws'?"),
        ({"draws": 0}, "here: 'draws' must be a whole number from 1 to 100,000, not '0'"),
        ([3], "here must be a table of names and values"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_place(table, words):
    with pytest.raises(InputError) as caught:
        values.checked_table(table, "here", {"draws": (values.count, None)})
    assert str(caught.value) == words


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(InputError) as caught:
        values.checked_table({"draws": "x" * 10_000}, "here", {"draws": (values.count, None)})
    assert len(str(caught.value)) < 150


def test_a_name_is_one_of_those_known_or_gets_a_suggestion():
    assert values.checked_name("here", "system", "decay", {"decay": 3}) == 3
    with pytest.raises(InputError, match="here: unknown system 'deca'; did you mean 'decay'"):
        values.checked_name("here", "system", "deca", {"decay": 3})


DECAY = {
    "name": "decay", "equations": "x' = -k*x", "theta": {"k": 0.7}, "x0": {"x": 3.0}, "times": [0.0, 1.0, 2.0, 3.0],
    "snr": False,
}  # fmt: skip


def cell(spec=DECAY, noise=0.05, candidate=None, **entry) -> Cell:
    case = Case("decay", "Decay", spec, (noise,))
    return Cell(case, noise, MethodEntry("mine", "Mine", "odin", **entry), candidate, draws=3, full=9)


@pytest.mark.parametrize(
    ("spec", "noise", "setting"),
    [
        (DECAY, 0.05, "Decay, σ = 0.05"),
        (DECAY | {"snr": True}, 10.0, "Decay, SNR = 10"),
        (DECAY, 1e-3, "Decay, σ = 0.001"),
    ],
)
def test_a_setting_names_the_system_and_what_its_noise_means(spec, noise, setting):
    assert cell(spec, noise).setting == setting


def test_draws_of_a_cell_differ_by_their_seed_alone():
    one, two = (asdict(cell(preset="paper", options={"grid": 3}).run(seed)) for seed in (1, 2))
    assert one | {"seed": 2} == two
    assert (one["method"], one["preset"], one["options"]) == ("odin", "paper", {"grid": 3})
    assert (one["system"], one["noise"], one["candidate"]) == (DECAY, 0.05, None)


def test_labels_and_numbers_of_draws_do_not_change_the_result_of_a_run():
    other = Cell(Case("other", "Other", DECAY, (0.05, 0.1)), 0.05, MethodEntry("a", "b", "odin"), None, draws=1, full=1)
    assert other.run(4).key == cell().run(4).key


def test_a_candidate_is_part_of_the_run_but_not_what_is_wrong_with_it():
    keys = {cell(candidate=Candidate("growth", "x' = k", wrong)).run(0).key for wrong in ((), ("x",))}
    assert len(keys) == 1
    assert keys != {cell().run(0).key}
    assert cell(candidate=Candidate("growth", "x' = k", ())).run(0).candidate == {
        "name": "growth",
        "equations": "x' = k",
    }


OPTIONS = st.dictionaries(
    st.text(max_size=5), st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=4
)


def test_equal_runs_have_equal_keys_and_any_change_changes_the_key(paper):
    run = paper.cells[0].run(7)
    assert run.key == paper.cells[0].run(7).key
    other = {
        "system": {"name": "fitzhugh_nagumo"}, "noise": 0.2, "candidate": {"name": "m", "equations": "x' = x"},
        "method": "gpr", "preset": "default", "options": {"kernel": "rbf"}, "seed": 8, "version": "0.0.0",
    }  # fmt: skip
    assert set(other) == {f.name for f in dataclasses.fields(Run)}
    keys = {dataclasses.replace(run, **{name: value}).key for name, value in other.items()}
    assert len(keys | {run.key}) == len(other) + 1


@settings(max_examples=25, deadline=None)
@given(options=OPTIONS, seed=st.integers(0, 10**6))
def test_the_order_of_options_does_not_matter_and_a_key_survives_the_way_to_a_worker(options, seed):
    def run(given):
        return Run({"name": "decay"}, 0.1, None, "odin", "default", given, seed)

    key = run(options).key
    assert run(dict(reversed(options.items()))).key == key
    assert pickle.loads(pickle.dumps(run(options))).key == key
    assert len(key) == 64
    assert int(key, 16) >= 0
