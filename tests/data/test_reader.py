"""Reading: other encodings, chosen times, other names, dates, and what a column that is missing gets told."""

import numpy as np
import pytest

import odinfer as od
from odinfer.data.reader import read_csv, read_table
from odinfer.errors import InputError, InputWarning

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
            "no column 'S'; columns found: 'A', 'B'; inputs need a column, and so does at least one state",
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


# --- errors by row, limits of detection, columns that may be absent


def with_errors(header: str) -> str:
    return wide(header, [(*row, 0.1 * (i + 1), "" if i == 2 else 2) for i, row in enumerate(ROWS)])


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("time,A,B,A_sd,sd_B", {}),
        ("time,A,B,A_SD,B_sd", {}),
        ("time,A,B,A_sd [mg],sd_B", {"states": ["A", "B"]}),
        ("time,A,B,err,B_sd", {"sd": {"A": "err"}}),
        ("time,A,B,A_sd,other", {"sd": {"B": "other"}, "states": ["A", "B"]}),
        ("time,a,B,e=1,B_sd", {"sd": {"A": "e=1"}, "columns": {"a": "A"}}),
        ("time,A,B,a sd,B_sd", {"columns": {"a sd": "A_sd"}}),
    ],
)
def test_errors_by_row_are_found_by_name_or_chosen(csv_file, header, options):
    (e,) = (data := read_csv(csv_file(with_errors(header)), **options)).experiments
    assert data.states == ("A", "B")
    np.testing.assert_allclose(e.sd, [[0.1, 2], [0.2, 2], [0.3, np.nan], [0.4, 2], [0.5, 2]])
    np.testing.assert_array_equal(e.y, np.array(ROWS)[:, 1:])


def test_a_column_that_is_asked_for_holds_no_errors(csv_file):
    data = read_csv(csv_file(with_errors("time,A,B,A_sd,B_sd")), ["A", "A_sd"], ["B", "B_sd"])
    assert (data.states, data.inputs, data.experiments[0].sd) == (("A", "A_sd"), ("B", "B_sd"), None)
    with pytest.warns(InputWarning, match="columns not used: 'B', 'B_sd'"):
        read_csv(csv_file(with_errors("time,A,B,A_sd,B_sd")), ["A"])


def test_long_files_have_errors_by_row(csv_file):
    rows = [(t, name, value, k + 1) for t, *row in ROWS for k, (name, value) in enumerate(zip("AB", row, strict=True))]
    data = read_csv(csv_file(wide("time,observable,value,SD", rows)))
    np.testing.assert_array_equal(data.experiments[0].sd, [[1, 2]] * 5)
    chosen = read_csv(csv_file(wide("time,observable,value,err", rows)), sd={"B": "err"})
    np.testing.assert_array_equal(chosen.experiments[0].sd, [[np.nan, 2]] * 5)


def test_an_observable_may_be_called_as_the_column_of_errors(csv_file):
    rows = [(t, name, value, 1) for t, *row in ROWS for name, value in zip(["sd", "B"], row, strict=True)]
    assert read_csv(csv_file(wide("time,observable,value,sd", rows))).states == ("sd", "B")


def test_errors_of_inputs_are_not_used(csv_file):
    with pytest.warns(InputWarning, match="columns not used: 'B_sd'"):
        data = read_csv(csv_file(with_errors("time,A,B,A_sd,B_sd")), inputs=["B"])
    assert (data.states, data.experiments[0].sd.shape) == (("A",), (5, 1))


def test_tables_remark_where_they_found_errors(csv_file):
    path = csv_file(with_errors("time,A,B,A_sd,sd_B"))
    assert read_table(path).remarks(["A", "B"]) == ["'A_sd', 'sd_B' hold standard deviations"]
    assert read_table(path).series(["A", "B"]) == {"A", "B"}
    assert read_table(path, sd={"A": "A_sd", "B": "sd_B"}).remarks(["A", "B"]) == []


def test_limits_of_detection_are_read_from_any_source(csv_file, tmp_path):
    pandas = pytest.importorskip("pandas")
    cells = {"time": [0, 1, 2, 3], "A": ["<0.05", 1, "> 100", None], "B": [1, 2, 3, "≤4"], "B_sd": [1, 1, None, 2]}
    frame = pandas.DataFrame(cells)
    frame.to_excel(tmp_path / "data.xlsx", index=False)
    frame.to_csv(tmp_path / "data.csv", index=False)
    for source in (frame, tmp_path / "data.xlsx", tmp_path / "data.csv"):
        (e,) = read_csv(source).experiments
        np.testing.assert_array_equal(e.y, [[0.05, 1], [1, 2], [100, 3], [np.nan, 4]])
        np.testing.assert_array_equal(e.limit, [[-1, 0], [0, 0], [1, 0], [0, -1]])
        np.testing.assert_array_equal(e.sd[:, 1], [1, 1, np.nan, 2])
    latin = "time;Größe [µg];Größe_sd [µg]\n0;<1;2\n1;3;4".encode("latin-1")
    with pytest.warns(InputWarning, match="Latin-1"):
        (e,) = read_csv(csv_file(latin)).experiments
    assert (e.limit.tolist(), e.sd.tolist()) == ([[-1], [0]], [[2], [4]])


def test_a_column_of_limits_only_is_observed(csv_file):
    data = read_csv(csv_file("time,A\n0,<1\n1,<1"))
    assert data.experiments[0].limit.tolist() == [[-1], [-1]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,1,0\n1,2,1", "line 2, column 'A_sd': the standard deviation must be positive, not 0.0"),
        ("0,1,1\n1,2,-1", "line 3, column 'A_sd': the standard deviation must be positive, not -1.0"),
        ("0,1,1\n1,2,few", "line 3, column 'A_sd': 'few' is not a finite number"),
        ("0,1,1\n1,<abc,1", "line 3, column 'A': '<abc' is no limit of detection"),
        ("<0,1,1\n1,1,1", "line 2, column 'time': '<0' is not a finite number"),
    ],
)
def test_wrong_errors_and_limits_are_refused_with_line_and_column(csv_file, rows, words):
    with pytest.raises(InputError, match=f"data.csv: {words}"):
        read_csv(csv_file(f"time,A,A_sd\n{rows}"))


def test_errors_of_what_was_not_observed_do_not_matter(csv_file):
    (e,) = read_csv(csv_file("time,A,A_sd\n0,1,1\n1,,0\n2,3,1")).experiments
    assert e.sd.tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("sd", "words"),
    [({"A": "er"}, "sd: there is no column 'er'; did you mean 'err'"), ({"C": "err"}, "sd: there is no column 'C'")],
)
def test_errors_that_are_not_there_cannot_be_chosen(csv_file, sd, words):
    with pytest.raises(InputError, match=words):
        read_csv(csv_file("time,A,err\n0,1,1"), sd=sd)


def test_names_that_may_be_absent_are_left_out(csv_file):
    path = csv_file(wide("time,A,cases"))
    data = read_csv(path, ["hidden", "A", "R", "cases"], optional=["hidden", "R", "A"])
    assert data.states == ("A", "cases")
    with pytest.raises(InputError, match="no column 'R'"):
        read_csv(path, ["hidden", "R"], optional=["hidden"])
    with pytest.raises(InputError, match="no column 'hidden'"):
        read_csv(path, ["hidden", "R"], optional=["hidden", "R"])
    with pytest.raises(InputError, match="no column 'u'"):
        read_csv(path, ["A", "cases"], ["u"], optional=["A"])
