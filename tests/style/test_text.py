"""Words and numbers for people: tables line up, numbers have no padding, and no terminal obeys a name."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.style.text import TextTable, abbreviate, format_duration, format_number, format_with_error, printable

FEW = settings(max_examples=50, derandomize=True, deadline=None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"), (-0.0, "0"), (0.1 + 0.2, "0.3"), (123456.0, "1.2346e5"), (1.5e-7, "1.5e-7"), (-2e100, "-2e100"),
        (math.nan, "-"), (math.inf, "inf"), (-math.inf, "-inf"), (7, "7"),
    ],
)  # fmt: skip
def test_numbers_are_written_without_padding(value, text):
    assert format_number(value) == text


@FEW
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 15))
def test_a_number_keeps_so_many_digits_and_no_more(value, digits):
    text = format_number(value, digits)
    assert float(text) == float(f"{value:.{digits}g}")
    mantissa, _, exponent = text.partition("e")
    assert len(mantissa.lstrip("-").replace(".", "").lstrip("0")) <= digits
    assert not exponent.startswith(("+", "0", "-0"))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"), (1.234e-5, "1.2e-5 s"), (0.2, "0.2 s"), (1.04, "1 s"), (9.94, "9.9 s"), (9.96, "10 s"),
        (99.4, "99 s"), (130.0, "2 min"), (9000.0, "2.5 h"), (math.nan, "- s"),
    ],
)  # fmt: skip
def test_durations_are_in_units_that_people_use(seconds, words):
    assert format_duration(seconds) == words


@FEW
@given(st.text())
def test_plain_text_is_on_one_line_and_of_the_same_length(text):
    assert printable(text).isprintable()
    assert len(printable(text)) == len(text)
    assert text != printable(text) or text.isprintable()
    assert printable(printable(text)) == printable(text)


@FEW
@given(st.text(max_size=60), st.integers(4, 40))
def test_plain_text_is_cut_with_a_mark(text, most):
    cut = printable(text, most)
    assert len(cut) <= most
    if len(text) > most:
        assert cut == printable(text)[: most - 3] + "..."
    else:
        assert cut == printable(text)


def test_escape_sequences_of_terminals_lose_their_power():
    assert printable("\x1b[2J\r\nname\u202e") == "\N{REPLACEMENT CHARACTER}[2J  name\N{REPLACEMENT CHARACTER}"


CELLS = st.text(st.characters(codec="ascii"), max_size=45)


@FEW
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6))
def test_a_table_lines_up_whatever_is_in_it(rows):
    header, *body = TextTable(("name", "value", "verdict"), tuple(rows)).lines()
    rule, *body = body
    assert len(body) == len(rows)
    assert set(rule) == {"-"}
    assert len(rule) == max(map(len, [header, *body]))
    assert all(line.isprintable() and line == line.rstrip() for line in (header, *body))
    value, verdict = header.index("value") + len("value"), header.index("verdict")
    for line, row in zip(body, rows, strict=True):
        name, middle, last = (printable(*cell) for cell in zip(row, (24, 36, 24), strict=True))
        assert line.startswith(name.rstrip())
        assert line[:value].rstrip().endswith(middle.rstrip())
        assert line[verdict:] == last.rstrip()


def test_words_stand_left_and_numbers_right():
    table = TextTable(("parameter", "estimate", "verdict"), (("a", "1.5", "fine"), ("long name", "-10", "not")))
    assert table.lines() == [
        "parameter  estimate  verdict",
        "----------------------------",
        "a               1.5  fine",
        "long name       -10  not",
    ]


@FEW
@given(st.lists(st.text(min_size=1), max_size=12))
def test_few_names_are_all_shown_and_of_many_the_first_and_how_many_more(names):
    shown = list(abbreviate(names))
    assert len(shown) <= 6
    if len(names) <= 5:
        assert shown == names
    else:
        assert shown == [*names[:5], f"{len(names) - 5} more"]


def test_numbers_are_short():
    given = (1e-6, 12345.678, -0.0, np.nan, -np.inf, 1e22, 0.5)
    assert [format_number(v) for v in given] == ["1e-6", "12346", "0", "-", "-inf", "1e22", "0.5"]


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ((2.0187, 1.88, 2.1712), 0.07, ["2.019", "1.880", "2.171"]),
        ((4.04, 3.7, 4.4), 0.17, ["4.04", "3.70", "4.40"]),
        ((1.2, 0.9, math.inf), 0.3, ["1.20", "0.90", "inf"]),
        ((1e-6, 5e-7, 2e-6), 2e-7, ["1.00e-6", "0.50e-6", "2.00e-6"]),
        ((1234567.0, 1.2e6, math.nan), 2e4, ["1.235e6", "1.200e6", "-"]),
        ((0.012, -3.0, 3.0), 1.5, ["0.012", "-3.000", "3.000"]),
        ((0.0, -0.001, 1.0), 0.5, ["0.00", "0.00", "1.00"]),
        ((1.5, 2.0), math.nan, ["1.5", "2"]),
        ((math.nan, 2.0), 0.1, ["-", "2"]),
        ((4.3e-7, 0.0, 0.51034635), 0.18, ["4.3e-7", "0", "0.51"]),
    ],
)  # fmt: skip
def test_an_estimate_and_its_interval_have_the_same_digits(values, error, words):
    assert format_with_error(values, error) == words


@FEW
@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e9), st.lists(st.floats(allow_nan=True), max_size=3))
def test_numbers_that_belong_together_end_at_the_same_place(value, error, others):
    cells = format_with_error((value, value + error, value - error, *others), error)
    places = {cell.partition("e")[0].partition(".")[2] for cell in cells[:3]}
    assert len({len(place) for place in places}) == 1 or abs(value) < 1e-3 * error
    if "e" not in cells[0] or float(cells[0]):
        assert abs(float(cells[0]) - value) <= 0.5 * error + 1e-9 * abs(value)
