"""CSV files: which are read alike, which are refused and in which words, and that what is written is read back."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odinfer.data.csv_file import spreadsheet_safe, write_csv
from odinfer.data.data import Data
from odinfer.data.reader import read_csv, read_table
from odinfer.errors import InputError, InputWarning
from odinfer.model.model import Model
from odinfer.problem.problem import Problem

NAN = np.nan
fuzz = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def assert_same(one: Data, other: Data) -> None:
    np.testing.assert_equal(*([d.states, d.inputs, [vars(e) for e in d.experiments]] for d in (one, other)))


def wide(rows, header="time,A,B", sep=",") -> str:
    return "\n".join([header.replace(",", sep), *(sep.join(map(str, row)) for row in rows)])


ROWS = [(0, 1, 2), (1, 2, 1), (2, 4, 0.5), (3, 8, 0.25), (4, 16, 0.125)]
PLAIN = wide(ROWS)


# --- reading: accepted


ACCEPTED = {
    "BOM": b"\xef\xbb\xbf" + PLAIN.encode(),
    "semicolons": wide(ROWS, sep=";"),
    "tabs": wide(ROWS, sep="\t"),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "CR": PLAIN.replace("\n", "\r"),
    "final newline": PLAIN + "\n",
    "comments and blank lines": "# by hand\n\n" + PLAIN.replace("\n", "\n# a, note; here\n \n") + "\n\n",
    "spaces": PLAIN.replace(",", " , ").replace("\n", " \n "),
    "quotes": PLAIN.replace("time,A,B", '"time", "A","B"').replace("16", '"16"'),
    "exponents and signs": PLAIN.replace("16", "+1.6E1").replace("0.125", ".125e0"),
    "lines of commas": PLAIN + "\n,,\n,,,,\n",
    "trailing comma in each line": PLAIN.replace("\n", ",\n") + ",",
}
for name in ("t", "T", "Time", "TIMES", "time [s]", "t (h)"):
    ACCEPTED[f"time column {name}"] = wide(ROWS, header=f"{name},A,B")


@pytest.mark.parametrize("case", ACCEPTED)
def test_read_alike(case, csv_file):
    rows = np.array(ROWS)
    assert_same(read_csv(csv_file(ACCEPTED[case])), Data(rows[:, 0], rows[:, 1:], states=["A", "B"]))


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "nan", " na "])
def test_missing_cells_are_not_observed(missing, csv_file):
    data = read_csv(csv_file(PLAIN.replace(",0.5", f",{missing}")))
    assert np.isnan(data.y[2]).tolist() == [False, True]


def test_states_choose_and_order_and_extra_columns_are_a_warning(csv_file):
    with pytest.warns(InputWarning, match="columns not used: 'A'"):
        assert read_csv(csv_file(PLAIN), states=["B"]).states == ("B",)
    assert read_csv(csv_file(PLAIN), states=["B", "A"]).states == ("B", "A")


def test_text_columns_are_ignored_with_a_warning(csv_file):
    noted = wide([(*row, "bad day" if i == 2 else "") for i, row in enumerate(ROWS)], "time,A,B,note")
    with pytest.warns(InputWarning, match="columns not used: 'note'"):
        assert read_csv(csv_file(noted)).states == ("A", "B")


def test_a_column_without_a_name_is_ignored_with_a_warning(csv_file):
    with pytest.warns(InputWarning, match="columns not used: ''"):
        assert read_csv(csv_file(wide([(i, *row) for i, row in enumerate(ROWS)], ",time,A,B"))).states == (
            "A",
            "B",
        )


@pytest.mark.parametrize("header", ["time,T,I", "t,T,I", "T,t,I"])
def test_capital_t_beside_a_time_column_is_a_state(header, csv_file):
    assert set(read_csv(csv_file(wide(ROWS, header))).states) == {"T", "I"}


def test_unsorted_rows_are_sorted_with_a_warning(csv_file):
    with pytest.warns(InputWarning, match="were sorted"):
        data = read_csv(csv_file(wide(ROWS[::-1])))
    assert_same(data, read_csv(csv_file(PLAIN)))


def test_an_input_column_is_an_input(csv_file):
    data = read_csv(csv_file(PLAIN), inputs=["B"])
    assert (data.states, data.inputs) == (("A",), ("B",))
    assert data.experiments[0].u["B"][1].tolist() == [2, 1, 0.5, 0.25, 0.125]


@pytest.mark.parametrize("column", ["experiment", "Condition"])
def test_experiments_are_groups_of_rows_and_observations_count_over_all(column, csv_file):
    rows = [(*row, name) for row in ROWS[:3] for name in ("low", "high")]
    data = read_csv(csv_file(wide(rows, f"time,A,B,{column}")))
    assert [e.name for e in data.experiments] == ["low", "high"]
    assert data.n_observed("A") == 6


def test_an_experiment_without_observations_is_left_out_with_a_warning(csv_file):
    rows = [("x", *row) for row in ROWS] + [("y", 0, "", "")]
    with pytest.warns(InputWarning, match="left out, as nothing is observed: 'y'"):
        assert len(read_csv(csv_file(wide(rows, "experiment,time,A,B"))).experiments) == 1


LONG = [(t, name, value) for k, name in ((1, "A"), (2, "B")) for t, value in ((row[0], row[k]) for row in ROWS)]


@pytest.mark.parametrize(
    "header",
    ["time,observable,value", "t,state,measurement", "Time,variable,Value", "time,observableId,measurement"],
)
def test_long_files_read_like_wide_ones(header, csv_file):
    assert_same(read_csv(csv_file(wide(LONG, header))), read_csv(csv_file(PLAIN)))


def test_long_files_have_experiments_inputs_and_extra_columns(csv_file):
    rows = [(name, *row, 0.1) for name in ("low", "high") for row in LONG]
    path = csv_file(wide(rows, "experiment,time,observable,value,noise"))
    with pytest.warns(InputWarning, match="columns not used: 'noise'"):
        data = read_csv(path, inputs=["B"])
    assert [e.name for e in data.experiments] == ["low", "high"]
    assert (data.states, data.inputs) == (("A",), ("B",))
    with pytest.warns(InputWarning, match="columns not used: 'noise', 'A'"):
        assert read_csv(path, states=["B"]).states == ("B",)


def test_sodium_is_an_observable_and_not_a_missing_one(csv_file):
    assert read_csv(csv_file(wide(LONG, "time,observable,value").replace("A", "Na"))).states == ("Na", "B")


def test_replicate_rows_are_averaged_on_request(csv_file):
    path = csv_file(wide([*ROWS, (4, 18, "")]))
    with pytest.raises(InputError, match=r"state 'A' has 2 values at time 4; .*--replicates mean"):
        read_csv(path, replicates="error")
    assert read_csv(path, replicates="mean").y[4].tolist() == [17, 0.125]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read_where_commas_do_not_separate(csv_file, separator):
    content = "time;A;note\n0,5;1,500;a, b\n1;<0,25;1,2,3\n2;;-\n".replace(";", separator)
    with pytest.warns(InputWarning) as said:
        data = read_csv(csv_file(content))
    assert any("decimal commas are read as points" in str(w.message) for w in said)
    assert data.experiments[0].t.tolist() == [0.5, 1.0]
    assert data.experiments[0].y.ravel().tolist() == [1.5, 0.25]


# --- reading: refused


REFUSED_FILES = {
    "empty": ("", "the file is empty"),
    "only comments": ("# nothing\n\n", "the file is empty"),
    "header only": ("time,A,B\n", "a header but no data"),
    "UTF-16": (PLAIN.encode("utf-16"), "save as UTF-8"),
    "UTF-16 without BOM": (PLAIN.encode("utf-16-le"), "save as UTF-8"),
    "no encoding of ours": ("time,Größe\n".encode("latin-1") + b"\x81", "save as UTF-8"),
    "Excel under another name": (b"PK\x03\x04" + PLAIN.encode(), "an Excel file"),
    "binary": (bytes(range(256)), "save as UTF-8"),
    "commas and points": ("time;A\n0;1,5\n1;2.3\n", "line 2, column 'A': '1,5' has a decimal comma; use points"),
    "perhaps thousands": ("time;A\n0;1,500\n1;2,300\n", "line 2, column 'A': '1,500' has a decimal comma"),
    "decimal commas in quotes": ('time,A\n0,"1,5"\n1,"2,3"\n', "line 2, column 'A': '1,5' has a decimal comma"),
    "no time column": ("A,B\n1,2\n", "no time column; name one 'time' or .*--time COLUMN.*columns found: 'A', 'B'"),
    "duplicate column": ("time,A,A\n0,1,2\n", "column 'A' is there twice"),
    "unprintable column": ("time,A\x07\n0,1\n", "cannot be a name"),
    "ragged row": (PLAIN + "\n5,1", "line 7 has 2 cells; expected 3"),
    "ragged after comments": ("#\n\n" + PLAIN + "\n5,1,2,3", "line 9 has 4 cells; expected 3"),
    "text cell": (
        PLAIN.replace("16", "high"),
        "line 6, column 'A': 'high' is not a finite number; leave it empty",
    ),
    "underscore": (PLAIN.replace("16", "1_6"), "'1_6' is not a finite number"),
    "infinite cell": (PLAIN.replace("16", "-Inf"), "line 6, column 'A': '-Inf' is not a finite number"),
    "overflow": (PLAIN.replace("16", "1e400"), "line 6, column 'A': '1e400' is not a finite number"),
    "empty time": (PLAIN.replace("\n2,", "\n,"), "line 4 has no 'time'"),
    "NaN time": (PLAIN.replace("\n2,", "\nNaN,"), "line 4 has no 'time'"),
    "text time": (PLAIN.replace("\n2,", "\nnoon,"), "line 4, column 'time': 'noon'"),
    "all missing": ("time,A\n0,\n1,NA\n", "all values are missing"),
    "no experiment name": (
        wide([(*row, "") for row in ROWS], "time,A,B,experiment"),
        "line 2 has no 'experiment'",
    ),
    "no observable name": ("time,observable,value\n0,,1\n", "line 2 has no 'observable'"),
    "unprintable observable": ("time,observable,value\n0,\x1b[31m,1\n", r"observable '\\x1b\[31m' cannot be a name"),
    "time only": ("time\n0\n", "no state column"),
    "spaces between columns": ("time A\n0 1\n", "no time column.*'time A'"),
    "enormous cell": ("time,A\n0," + "9" * 200_000, "'9{39}…' is not a finite number"),
    "long text": (PLAIN.replace("16", "x" * 1000), "column 'A': 'x{39}…' is not"),
    "text in a long file": (
        wide([*LONG, (5, "A", "?")], "time,observable,value"),
        "line 12, column 'A': '\\?'",
    ),
}


@pytest.mark.parametrize("case", REFUSED_FILES)
def test_file_refused_in_one_line_that_starts_with_its_name(case, csv_file):
    content, message = REFUSED_FILES[case]
    path = csv_file(content)
    with pytest.raises(InputError, match=message) as caught:
        read_csv(path)
    assert len(str(caught.value).splitlines()) == 1
    assert f"{path.name}: " in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no\.csv: No such file"):
        read_csv(tmp_path / "no.csv")
    with pytest.raises(InputError, match=r"[Dd]irectory"):
        read_csv(tmp_path)


def test_wanted_columns_that_are_missing_are_refused_with_the_nearest(csv_file):
    path = csv_file(wide(ROWS, "time,prey,predator"))
    with pytest.raises(InputError, match="no column 'pray'; did you mean 'prey'"):
        read_csv(path, states=["pray"])
    with pytest.raises(InputError, match="no column 'dose'; columns found: 'prey', 'predator'"):
        read_csv(path, inputs=["dose"])
    with pytest.raises(InputError, match="'prey' is both a state and an input"):
        read_csv(path, states=["prey", "predator"], inputs=["prey"])


# --- writing


def test_written_text_cannot_be_run_by_a_spreadsheet_and_numbers_are_untouched(tmp_path):
    path = tmp_path / "out.csv"
    names = np.array(["=1+1", "+a", "-b", "@c", " =d", "plain, with comma"])
    write_csv(path, {"=cmd()": names, "x": np.array([-1.5, 0.1, NAN, 1e-300, -0.0, 3]), "n": np.arange(-1, 5)})
    assert path.read_text().splitlines() == [
        "'=cmd(),x,n",
        "'=1+1,-1.5,-1",
        "'+a,0.1,0",
        "'-b,,1",
        "'@c,1e-300,2",
        "' =d,-0.0,3",
        '"plain, with comma",3.0,4',
    ]


def test_columns_of_different_lengths_and_unwritable_places_are_refused(tmp_path):
    with pytest.raises(InputError, match="differ in length"):
        write_csv(tmp_path / "out.csv", {"a": np.zeros(2), "b": np.zeros(3)})
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(InputError, match="cannot write"):
        write_csv(tmp_path / "nowhere" / "out.csv", {"a": np.zeros(2)})


# --- a table, from which data are taken


def test_a_file_is_read_once_and_gives_several_selections_of_data(csv_file):
    path = csv_file(wide([(*row, 7 - row[0]) for row in ROWS], "time,A,B,dose"))
    expected = read_csv(path, ["B"], ["A", "dose"]), read_csv(path, ["A", "B", "dose"])
    table = read_table(path)
    path.unlink()
    first, second, again = table.data(["B"], ["A", "dose"]), table.data(), table.data(["B"], ["A", "dose"])
    assert_same(first, expected[0])
    assert_same(second, expected[1])
    assert_same(again, first)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (PLAIN, {"A", "B"}),
        (wide(ROWS, "t [h],A,experiment"), {"A"}),
        (wide(ROWS, "A,B,C"), {"A", "B", "C"}),
        (wide(ROWS, "time,T,condition"), {"T"}),
        ("time,observable,value\n0,x,1\n0,y,2\n1,x,3", {"x", "y"}),
        ("time,experiment,state,measurement,note\n0,low,x,1,a\n0,high,y,2,b", {"x", "y"}),
        (wide(ROWS, "time,observable,B"), {"observable", "B"}),
    ],
    ids=["wide", "with experiments", "without time", "T beside time", "long", "long with more", "half long"],
)
def test_the_series_are_what_varies_over_time(csv_file, content, names):
    assert read_table(csv_file(content)).series() == names


def test_columns_have_a_cell_per_row_and_rows_know_their_lines(csv_file):
    table = read_table(csv_file("# note\n" + PLAIN.replace("\n", "\n\n")))
    assert table.rows == [4, 6, 8, 10, 12]
    assert {name: len(cells) for name, cells in table.columns.items()} == {"time": 5, "A": 5, "B": 5}
    assert table.columns["B"] == ["2", "1", "0.5", "0.25", "0.125"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"states": ["A", "C"]}, "line 6, column 'C': 'many'"),
        ({"states": ["D"]}, "no column 'D'"),
        ({"states": ["A", "A"]}, "'A' is there twice"),
        ({"states": ["A", "B"], "inputs": ["B"]}, "'B' is both"),
        ({"inputs": ["B", "B"]}, "'B' is there twice"),
        ({"states": ["A"], "inputs": ["B"], "replicates": "median"}, "unknown replicates"),
    ],
)
@pytest.mark.filterwarnings("ignore:columns not used")
def test_every_error_of_a_table_names_its_file(csv_file, options, words):
    content = wide([(*row, "many" if row[0] == 4 else 1) for row in ROWS], "time,A,B,C")
    with pytest.raises(InputError, match=rf"data\.csv: .*{words}"):
        read_table(csv_file(content)).data(**options)


# --- properties

finite = st.floats(allow_nan=False, allow_infinity=False)
cells = finite | st.just(NAN)
# Times that are not equal up to rounding and two columns (N, 3), with at least 4 of each column observed.
tables = st.lists(
    st.tuples(finite, cells, cells), min_size=5, max_size=12, unique_by=lambda row: f"{row[0] + 0.0:.9g}"
).map(lambda rows: np.array([*np.nan_to_num(rows[:4], nan=1.0), *rows[4:]]))


def quietly(call, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # any other warning is still an error
        return call(*args, **kwargs)


@fuzz
@given(tables)
def test_a_missing_cell_in_a_wide_file_is_a_missing_row_in_a_long_one(csv_file, table):
    rows = table.tolist()
    from_wide = quietly(read_csv, csv_file(wide(rows)), states=["A", "B"])
    long = [(ti, name, v) for ti, *row in rows for name, v in zip("AB", row, strict=True) if v == v]
    from_long = quietly(read_csv, csv_file(wide(long, "time,observable,value")), states=["A", "B"])
    assert_same(from_wide, from_long)


@fuzz
@given(tables)
def test_what_is_written_is_read_back_exactly(tmp_path, table):
    t, a, b = table.T
    write_csv(tmp_path / "data.csv", {"time": t, "A": a, "B": b})
    assert_same(quietly(read_csv, tmp_path / "data.csv"), quietly(Data, t, table[:, 1:], states=["A", "B"]))


@settings(fuzz, max_examples=25)
@given(st.text(), finite)
def test_harmless_leaves_numbers_alone_and_text_but_for_a_mark_in_front(text, value):
    assert spreadsheet_safe(text) in (text, "'" + text)
    assert not spreadsheet_safe(text).lstrip().startswith(("=", "+", "-", "@"))
    assert spreadsheet_safe(value) == value
    assert spreadsheet_safe(math.nan) is None


def reads_or_refuses(path: Path) -> None:
    try:
        outcome = repr(quietly(read_csv, path))
    except InputError as error:
        outcome = str(error)
    assert len(outcome.splitlines()) == 1


@fuzz
@given(st.binary(max_size=300))
def test_any_bytes_are_data_or_an_input_error(csv_file, content):
    reads_or_refuses(csv_file(content))


cell = st.sampled_from([*"0123x#é", "", "3.5", "-1e3", "nan", "inf", "1,5", '"', '"a,b"', "1e400", "\x85"])


@settings(fuzz, max_examples=300)
@given(
    st.lists(st.sampled_from(["time", "t", "A", "B", "experiment", "observable", "value", "", "#"]), max_size=5),
    st.lists(st.lists(cell, min_size=1, max_size=5), max_size=8),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_anything_like_a_table_is_data_or_an_input_error(csv_file, header, rows, sep, end):
    fitted = [(row * 5)[: max(len(header), 1)] for row in rows]
    reads_or_refuses(csv_file(end.join(sep.join(row) for row in [header, *fitted])))


@fuzz
@given(st.text(max_size=300))
def test_any_text_after_a_header_is_data_or_an_input_error(csv_file, text):
    reads_or_refuses(csv_file("time,A\n" + text))


MODEL = Model.from_text("A' = -k*A")
WHOLE = [
    PLAIN,
    wide([(e, *row) for e in "ab" for row in LONG], "experiment,time,observable,value"),
    wide([(f"2020-03-{i:02}", i * i, i % 2) for i in range(1, 12)], "Date,A,ID", sep=";"),
    wide([(0.3, 1), (0.1 + 0.2, 2), (1, -999), (2, 5), (2, 6), (3, 8)], "Days,A"),
]
PIECES = [
    *(
        ",",
        ";",
        "\t",
        '"',
        "\n",
        "\r",
        "#",
        "\x85",
        "\x1b[31m",
        "\u2028",
        "é",
        "\ufeff",
        "٣",
        "=1+1",
        "a" * 300,
        "9" * 400,
    ),
    *("NA", "inf", "1e400", "-999", "1,5", "1_0", "0x10", "12:30", "1e308", "-1e308", "1e-300", "1e15", "-0"),
    *("2020-01-01", "01/02/2020", "2020-01-01T00:00Z", "time", "T", "Year", "ID", "group", "observable", "value", "A"),
]
edits = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0, 0, 1, 2, 20]), st.sampled_from(PIECES)), min_size=1, max_size=10
)
options = st.sampled_from(
    [{}, {"states": ["A"]}, {"inputs": ["B"]}, {"time": "A"}, {"replicates": "mean"}, {"columns": {"A": "time"}}]
)


@settings(fuzz, max_examples=400)
@given(st.sampled_from(WHOLE), edits, options, st.sampled_from(["utf-8", "latin-1"]))
def test_a_damaged_table_is_data_or_an_input_error(csv_file, text, edits, options, encoding):
    for at, length, piece in edits:
        i = round(at * len(text))
        text = text[:i] + piece + text[i + length :]
    try:
        data = quietly(read_csv, csv_file(text.encode(encoding, "replace")), **options)
        outcome = repr(data)[:500]
        if "A" in data.states:
            Problem(MODEL, data)
    except InputError as error:
        outcome = str(error)
    assert outcome.isprintable()
    assert len(outcome) < 700
