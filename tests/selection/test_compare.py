"""Candidates compared: the table, the verdicts, the sentences, the files, and the command."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import odinfer as od
from odinfer.systems import lotka_volterra

PREY, PREDATOR = "prey' = a*prey - b*prey*predator", "predator' = -c*predator + d*prey*predator"
RIGHT = od.Model.from_text(f"{PREY}\n{PREDATOR}", name="right")
WRONG = od.Model.from_text(f"prey' = a*prey^2 + b*predator\n{PREDATOR}", name="wrong <b>prey</b>")


@pytest.fixture(scope="module")
def found():
    return od.compare([WRONG, RIGHT], lotka_volterra.sample(0.1, 0), draws=79, holdout="gaps", seed=1)


def test_the_table_has_a_row_per_model_the_best_first(found):
    assert list(found.table.index) == ["right", "wrong <b>prey</b>"]
    assert found.best == "right"
    assert {"loglik", "parameters", "aicc", "bic", "weight", "risk", "status"} <= {*found.table.columns}
    assert found.table["weight"].sum() == pytest.approx(1.0)
    assert found.table["weight_aicc"].sum() == pytest.approx(1.0)


def test_criteria_follow_their_formulas(found):
    for name, row in found.table.iterrows():
        k, n = row["parameters"], 40
        assert k == 4 + 2 + 2
        assert row["bic"] == pytest.approx(-2 * row["loglik"] + k * np.log(n))
        assert row["aicc"] == pytest.approx(-2 * row["loglik"] + 2 * k + 2 * k * (k + 1) / (n - k - 1))
        assert row["loglik"] == pytest.approx(found.fits[name].stages["refined"].loglik)
        assert row["risk"] == found.fits[name].stages["odin"].objective


def test_verdicts_are_per_equation(found):
    assert found.verdicts == {
        "right": {"prey": "consistent", "predator": "consistent"},
        "wrong <b>prey</b>": {"prey": "contradicts", "predator": "consistent"},
    }
    assert found.gamma.loc["wrong <b>prey</b>", "prey"] > 0.5
    assert found.gamma.loc["right"].max() < 1e-3


def test_held_out_scores_prefer_the_right_model(found):
    assert found.table["heldout_rmse"]["right"] < 0.5 * found.table["heldout_rmse"]["wrong <b>prey</b>"]
    assert found.table["heldout_loglik"]["right"] > found.table["heldout_loglik"]["wrong <b>prey</b>"]


def test_the_summary_can_be_acted_on(found):
    text = found.summary()
    assert "right is preferred over wrong" in text
    assert "the equation for prey contradicts the data (γ = " in text
    assert "predator's does not" in text
    assert "fails at times" in text
    assert "a hint only" in text


def test_files_are_complete_and_escaped(found, tmp_path):
    found.save(tmp_path / "all")
    names = {path.name for path in (tmp_path / "all").iterdir()}
    assert names == {"comparison.html", "comparison.json", "comparison.csv", "gamma.csv"} | {
        "gamma.png", "fits.png", "gaps.png",
    }  # fmt: skip
    page = (tmp_path / "all" / "comparison.html").read_text("utf-8")
    assert "<b>prey</b>" not in page
    assert page.count("data:image/png;base64,") == 3
    found.save(tmp_path / "c.json")
    content = json.loads((tmp_path / "c.json").read_text("utf-8"))
    assert content["best"] == "right"
    assert content["models"]["wrong <b>prey</b>"]["equations"]["prey"]["verdict"] == "contradicts"
    with pytest.raises(od.InputError, match=r"\.txt"):
        found.save(tmp_path / "c.txt")


def test_the_picture_is_drawn(found, tmp_path):
    found.plot(tmp_path / "gamma.png")
    assert (tmp_path / "gamma.png").read_bytes().startswith(b"\x89PNG")


def test_two_workers_find_the_same(found):
    again = od.compare([WRONG, RIGHT], lotka_volterra.sample(0.1, 0), draws=79, holdout="gaps", seed=1, workers=2)
    assert again.table.drop(columns="status").equals(found.table.drop(columns="status"))
    assert {n: c.judgements for n, c in again.candidates.items()} == {
        n: c.judgements for n, c in found.candidates.items()
    }


def test_models_can_be_sent_to_other_processes_after_use():
    theta, x0 = np.array([2.0, 1.0, 4.0, 1.0]), [5.0, 3.0]
    t = np.linspace(0, 1, 4)
    before = od.simulate(RIGHT, theta, x0, t)
    np.testing.assert_array_equal(od.simulate(pickle.loads(pickle.dumps(RIGHT)), theta, x0, t), before)


def test_models_of_the_same_name_are_told_apart():
    data = lotka_volterra.sample(0.1, 0)
    found = od.compare([RIGHT, RIGHT], data, draws=19)
    assert list(found.candidates) == ["right", "right 2"]
    assert found.table["weight"].tolist() == pytest.approx([0.5, 0.5])
    assert list(od.compare({"A": RIGHT, "B": od.Problem(RIGHT, data)}, data, draws=19).candidates) == ["A", "B"]


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([RIGHT],), {}, "at least two"),
        ((RIGHT,), {}, "list of models"),
        (([RIGHT, WRONG],), {"data": None}, "needs data"),
        (([RIGHT, "x"],), {}, "Models or Problems"),
        (([RIGHT, WRONG],), {"holdout": "first"}, "holdout"),
        (([RIGHT, WRONG],), {"level": 2}, "level"),
        (([RIGHT, WRONG],), {"draws": 3}, "draws"),
        (([RIGHT, WRONG],), {"method": od.Gpr()}, "Gpr"),
        (([RIGHT, od.Problem(WRONG, lotka_volterra.sample(0.1, 7))],), {}, "same ones"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, options, words):
    with pytest.raises(od.InputError, match=words) as error:
        od.compare(*arguments, **{"data": lotka_volterra.sample(0.1, 0)} | options)
    assert "\n" not in str(error.value)


def test_the_command_compares_optional_terms_and_says_how_many(tmp_path):
    (tmp_path / "lv.ode").write_text(f"{PREY} [- e*prey^2]\n{PREDATOR}\n0 < e < 10")
    data = lotka_volterra.sample(0.1, 0)
    rows = "\n".join(f"{t},{x},{y}" for t, (x, y) in zip(data.t, data.y, strict=True))
    (tmp_path / "d.csv").write_text(f"time,prey,predator\n{rows}\n")
    command = [sys.executable, "-c", "from odinfer.command.cli import main; main()", "compare"]
    done = subprocess.run(
        [*command, "lv.ode", "d.csv", "--set", "e=0:5", "-o", "out", "--draws", "19"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "make 2 candidates" in done.stderr
    assert "lv [no optional term] is preferred over lv [- e*prey^2]" in done.stdout
    assert (tmp_path / "out" / "comparison.html").exists()
    for wrong, words in ((["lv.ode"], "model files and then"), (["lv.ode", "d.csv", "--set", "q=0:1"], "'q'")):
        done = subprocess.run([*command, *wrong], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
