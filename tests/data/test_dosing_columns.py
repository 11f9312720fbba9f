"""Doses in files: the convention of pharmacometrics, rows of a long file, and one line for what cannot be."""

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from odinfer.data.dose import Dose
from odinfer.data.dosing_columns import dosing
from odinfer.data.reader import read_csv, read_table
from odinfer.errors import InputError, InputWarning

PK = """ID,time,conc,AMT [mg],Cmt,rate,ii,addl,evid,mdv
1,0,.,100,1,0,12,2,1,1
1,1,5,.,2,,,,0,0
1,2,4,.,2,,,,0,0
2,-1,0.7,50,gut,25,0,0,1,0
2,1,2,0,2,,,,0,0
2,2,1,0,2,,,,0,1
2,4,3,,2,,,,2,0
2,5,3,,2,,,,,
"""


def given(data) -> dict[str, tuple[Dose, ...]]:
    return {e.name: e.doses for e in data.experiments}


def test_doses_are_read_in_the_convention_of_pharmacometrics(csv_file):
    data = read_csv(csv_file(PK))
    assert data.states == ("conc",)
    assert given(data) == {
        "1": (Dose(0, 100, "1"), Dose(12, 100, "1"), Dose(24, 100, "1")),
        "2": (Dose(-1, 50, "gut", 25),),
    }
    one, two = data.experiments
    assert (one.t.tolist(), one.y[:, 0].tolist()) == ([1, 2], [5, 4])
    assert (two.t.tolist(), two.y[:, 0].tolist()) == ([1, 5], [2, 3])  # evid or mdv silence the others
    assert read_table(csv_file(PK)).remarks()[-1] == "the column 'AMT [mg]' holds doses"


def test_a_row_may_give_a_dose_and_an_observation(csv_file):
    data = read_csv(csv_file("time,amt,x\n0,10,1\n1,,2\n2,5,3\n3,NA,\n"))
    assert data.experiments[0].doses == (Dose(0, 10), Dose(2, 5))
    assert data.y[:, 0].tolist() == [1, 2, 3]


def test_what_stands_in_the_cells_of_a_row_that_is_no_observation_is_ignored(csv_file):
    data = read_csv(csv_file("time,amt,mdv,x\n0,10,1,predose\n1,,0,<2\n2,,0,3\n"))
    assert data.y[:, 0].tolist() == [2, 3]
    assert data.experiments[0].limit[:, 0].tolist() == [-1, 0]


def test_columns_of_doses_mean_nothing_without_an_amount_and_what_the_model_names_is_none(csv_file):
    assert read_csv(csv_file("time,rate,ii\n0,1,2\n1,2,1\n2,4,3")).states == ("rate", "ii")
    path = csv_file("time,x,amt,rate\n0,1,2,3\n1,2,1,4\n2,4,3,5")
    assert read_csv(path).experiments[0].doses == (Dose(0, 2, None, 3), Dose(1, 1, None, 4), Dose(2, 3, None, 5))
    driven = read_csv(path, ["x", "rate"], ["amt"])
    assert (driven.states, driven.inputs, driven.experiments[0].doses) == (("x", "rate"), ("amt",), ())
    assert read_csv(path, ["x", "rate"]).experiments[0].doses == (Dose(0, 2), Dose(1, 1), Dose(2, 3))
    assert read_csv(csv_file("time,x,mg\n0,1,2\n1,2,\n2,4,3"), columns={"mg": "amt"}).experiments[0].doses[1].time == 2


LONG = "experiment,time,observable,value\na,0,dose,10\na,0,x,1\na,1,x,2\nb,0,x,1\nb,1,dose,20\nb,2,x,5\n"


def test_rows_of_a_long_file_are_doses(csv_file):
    data = read_csv(csv_file(LONG))
    assert (data.states, given(data)) == (("x",), {"a": (Dose(0, 10),), "b": (Dose(1, 20),)})
    assert read_table(csv_file(LONG)).series() == {"x"}
    with pytest.warns(InputWarning, match="not used: 'x'|is constant"):
        assert read_csv(csv_file(LONG), ["dose"]).states == ("dose",)
    sent = LONG.replace("value", "value,cmt,ii,addl").replace("dose,10", "dose,10,gut,5,1").replace("20", "20,gut,,")
    data = read_csv(csv_file("\n".join(line + "," * (6 - line.count(",")) for line in sent.split("\n"))))
    assert given(data) == {"a": (Dose(0, 10, "gut"), Dose(5, 10, "gut")), "b": (Dose(1, 20, "gut"),)}


def test_a_row_of_a_long_file_with_an_amount_needs_no_observable(csv_file):
    data = read_csv(csv_file("time,observable,value,amt\n-2,,,7\n0,x,1,\n1,x,2,3\n2,y,2,\n"))
    assert (data.states, data.experiments[0].doses) == (("x", "y"), (Dose(-2, 7), Dose(1, 3)))
    with pytest.raises(InputError, match="line 2 has no 'observable'"):
        read_csv(csv_file("time,observable,value,amt\n-2,,,\n0,x,1,7\n"))


