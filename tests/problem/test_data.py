"""Data: what is accepted, what is refused, and in which words."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError, InputWarning
from odinfer.problem.csv_file import read_csv, write_csv
from odinfer.problem.data import Data

T = np.arange(5.0)
Y = np.column_stack([T**2, 1 - T])
NAN = np.nan
fuzz = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def csv_file(tmp_path: Path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "data.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def make(t=T, y=Y, states=("A", "B"), **kwargs) -> Data:
    return Data(t, y, states=states, **kwargs)


def assert_same(one: Data, other: Data) -> None:
    assert one.states == other.states
    assert one.inputs == other.inputs
    assert [e.name for e in one.experiments] == [e.name for e in other.experiments]
    for a, b in zip(one.experiments, other.experiments, strict=True):
        np.testing.assert_array_equal(a.t, b.t)
        np.testing.assert_array_equal(a.y, b.y)
        for name in a.u:
            np.testing.assert_array_equal(a.u[name], b.u[name])


def wide(rows, header="time,A,B", sep=",") -> str:
    return "\n".join([header.replace(",", sep), *(sep.join(map(str, row)) for row in rows)])


ROWS = [(0, 1, 2), (1, 2, 1), (2, 4, 0.5), (3, 8, 0.25), (4, 16, 0.125)]
PLAIN = wide(ROWS)


# --- from arrays


def test_arrays_are_copied_float64_and_read_only():
    t, y, u = np.arange(5), np.arange(10).reshape(5, 2), np.arange(5)
    data = make(t, y, inputs={"u": u})
    for array in (data.t, data.y, *data.experiments[0].u["u"]):
        assert array.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    t[0] = y[0, 0] = u[0] = 99
    assert (data.t[0], data.y[0, 0], data.experiments[0].u["u"][1][0]) == (0, 0, 0)


def test_data_are_frozen():
    with pytest.raises(AttributeError):
        make().states = ("B", "A")
    with pytest.raises(AttributeError):
        make().experiments[0].name = "x"


def test_data_survive_pickling():
    data = make(inputs={"u": T})
    assert_same(pickle.loads(pickle.dumps(data)), data)


def test_a_single_state_may_be_one_dimensional():
    assert make(T, T**2, ["A"]).y.shape == (5, 1)
    assert make(T, T**2, "A").states == ("A",)


def test_masked_and_none_values_are_not_observed():
    masked = np.ma.masked_equal([1, 2, 3, 4, 99], 99)
    assert make(T, masked, ["A"]).n_observed("A") == 4
    assert make(T, [1, 2, None, 4, 5], ["A"]).n_observed("A") == 4


def test_unsorted_times_are_sorted_with_a_warning_and_the_arrays_of_the_caller_stay():
    order = [3, 0, 4, 1, 2]
    t, y = T[order], Y[order]
    with pytest.warns(InputWarning, match="not increasing; they were sorted"):
        data = make(t, y)
    assert_same(data, make())
    np.testing.assert_array_equal(t, T[order])


def test_unobserved_rows_are_dropped_but_their_inputs_are_kept():
    y = Y.copy()
    y[2] = NAN
    data = make(y=y, inputs={"u": 10 * T})
    assert data.t.tolist() == [0, 1, 3, 4]
    assert data.experiments[0].u["u"][0].tolist() == T.tolist()


def test_an_input_may_have_its_own_times_in_any_order():
    with pytest.warns(InputWarning, match="input 'u'"):
        data = make(inputs={"u": ([2, 0], [5, 3])})
    assert data.inputs == ("u",)
    np.testing.assert_array_equal(data.experiments[0].u["u"], [[0, 2], [3, 5]])


def test_a_missing_input_value_is_no_sample():
    times, values = make(inputs={"u": [0, NAN, 2, 3, 4]}).experiments[0].u["u"]
    assert times.tolist() == values.tolist() == [0, 2, 3, 4]


def test_replicates_are_averaged_per_state_over_what_is_observed():
    t = [0, 1, 1, 2, 3]
    y = [[0, 0], [1, 5], [4, NAN], [2, 2], [3, 3]]
    data = make(t, y, replicates="mean")
    assert data.t.tolist() == [0, 1, 2, 3]
    assert data.y[1].tolist() == [2.5, 5]


def test_rows_at_one_time_with_different_states_are_no_replicates():
    t = [0, 1, 1, 2, 3]
    y = [[0, 0], [1, NAN], [NAN, 5], [2, 2], [3, 3]]
    data = make(t, y, inputs={"u": [0, 7, 7, 7, 7]})
    assert data.y[1].tolist() == [1, 5]
    assert data.experiments[0].u["u"][1].tolist() == [0, 7, 7, 7]


def test_the_mean_of_huge_replicates_is_finite():
    data = make([0, 1, 2, 3, 3], [1, 2, 3, 1.7e308, 1.7e308], ["A"], replicates="mean")
    assert data.y[3, 0] == 1.7e308


def test_a_constant_state_is_a_warning():
    with pytest.warns(InputWarning, match="'B' is constant: each observation is 3"):
        make(y=np.column_stack([T, np.full(5, 3.0)]))


def with_value(value, row=2, column=1):
    y = Y.copy()
    y[row, column] = value
    return y


REFUSED = {
    "t is not 1-D": ({"t": T[:, None]}, r"t has shape \(5, 1\)"),
    "y is 3-D": ({"y": Y[..., None]}, r"y \(5, 2, 1\); expected \(N,\) and \(N, 2\)"),
    "y is 1-D for two states": ({"y": T}, r"y \(5,\)"),
    "y is a number": ({"y": 1.0}, r"y \(\)"),
    "y is transposed": ({"y": Y.T}, r"y \(2, 5\).*a row per time"),
    "lengths differ": ({"t": T[:4]}, r"t has shape \(4,\) and y \(5, 2\)"),
    "a state without a column": ({"states": ["A", "B", "C"]}, r"\(N, 3\)"),
    "duplicate state": ({"states": ["A", "A"]}, "state 'A' is there twice"),
    "no states": ({"states": []}, "no state"),
    "empty name": ({"states": ["A", " "]}, "cannot be a name"),
    "name with a newline": ({"states": ["A", "B\nC"]}, r"'B\\nC' cannot be a name"),
    "name is a number": ({"states": ["A", 1]}, "state '1' cannot be a name"),
    "NaN time": ({"t": [0, 1, NAN, 3, 4]}, "t is nan in row 2"),
    "infinite time": ({"t": [0, 1, 2, 3, np.inf]}, "t is inf in row 4"),
    "infinite value": ({"y": with_value(-np.inf)}, "state 'B' is infinite in row 2"),
    "all missing": ({"y": Y * NAN}, "all values are missing"),
    "no rows": ({"t": [], "y": np.empty((0, 2))}, "all values are missing"),
    "one state never observed": (
        {"y": Y * [1, NAN]},
        "'B' is never observed; unobserved states are not supp",
    ),
    "three observations": ({"t": T[:3], "y": Y[:3]}, "'A' has too few observations: 3; 4 are needed"),
    "duplicate times": (
        {"t": [0, 1, 1, 2, 3]},
        'has 2 values at time 1; .*replicates="mean" or --replicates mean',
    ),
    "too few after averaging": ({"t": [0, 1, 2, 2, 2], "replicates": "mean"}, "too few observations: 3"),
    "unknown policy": ({"replicates": "men"}, "unknown replicates 'men'; did you mean 'mean'"),
    "text": ({"y": [["1", "2"]] * 5}, "y is not an array of numbers"),
    "complex": ({"y": Y + 0j}, "y is not an array of numbers"),
    "ragged": ({"y": [[1, 2], [3]]}, "y is not an array of numbers"),
    "huge integer": ({"t": [0, 1, 2, 3, 10**400]}, "t is not an array of numbers"),
    "input is a state": ({"inputs": {"A": T}}, "'A' is both a state and an input"),
    "input of another length": ({"inputs": {"u": T[:3]}}, r"t has shape \(5,\) and input 'u' \(3, 1\)"),
    "infinite input": ({"inputs": {"u": [0, 1, np.inf, 3, 4]}}, "input 'u' is infinite in row 2"),
    "empty input": ({"inputs": {"u": T * NAN}}, "input 'u' has no values"),
    "input with two values at a time": (
        {"inputs": {"u": ([0, 0], [1, 2])}},
        "input 'u' has 2 values at time 0",
    ),
    "input at no time": ({"inputs": {"u": ([0, NAN], [1, 2])}}, "t is nan in row 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line(case):
    arguments, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as caught:
        make(**arguments)
    assert len(str(caught.value).splitlines()) == 1


# --- several experiments, selection


def test_join_aligns_the_states_and_names_the_experiments():
    swapped = make(y=2 * Y[:, ::-1], states=["B", "A"])
    data = Data.join({"low dose": make(), "high dose": swapped})
    assert [e.name for e in data.experiments] == ["low dose", "high dose"]
    np.testing.assert_array_equal(data.experiments[1].y, 2 * Y)
    assert data.n_observed("A") == 10
    assert data.t is data.experiments[0].t
    assert data.y is data.experiments[0].y


def test_joined_data_can_be_joined():
    pair = Data.join({"a": make(), "b": make()})
    assert [e.name for e in Data.join({"x": pair, "y": make()}).experiments] == ["x/a", "x/b", "y"]


def test_join_refuses_other_states_other_inputs_and_nothing():
    with pytest.raises(InputError, match="experiment 'y' has not just 'A', 'B'"):
        Data.join({"x": make(), "y": make(states=["A", "C"])})
    with pytest.raises(InputError, match="'x', 'y' differ in their inputs"):
        Data.join({"x": make(), "y": make(inputs={"u": T})})
    with pytest.raises(InputError, match="no experiment"):
        Data.join({})


def test_select_orders_the_columns_and_drops_rows_without_observations():
    data = make(y=with_value(NAN))
    assert data.select(["B", "A"]).states == ("B", "A")
    assert data.select(["B"]).t.tolist() == [0, 1, 3, 4]
    np.testing.assert_array_equal(data.select(["B", "A"]).y, with_value(NAN)[:, ::-1])
    assert data.n_observed("B") == 4


def test_select_refuses_unknown_and_duplicate_states():
    with pytest.raises(InputError, match="'glucse'; did you mean 'glucose'"):
        make(states=["glucose", "B"]).select(["glucse"])
    with pytest.raises(InputError, match="choose from: A, B"):
        make().n_observed("zzz")
    with pytest.raises(InputError, match="twice"):
        make().select(["A", "A"])


def test_repr_is_one_readable_line():
    assert repr(make(inputs={"u": T})) == "<Data: 1 experiment(s); observations: A (5), B (5); inputs: u>"


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
    assert_same(read_csv(csv_file(ACCEPTED[case])), make(rows[:, 0], rows[:, 1:]))


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
        read_csv(path)
    assert read_csv(path, replicates="mean").y[4].tolist() == [17, 0.125]


# --- reading: refused


REFUSED_FILES = {
    "empty": ("", "the file is empty"),
    "only comments": ("# nothing\n\n", "the file is empty"),
    "header only": ("time,A,B\n", "a header but no data"),
    "UTF-16": (PLAIN.encode("utf-16"), "save as UTF-8"),
    "UTF-16 without BOM": (PLAIN.encode("utf-16-le"), "save as UTF-8"),
    "Latin-1": ("time,Größe\n".encode("latin-1"), "save as UTF-8"),
    "binary": (bytes(range(256)), "save as UTF-8"),
    "decimal commas": ("time;A\n0;1,5\n1;2,3\n", "line 2, column 'A': '1,5' has a decimal comma; use points"),
    "decimal commas in time": ("time;A\n0,5;1\n", "line 2, column 'time': '0,5' has a decimal comma"),
    "no time column": ("A,B\n1,2\n", "no time column; name one 'time' .*columns found: 'A', 'B'"),
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
    "duplicate times": (
        PLAIN.replace("\n3,", "\n2,"),
        "state 'A' has 2 values at time 2; .*--replicates mean",
    ),
    "three rows": (wide(ROWS[:3]), "'A' has too few observations: 3"),
    "all missing": ("time,A\n0,\n1,NA\n", "all values are missing"),
    "empty column": (wide([(*row, "") for row in ROWS], "time,A,B,C"), "'C' is never observed"),
    "no experiment name": (
        wide([(*row, "") for row in ROWS], "time,A,B,experiment"),
        "line 2 has no 'experiment'",
    ),
    "no observable name": ("time,observable,value\n0,,1\n", "line 2 has no 'observable'"),
    "time only": ("time\n0\n", "no state column"),
    "spaces between columns": ("time A\n0 1\n", "no time column.*'time A'"),
    "enormous cell": ("time,A\n0," + "9" * 200_000, "field larger than field limit"),
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
    with pytest.raises(InputError, match="no column 'dose'; choose from: prey, predator"):
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


# --- properties

finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def series(draw, missing=True):
    """Distinct times, shape (N,), and values, shape (N, 2), with at least 4 of each column observed."""
    t = draw(st.lists(finite, min_size=5, max_size=12, unique=True))
    cells = st.one_of(finite, st.just(NAN)) if missing else finite
    y = np.array(draw(st.lists(st.tuples(cells, cells), min_size=len(t), max_size=len(t))))
    y[:4] = np.where(np.isnan(y[:4]), [[1.0, -1.0]], y[:4])
    return np.array(t), y


def quietly(call, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # any other warning is still an error
        return call(*args, **kwargs)


@fuzz
@given(series(), st.randoms())
def test_the_order_of_the_rows_does_not_matter(drawn, random):
    t, y = drawn
    order = random.sample(range(len(t)), len(t))
    assert_same(quietly(make, t, y, inputs={"u": t}), quietly(make, t[order], y[order], inputs={"u": t[order]}))


@fuzz
@given(series(missing=False), st.randoms())
def test_the_order_of_replicates_does_not_matter(drawn, random):
    t, y = np.tile(drawn[0], 3), np.concatenate([drawn[1], drawn[1] / 3, drawn[1] / 7])
    order = random.sample(range(len(t)), len(t))
    one = quietly(make, t, y, replicates="mean")
    assert_same(one, quietly(make, t[order], y[order], replicates="mean"))
    assert (one.t[1:] > one.t[:-1]).all()


@fuzz
@given(series())
def test_a_missing_cell_in_a_wide_file_is_a_missing_row_in_a_long_one(csv_file, drawn):
    t, y = drawn
    rows = [(ti, *row) for ti, row in zip(t.tolist(), y.tolist(), strict=True)]
    from_wide = quietly(read_csv, csv_file(wide(rows)), states=["A", "B"])
    long = [(ti, name, v) for ti, *row in rows for name, v in zip("AB", row, strict=True) if v == v]
    from_long = quietly(read_csv, csv_file(wide(long, "time,observable,value")), states=["A", "B"])
    assert_same(from_wide, from_long)


@fuzz
@given(series())
def test_what_is_written_is_read_back_exactly(tmp_path, drawn):
    t, y = drawn
    write_csv(tmp_path / "data.csv", {"time": t, "A": y[:, 0], "B": y[:, 1]})
    assert_same(quietly(read_csv, tmp_path / "data.csv"), quietly(make, t, y))


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
