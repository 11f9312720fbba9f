"""Reading: other encodings, chosen times, other names, dates, and what a column that is missing gets told."""

import numpy as np
import pytest

import odinfer as od
from odinfer.errors import InputError, InputWarning
from odinfer.problem.tables.read import read_csv, read_table

ROWS = [(0, 1, 2), (1, 2, 1), (2, 4, 0.5), (3, 8, 0.25), (4, 16, 0.125)]


def wide(header: str, rows=ROWS, sep=",") -> str:
    return "\n".join([header, *(sep.join(map(str, row)) for row in rows)])


def test_latin_1_is_read_with_a_warning(csv_file):
    path = csv_file(wide("Zeit [µs];Größe;T °C", sep=";").encode("latin-1"))
    with pytest.warns(InputWarning, match=r"data\.csv: the file is not in UTF-8 and was read as Latin-1"):
        data = read_csv(path, time="Zeit [µs]")
    assert data.states == ("Größe", "T °C")


def test_the_time_can_be_chosen_and_renamed(csv_file):
    path = csv_file(wide("A,when,time"))
    chosen = read_csv(path, time="when")
    assert (chosen.states, chosen.t.tolist()) == (("A", "time"), [1, 2, 4, 8, 16])
    renamed = read_csv(csv_file(wide("A,when,B")), columns={"when": "time"})
    assert (renamed.states, renamed.t.tolist()) == (("A", "B"), [1, 2, 4, 8, 16])
    both = read_csv(csv_file(wide("A,when,B")), time="when", columns={"when": "clock", "A": "a"})
    assert (both.states, both.t.tolist()) == (("a", "B"), [1, 2, 4, 8, 16])


def test_of_two_times_one_is_renamed_chosen_or_a_state(csv_file):
    path = csv_file(wide("Year,week,x"))
    assert read_csv(path, columns={"Year": "time"}).states == ("week", "x")
    assert read_csv(path, time="week").states == ("Year", "x")
    assert read_csv(path, ["week", "x"]).t.tolist() == [0, 1, 2, 3, 4]
    assert read_table(path).series(["week"]) == {"week", "x"}
    with pytest.raises(InputError, match=r"data\.csv: 'Year', 'week' may each be the time"):
        read_csv(path)


def test_columns_and_observables_get_other_names(csv_file):
    assert read_csv(csv_file(wide("time,height [cm],w=2")), columns={"height [cm]": "h", "w=2": "w"}).states == (
        "h",
        "w",
    )
    long = [(t, name, value) for t, *row in ROWS for name, value in zip("ab", row, strict=True)]
    data = read_csv(csv_file(wide("when,observable,value", long)), columns={"a": "prey", "b": "a", "when": "t"})
    assert data.states == ("prey", "a")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time": "tme"}, "time: there is no column 'tme'; did you mean 'time'"),
        ({"columns": {"C": "c"}}, "columns: there is no column 'C'; choose from: time, A, B"),
        ({"columns": {"A": "B"}}, "column 'B' is there twice"),
        ({"columns": {"A": " "}}, "cannot be a name"),
        (
            {"states": ["A", "S"]},
            "no column 'S'; columns found: 'A', 'B'; each state and input needs a column, as hidden",
        ),
        ({"states": ["A", "S"]}, r"to take another: --map 'COLUMN=S' \(in Python columns=\)"),
    ],
)
def test_wrong_choices_are_refused_with_the_right_ones(csv_file, options, words):
    with pytest.raises(InputError, match=rf"data\.csv: .*{words}") as caught:
        read_csv(csv_file(wide("time,A,B")), **options)
    assert len(str(caught.value)) < 400


def test_many_columns_are_not_all_listed(csv_file):
    with pytest.raises(InputError, match="'x7' and 292 more") as caught:
        read_csv(csv_file(wide(",".join(f"x{i}" for i in range(300)), [range(300)] * 5)))
    assert len(str(caught.value)) < 400


def test_dates_are_days_since_the_first_with_a_warning(csv_file):
    path = csv_file(wide("Date,A", [(f"2020-02-{26 + i}", i * i) for i in range(4)]))
    with pytest.warns(InputWarning, match="'Date' holds dates, so time is in days since 2020-02-26"):
        assert read_csv(path).t.tolist() == [0, 1, 2, 3]
    with pytest.raises(InputError, match=r"line 5, column 'Date': '2020-02-30' is not a date like '2020-02-27'"):
        read_csv(csv_file(wide("Date,A", [(f"2020-02-{27 + i}", i * i) for i in range(4)])))


@pytest.mark.parametrize("path", ["no\0where.csv", "x" * 5000, ""])
def test_paths_that_cannot_be_are_refused_in_one_line(path):
    with pytest.raises(InputError) as caught:
        read_csv(path)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400


def test_a_table_remarks_what_was_not_said(csv_file):
    path = csv_file(wide("Days,A,ID"))
    assert read_table(path).remarks() == ["the column 'Days' is taken as the time"]
    assert read_table(path, time="Days").remarks() == []


def test_it_is_public():
    assert od.read_csv is read_csv


def test_a_million_cells_are_exact(csv_file):
    values = np.random.default_rng(0).normal(size=(2_000, 50))
    rows = [(i, *row) for i, row in enumerate(values.tolist())]
    data = read_csv(csv_file(wide("time," + ",".join(f"x{i}" for i in range(50)), rows)))
    np.testing.assert_array_equal(data.y, values)
