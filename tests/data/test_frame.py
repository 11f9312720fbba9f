"""DataFrames: read like the CSV file that pandas makes of them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.data.frame import frame_table
from odinfer.data.reader import read_csv
from odinfer.errors import InputError, InputWarning

FRAME = pd.DataFrame({"time": np.arange(5), "A": [1.5, np.nan, 4, 8, 16], "B": pd.array([1, 2, None, 4, 5], "Int64")})


def test_numbers_of_any_type_are_read_and_missing_ones_stay_missing():
    data = read_csv(FRAME)
    assert data.states == ("A", "B")
    np.testing.assert_array_equal(data.y, FRAME[["A", "B"]].to_numpy(float, na_value=np.nan))


def test_an_index_with_a_name_or_with_dates_is_a_column():
    np.testing.assert_array_equal(read_csv(FRAME.set_index("time")).y, read_csv(FRAME).y)
    dated = FRAME.drop(columns="time").set_index(pd.date_range("2020-02-27", periods=5, freq="12h"))
    with pytest.warns(InputWarning, match="'date' holds dates, so time is in days since 2020-02-27"):
        assert read_csv(dated).t.tolist() == [0, 0.5, 1, 1.5, 2]


def test_experiments_and_other_names_work_as_for_files():
    frame = pd.concat([FRAME.assign(who="a"), FRAME.assign(who="b")])
    data = read_csv(frame, ["h", "B"], columns={"A": "h", "who": "experiment"})
    assert [e.name for e in data.experiments] == ["a", "b"]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame(), "the DataFrame is empty"),
        (FRAME.assign(A=["1", "2", "x", "4", "5"]), "DataFrame: row 2, column 'A': 'x' is not a finite number"),
        (FRAME.rename(columns={"A": "B"}), "column 'B' is there twice"),
        (FRAME.drop(columns="time"), "DataFrame: there is no time column"),
        (FRAME["A"], "from a file or a DataFrame, not from 'Series'"),
        ({"time": [1]}, "from a file or a DataFrame, not from 'dict'"),
    ],
    ids=["empty", "text", "twice", "no time", "Series", "dict"],
)
def test_refused_in_one_line(frame, words):
    with pytest.raises(InputError, match=words):
        read_csv(frame)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(allow_infinity=False), min_size=1, max_size=10))
def test_cells_are_exact(values):
    cells = frame_table(pd.DataFrame({"A": values})).columns["A"]
    np.testing.assert_array_equal([float(cell or "nan") for cell in cells], values)
