"""Excel files: read like the CSV file of the same table, and damaged ones are refused in one line."""

import datetime
import io
import subprocess
import sys
import warnings

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.data import excel_file
from odinfer.data.reader import read_csv
from odinfer.errors import InputError, InputWarning

ROWS = [("time", "A", "note"), (0, 1.5, "a"), (1, None, None), (2, 4, None), (3, 8.25, None), (4, 16, None)]


def saved(rows, more_sheets=()) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title in more_sheets:
        book.create_sheet(title)
    book.save(content := io.BytesIO())
    return content.getvalue()


@pytest.fixture
def sheet(tmp_path):
    def write(content):
        path = tmp_path / "data.xlsx"
        path.write_bytes(content if isinstance(content, bytes) else saved(content))
        return path

    return write


@pytest.mark.filterwarnings("ignore:columns not used")
@pytest.mark.parametrize("before", [[], [()], [("# by hand",), ()]], ids=["plain", "empty row", "comment"])
def test_a_sheet_is_read_like_a_csv_file(sheet, before):
    data = read_csv(sheet([*before, *ROWS, (None, None, None)]), ["A"])
    np.testing.assert_array_equal(data.t, [0, 2, 3, 4])
    np.testing.assert_array_equal(data.y[:, 0], [1.5, 4, 8.25, 16])


def test_dates_of_a_sheet_are_times(sheet):
    rows = [("Date", "A"), *((datetime.datetime(2020, 2, 27) + datetime.timedelta(days=i), i * i) for i in range(5))]
    with pytest.warns(InputWarning, match="'Date' holds dates, so time is in days since 2020-02-27"):
        assert read_csv(sheet(rows)).t.tolist() == [0, 1, 2, 3, 4]


def test_other_sheets_are_named_in_a_warning(sheet):
    with pytest.warns(InputWarning, match="only the first sheet 'Sheet' is read"):
        read_csv(sheet(saved([row[:2] for row in ROWS], ["Second"])))


@pytest.mark.filterwarnings("ignore:columns not used")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no Excel file that can be read"),
        (b"PK\x03\x04 but then no archive", "no Excel file that can be read"),
        ([], "the file is empty"),
        ([("time", "A")], "a header but no data"),
        ([*ROWS[:2], (1, "many", None), *ROWS[3:]], "row 3, column 'A': 'many' is not a finite number"),
        ([*ROWS, (5, 1, 2, 3)], "row 7 has 4 cells; expected 3"),
        ([*ROWS, (None, 1, 2)], "row 7 has no 'time'; fill it in or remove the row"),
    ],
    ids=["nothing", "no archive", "empty", "header", "text", "ragged", "no time"],
)
def test_refused_in_one_line_with_the_row(sheet, content, words):
    with pytest.raises(InputError, match=rf"data\.xlsx: .*{words}") as caught:
        read_csv(sheet(content))
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_unpacks_to_more_than_is_reasonable_is_refused(sheet, monkeypatch):
    path = sheet(ROWS)
    monkeypatch.setattr(excel_file, "_LARGEST", 1_000)
    with pytest.raises(InputError, match="too large; save as CSV"):
        read_csv(path)


WHOLE = saved([row[:2] for row in ROWS])


def quietly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # any other warning is still an error
        return read_csv(path)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=20))
def test_a_damaged_file_is_data_or_an_input_error(tmp_path_factory, at, damage):
    path = tmp_path_factory.mktemp("damaged") / "data.xlsx"
    path.write_bytes(WHOLE[:at] + damage + WHOLE[at + len(damage) :])
    try:
        outcome = repr(quietly(path))
    except InputError as error:
        outcome = str(error)
    assert len(outcome.splitlines()) == 1


def test_without_openpyxl_one_line_says_what_to_do(sheet):
    code = "import sys; sys.modules['openpyxl'] = None; import odinfer as od\n"
    code += "try: od.read_csv(sys.argv[1])\nexcept od.InputError as error: print(error)"
    run = subprocess.run([sys.executable, "-c", code, sheet(ROWS)], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("needs openpyxl: pip install 'odinfer[excel]', or save as CSV")
