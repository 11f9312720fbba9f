"""Fits as the page shows them: plain data that JSON holds, the answer before the files, the same numbers as ever."""

import json

import pytest

import odinfer as od
from odinfer.apps.command.example import FOLDER
from odinfer.apps.studio.interactive import Source, choice_of
from odinfer.apps.studio.jobs import Order, answer, begin, run
from odinfer.errors import InputError

ROWS = b"time,x\n" + b"".join(b"%d,%.3f\n" % (i, 5 * 0.7**i + 0.01 * (-1) ** i) for i in range(12))


def test_a_fit_is_plain_data(lv_fit: od.Fit):
    begin()
    found = json.loads(json.dumps(answer(lv_fit), allow_nan=False))
    assert found["theta"] == pytest.approx(lv_fit.theta)
    assert found["intervals"]["likelihood"]["a"] == pytest.approx(lv_fit.interval()["a"])
    (curves,) = found["experiments"].values()
    assert {*curves["columns"]} == {*lv_fit.state_names}
    for column in curves["columns"].values():
        assert all(low <= y <= high for low, y, high in zip(column["low"], column["y"], column["high"], strict=True))
    assert len(curves["times"]) == len(curves["residuals"]["prey"]) == len(lv_fit.states)
    assert found["headline"] == "All equations are consistent with the data."


def test_the_answer_comes_before_the_files_and_intervals_go_on_from_it(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(ROWS)
    source, told = Source(path, choice_of({})), []
    made = [Order(kind, (("m", "x' = -k*x"),), source, "d.csv", tmp_path / kind) for kind in ("fit", "bootstrap")]
    for order in made:
        found = run(order, told.append)
        assert {"report.html", "fit.json", "m.ode", "d.csv", "command.txt", "fit.py"} <= {*found["files"]}
        assert all((order.folder / name).is_file() for name in found["files"])
    answers = [m["answer"] for m in told if "answer" in m]
    assert answers[0]["theta"] == answers[1]["theta"]
    assert "bootstrap" in answers[1]["intervals"]
    assert len(answers[1]["draws"]["bootstrap"]["k"]) == 200
    assert [*told[0]] == ["progress", "share"]


def test_what_cannot_have_intervals_says_why(tmp_path):
    source = Source(FOLDER / "lotka_volterra.csv", choice_of({"names": {"prey": "nothing"}}))
    with pytest.raises(InputError, match="'nothing', which the model does not have"):
        run(Order("fit", (("m", "prey' = a*prey"),), source, "d.csv", tmp_path), print)
