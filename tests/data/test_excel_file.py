"""Excel files: read like the CSV file of the same table, and damaged ones are refused in one line."""

import datetime
import io
import re
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


WHOLE = saved([row[:2] for row in ROWS])


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


def changed(**parts: Callable[[str], str]) -> bytes:
    """An Excel file of which some parts are changed, and shared strings added if they are among them."""
    old = zipfile.ZipFile(io.BytesIO(WHOLE))
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    with zipfile.ZipFile(content := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name).decode()
            if name == "[Content_Types].xml":
                text = text.replace("</Types>", f'<Override PartName="/xl/strings.xml" ContentType="{kind}"/></Types>')
            new.writestr(name, parts.get(Path(name).stem, str)(text))
        head = '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        new.writestr("xl/strings.xml", parts.get("strings", str)(f"{head}</sst>"))
    return content.getvalue()


def cell(column: str, row: int) -> str:
    return f'<row r="{row}"><c r="{column}{row}"><v>1</v></c></row>'


END = "</sheetData>"
BOMBS = {
    "rows": (changed(sheet1=lambda xml: xml.replace(END, cell("A", 40_000_000) + END)), "rows beyond 1,048,576"),
    "columns": (
        changed(sheet1=lambda xml: xml.replace(END, "".join(cell("XFD", i) for i in range(7, 8007)) + END)),
        "row 7 has 16384 cells; expected 2",
    ),
    "header": (
        changed(sheet1=lambda xml: re.sub("<row.*</row>", "".join(cell("XFD", i) for i in range(1, 8001)), xml)),
        "the sheet is almost empty",
    ),
    "strings": (
        changed(strings=lambda xml: xml.replace("</sst>", "<si><t/></si>" * 1_000_000 + "</sst>")),
        "the file is too large; save as CSV",
    ),
    "XML": (changed(theme1=lambda xml: xml.replace("</", "<!--" + "a" * 30_000_000 + "--></", 1)), "is too large"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_stands_for_a_huge_sheet_is_refused_at_once(sheet, name):
    content, words = BOMBS[name]
    assert len(content) < 150_000
    path = sheet(content)
    clock = time.process_time()
    with pytest.raises(InputError, match=words):
        read_csv(path)
    assert time.process_time() - clock < 2.0


def test_strings_of_a_sheet_may_be_kept_apart(sheet):
    with_strings = changed(
        strings=lambda xml: xml.replace("</sst>", "<si><t>time</t></si><si><t>A</t></si></sst>"),
        sheet1=lambda xml: re.sub(
            "(<c [^>]*) t=.inlineStr.><is><t>(time|A)</t></is>",
            lambda m: f'{m[1]} t="s"><v>{["time", "A"].index(m[2])}</v>', xml),
    )  # fmt: skip
    assert repr(read_csv(sheet(with_strings))) == repr(read_csv(sheet(WHOLE)))


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