def test_doses_at_dates_are_counted_from_the_first_of_all_dates(csv_file):
    path = csv_file("date,x,amt\n2020-03-01,,5\n2020-03-03,1,\n2020-03-04,2,\n")
    with pytest.warns(InputWarning, match="days since 2020-03-01"):
        data = read_csv(path)
    assert (data.t.tolist(), data.experiments[0].doses) == ([2, 3], (Dose(0, 5),))


def test_doses_come_from_frames_and_sheets(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"time": [0, 1, 2], "x": [None, 1, 2], "amt": [5, None, None], "cmt": [1, None, None]})
    frame.to_excel(tmp_path / "data.xlsx", index=False)
    for source in (frame, tmp_path / "data.xlsx"):
        assert read_csv(source).experiments[0].doses == (Dose(0, 5, "1"),)


REFUSED = {
    "a negative dose": ("0,-1,1,0,0,0,0", "line 2, column 'amt': the dose is -1; it must be positive, or empty"),
    "no number": ("0,much,1,0,0,0,0", "line 2, column 'amt': 'much' is not a finite number"),
    "a negative rate": ("0,1,1,-2,0,0,0", "line 2, column 'rate': -2 is negative; it is amount per time"),
    "a negative interval": ("0,1,1,0,-3,1,0", "line 2, column 'ii': -3 is negative; it is the time between doses"),
    "half a dose more": ("0,1,1,0,3,1.5,0", "line 2, column 'addl': 1.5 is not the number of further doses"),
    "fewer doses": ("0,1,1,0,3,-1,0", "line 2, column 'addl': -1 is not the number"),
    "no interval": ("0,1,1,0,,2,0", "line 2, column 'addl': 2 further doses need the time between them in a column ii"),
    "no state": ("0,1,,0,0,0,0", "line 2, column 'cmt': the dose has no state that it goes to"),
    "a reset": ("0,1,1,0,0,0,4", "line 2, column 'evid': 4 is not supported; 0 is an observation, 1 a dose"),
    "a dose of nothing": ("0,,1,0,0,0,1", "line 2, column 'evid': 1 is a dose, but no amount is given"),
    "doses without end": ("0,1,1,0,1,1e9,0", "there are more than 1,000,000 doses; check addl"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_dose_that_cannot_be_is_refused_in_one_line(case, csv_file):
    row, words = REFUSED[case]
    path = csv_file(f"time,amt,cmt,rate,ii,addl,evid,x\n{row},\n1,1,2,0,0,0,0,1\n2,,,,,,,2\n")
    with pytest.raises(InputError, match=f"data.csv: {words}") as caught:
        read_csv(path)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("1,dose,-5", "line 4, column 'dose': the dose is -5"),
        ("1,dose,x", "line 4, column 'dose': 'x' is not a finite number"),
        ("1,dose,", "line 4 has no 'value'"),
    ],
)
def test_so_is_one_of_a_long_file(row, words, csv_file):
    with pytest.raises(InputError, match=words):
        read_csv(csv_file(f"time,observable,value\n0,x,1\n1,x,2\n{row}\n"))


amounts = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=10)


@settings(deadline=None, max_examples=60)
@drawn(amounts)
def test_every_dose_is_there_as_often_as_said_and_nothing_else(rows):
    amount, addl, ii = np.array(rows, float).T
    t = np.arange(len(rows), dtype=float)
    found = dosing(t, amount, {"addl": [f"{n:g}" for n in addl], "ii": [f"{n:g}" for n in ii]}, lambda *_: "")
    expected = [(t[i] + k * ii[i], amount[i]) for i in range(len(rows)) if amount[i] for k in range(int(addl[i]) + 1)]
    assert [(dose.time, dose.amount) for dose in found.doses] == expected
    assert [t[row] <= dose.time for dose, row in zip(found.doses, found.rows, strict=True)] == [True] * len(expected)
    assert (found.given == (amount > 0)).all()
    assert not found.silent.any()


def test_a_dose_at_steady_state_has_the_time_between_doses(csv_file):
    data = read_csv(csv_file("time,x,amt,ii,ss,addl\n0,,10,12,1,1\n1,2,,,,\n5,1,,,,"), ["x"])
    assert data.experiments[0].doses == (Dose(0, 10, steady=12), Dose(12, 10))
    with pytest.raises(InputError, match="99 is not supported; 1 is a dose at steady state"):
        read_csv(csv_file("time,x,amt,ii,ss\n0,,10,12,99\n1,2,,,\n5,1,,,"), ["x"])
    with pytest.raises(InputError, match="needs the time between doses"):
        read_csv(csv_file("time,x,amt,ss\n0,,10,1\n1,2,,\n5,1,,"), ["x"])
