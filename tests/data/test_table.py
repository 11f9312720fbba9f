"""Tables: long ones become wide without growing, and the rows of a source keep their numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.data.table import Table, _wide_rows, columns_from_rows
from odinfer.errors import InputError, InputWarning


def long_table(rows, header=("experiment", "time", "observable", "value")) -> Table:
    columns = {name: [str(row[i]) for row in rows] for i, name in enumerate(header)}
    return Table("table", range(len(rows)), columns)


codes = st.integers(0, 3)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(codes, codes, codes), min_size=1, max_size=30))
def test_every_value_of_a_long_table_has_a_cell_of_its_own_in_as_few_rows_as_possible(rows):
    group, time, kind = np.array(rows).T
    at = _wide_rows(group, time, kind)
    assert len({*zip(at, kind, strict=True)}) == len(rows)
    where = {row: {(g, t) for a, g, t in zip(at, group, time, strict=True) if a == row} for row in at}
    assert all(len(places) == 1 for places in where.values())
    most = {(g, t): max(rows.count((g, t, k)) for k in range(4)) for g, t, _ in rows}
    assert len({*at}) == sum(most.values())


def test_a_long_table_keeps_its_experiments_in_order_and_its_replicates():
    rows = [(e, t, o, t + k) for k in range(2) for e in "ba" for o in "xy" for t in range(3)]
    with pytest.warns(InputWarning, match="several values of 'x', 'y' at one time"):
        data = long_table(rows).data()
    assert [e.name for e in data.experiments] == ["b", "a"]
    np.testing.assert_array_equal(data.y[:, 0], [0, 1, 1, 2, 2, 3])
    np.testing.assert_allclose(data.t, [0, 0, 1, 1, 2, 2], atol=1e-8)


def test_a_long_table_that_would_be_nearly_empty_when_wide_is_refused():
    with pytest.raises(InputError, match="20000 observables at 20000 times are too many; name the states to read"):
        long_table([("1", i, f"o{i}", i) for i in range(20_000)]).data()
    with pytest.raises(InputError, match="5000 observables at 20000 times are too many; name the states to read"):
        long_table([("1", i, f"o{i // 4}", i) for i in range(20_000)]).data()
    with pytest.warns(InputWarning, match="columns not used"):
        assert long_table([("1", i, f"o{i // 4}", i) for i in range(20_000)]).data(["o7"]).n_observed("o7") == 4


def test_rows_keep_their_numbers_and_empty_ones_are_left_out():
    rows = [(2, ["time", "A", ""]), (3, ["", "", ""]), (5, ["0", "1", ""]), (9, ["1", "", ""])]
    assert columns_from_rows(iter(rows), "row") == ([5, 9], {"time": ["0", "1"], "A": ["1", ""]})
    with pytest.raises(InputError, match="row 10 has 2 cells; expected 3 as in the header"):
        columns_from_rows(iter([*rows, (10, ["1", "2"])]), "row")


def test_a_choice_leaves_the_table_as_it_was():
    table = long_table([("1", 0, "x", 1)])
    assert table.with_columns("time", {"x": "y", "time": "t"}).time == "t"
    assert table.columns["observable"] == ["x"]
    assert (table.series(), table.time) == ({"x"}, None)
