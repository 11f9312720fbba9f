"""Roles: which column is the time and which marks experiments, by the names that people use."""

import pytest

from odinfer.data.column_roles import TIME_UNITS, Roles, find_roles, find_sd_columns
from odinfer.errors import InputError

CELLS = ["1", "1", "2"]


def found(*names: str, taken=(), time=None) -> Roles:
    return find_roles(dict.fromkeys(names, CELLS), taken, time)


@pytest.mark.parametrize(
    "name",
    [
        "t", "T", "time", "Time", "TIMES", "Year", "Days", "hour", "Weeks", "minutes", "Date", "time [h]",
        "Time (days)", "t[s]", "time_h", "time (min)", "Time.days", "time/s", "hours (h)", *TIME_UNITS,
    ],
)  # fmt: skip
def test_a_time_is_known_by_its_name_in_any_case_and_unit(name):
    assert found("x", name, "y").time == name


@pytest.mark.parametrize("name", ["times two", "timer", "lifetime", "time of day", "daylight", "ms", "x", "[h]"])
def test_other_names_are_no_times(name):
    assert found("x", name).time is None


def test_the_plain_name_wins_over_units_and_a_small_t_over_a_large_one():
    assert found("Year", "time", "Days").time == "time"
    assert found("T", "t").time == "t"
    assert found("Year", "T", taken=["T"]).time == "Year"


def test_two_units_are_not_told_apart_until_one_is_chosen_or_taken_as_a_state():
    with pytest.raises(InputError, match="'Year', 'week' may each be the time; choose by --time COLUMN"):
        found("Year", "x", "week")
    assert found("Year", "x", "week", time="week").time == "week"
    assert found("Year", "x", "week", taken=["week"]).time == "Year"


@pytest.mark.parametrize("name", ["experiment", "Condition", "subject", "Subject_ID", "ID", "id", "group"])
def test_experiments_are_marked_by_many_names(name):
    assert found("time", name, "x").experiment == name


def test_an_experiment_comes_before_a_subject_and_a_subject_before_a_group():
    assert found("t", "group", "subject", "experiment").experiment == "experiment"
    assert found("t", "group", "ID").experiment == "ID"
    assert found("t", "group", taken=["group"]).experiment is None


def test_an_id_that_never_repeats_counts_rows():
    columns = {"time": CELLS, "ID": ["1", "2", "3"], "group": ["a", "a", "b"]}
    assert find_roles(columns).experiment == "group"


def test_observable_and_value_go_together():
    assert found("time", "observable", "value")[2:4] == ("observable", "value")
    assert found("time", "observable", "x")[2:4] == (None, None)


def test_remarks_say_what_was_not_plain():
    assert found("time [h]", "experiment").remarks() == []
    assert found("Days", "ID").remarks() == ["the column 'Days' is taken as the time", "each 'ID' is an experiment"]


def test_errors_stand_beside_their_series_under_its_name():
    names = ["x", "y [mg]", "x_sd", "SD_y [mg]", "z_sd", "sd"]
    assert find_sd_columns(names, names) == {"x": "x_sd", "y [mg]": "SD_y [mg]"}
    assert find_sd_columns(["x"], ["y_sd"]) == {}
    with pytest.raises(InputError, match="'x_sd', 'sd_x' may each hold the errors of 'x'; choose by --sd x=COLUMN"):
        find_sd_columns(["x"], ["x_sd", "sd_x"])


def test_doses_are_told_by_amounts_in_any_case_and_unit():
    assert found("time", "x", "AMT (mg)", "Rate", "CMT").dosing == {"amt": "AMT (mg)", "rate": "Rate", "cmt": "CMT"}
    assert found("time", "x", "rate", "cmt").dosing == {}
    assert found("time", "x", "amt", "rate", taken=["amt"]).dosing == {}
    assert found("time", "x", "amt", "rate", taken=["rate"]).dosing == {"amt": "amt"}


def test_a_long_table_has_a_column_of_errors_and_an_observable_of_doses():
    columns = {"time": CELLS, "observable": ["x", "Dose", "x"], "value": CELLS, "sd": CELLS, "rate": CELLS}
    role = find_roles(columns)
    assert (role.sd, role.dose, role.dosing) == ("sd", "Dose", {"rate": "rate"})
    assert role.columns == set(columns)
    assert find_roles(columns, taken=["Dose", "sd"])[4:] == (None, None, {})
    assert found("time", "x", "sd").sd is None


WORDS = {"t": ["0", "1", "0", "1"], "x": ["1", "2", "3", "4"], "Strain": ["wild type", "wild type", "ΔacrB", "ΔacrB"]}


def test_a_column_of_words_that_tells_time_courses_apart_marks_experiments_and_it_is_said():
    roles = find_roles(WORDS, taken=["x"])
    assert roles.experiment == "Strain"
    assert "each 'Strain' is an experiment" in roles.remarks()


@pytest.mark.parametrize(
    ("change", "taken"),
    [
        ({}, ["prey"]),  # a long table whose words are the observables
        ({"t": ["0", "1", "2", "3"]}, ["x"]),  # one time course
        ({"Strain": ["1", "1", "2", "2"]}, ["x"]),  # numbers may be a covariate or another series
        ({"Strain": ["a", "b", "a", "b"]}, ["x"]),  # times still repeat
        ({"t": ["0", "0", "0", "1"], "Strain": ["a", "b", "c", "c"]}, ["x"]),  # a word of a single row is a remark
        ({"Medium": ["M9", "M9", "LB", "LB"]}, ["x"]),  # two columns that do
        ({"group": ["1", "1", "2", "2"]}, ["x"]),  # a usual name wins
    ],
)
def test_other_columns_of_words_do_not_mark_experiments(change, taken):
    assert find_roles(WORDS | change, taken).experiment in (None, "group")
