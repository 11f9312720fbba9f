"""A model and a table become a problem, and what was understood is said."""

import pytest

from odinfer.data.csv_file import csv_table
from odinfer.data.table import UNUSED
from odinfer.errors import InputError
from odinfer.model.model import Model
from odinfer.problem.from_table import posed
from odinfer.problem.matching import observable

pytestmark = pytest.mark.filterwarnings("ignore:.*not used")  # of a table with more than the model asks for

ROWS = "\n".join(f"{i},{5 - i},{i * i},{0.1 * i}" for i in range(6))
TABLE = csv_table("d.csv", f"time,x,y,u\n{ROWS}".encode())


def model(text: str, inputs=()) -> Model:
    return Model.from_text(text, inputs=inputs)


def problem(text: str, table=TABLE, **more):
    notes: list[str] = []
    return posed(model(text), lambda given: model(text, given), table, notes, **more), notes


def test_columns_with_the_names_of_parameters_are_inputs_and_states_without_one_are_hidden():
    found, notes = problem("x' = -k*x + u + z\nz' = x - z")
    assert found.model.inputs == ("u",)
    assert found.columns == ("x",)
    assert any("'u' is a column" in note for note in notes)
    assert any("'z' has no column" in note for note in notes)


def test_what_is_said_about_a_parameter_keeps_it_one():
    assert problem("x' = -k*x + u", known={"set": {"u": (0, 1)}})[0].model.parameters == ("k", "u")


def test_what_columns_may_be_are_states_columns_with_distributions_and_definitions():
    assert observable(model("x' = -k*x\nhalf = x/2\ncases ~ poisson(x)")) == ("x", "cases", "half")


def test_a_column_can_be_left_out_so_that_another_takes_its_name():
    table = TABLE.with_columns(names={"x": UNUSED, "y": "x"})
    found, _ = problem("x' = -k*x", table)
    assert found.data.y[:, 0].tolist() == [0, 1, 4, 9, 16, 25]
    with pytest.raises(InputError, match="no column 'w'"):
        TABLE.with_columns(names={"w": UNUSED})


def test_an_observable_of_a_long_table_can_be_left_out():
    rows = "\n".join(f"{i},{name},{i}" for i in range(4) for name in ("x", "y"))
    table = csv_table("d.csv", f"time,observable,value\n{rows}".encode()).with_columns(names={"x": UNUSED})
    assert table.data().states == ("y",)
