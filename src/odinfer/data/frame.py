"""Convert pandas DataFrames to tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odinfer.data.cells import cell_text
from odinfer.data.series import checked_names
from odinfer.data.table import Table
from odinfer.errors import InputError

if TYPE_CHECKING:
    import pandas


def frame_table(frame: pandas.DataFrame) -> Table:
    """The table in a DataFrame; an index that has a name, or holds dates, is a column."""
    if frame.empty:
        raise InputError("the DataFrame is empty")
    if frame.index.dtype.kind == "M" and frame.index.name is None:
        frame = frame.rename_axis("date")
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    names = checked_names(map(str, frame.columns), "column")
    columns = {}
    for i, name in enumerate(names):
        column = frame.iloc[:, i]
        pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
        columns[name] = ["" if missing else cell_text(value) for value, missing in pairs]
    return Table("DataFrame", range(len(frame)), columns, word="row")
