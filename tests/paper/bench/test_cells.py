"""Cells join systems, methods and candidates: their settings name them, and their runs differ by the seed alone."""

from dataclasses import asdict

import pytest

from odinfer.paper.bench.cells import Case, Cell, Entry, Rival

DECAY = {
    "name": "decay", "equations": "x' = -k*x", "theta": {"k": 0.7}, "x0": {"x": 3.0}, "times": [0.0, 1.0, 2.0, 3.0],
    "snr": False,
}  # fmt: skip


def cell(spec=DECAY, noise=0.05, candidate=None, **entry) -> Cell:
    case = Case("decay", "Decay", spec, (noise,))
    return Cell(case, noise, Entry("mine", "Mine", "odin", **entry), candidate, draws=3, full=9)


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
    other = Cell(Case("other", "Other", DECAY, (0.05, 0.1)), 0.05, Entry("a", "b", "odin"), None, draws=1, full=1)
    assert other.run(4).key == cell().run(4).key


def test_a_candidate_is_part_of_the_run_but_not_what_is_wrong_with_it():
    keys = {cell(candidate=Rival("growth", "x' = k", wrong)).run(0).key for wrong in ((), ("x",))}
    assert len(keys) == 1
    assert keys != {cell().run(0).key}
    assert cell(candidate=Rival("growth", "x' = k", ())).run(0).candidate == {"name": "growth", "equations": "x' = k"}
