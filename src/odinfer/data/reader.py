"""Read any source of data (path, DataFrame, dictionary, Data) as a table or as `Data`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odinfer.data.covariates import split_covariates
from odinfer.data.csv_file import csv_table
from odinfer.data.data import Data
from odinfer.data.series import Names, quoted
from odinfer.data.table import Table
from odinfer.errors import InputError
from odinfer.files import readable

if TYPE_CHECKING:
    import pandas


def read_csv(
    source: str | Path | pandas.DataFrame,
    states: Names | None = None,
    inputs: Names = (),
    replicates: str = "keep",
    time: str | None = None,
    columns: Mapping[str, str] | None = None,
    sd: Mapping[str, str] | None = None,
    optional: Names = (),
    covariates: Names = (),
) -> Data:
    """Read a CSV or Excel file or a DataFrame, wide (a column per state) or long (time, observable and value).

    Both have a column of times (`time`, `t`, `Year`, `Days` or the like, with a unit in brackets or not; dates become
    days since the first, with a warning) and may have one that marks experiments (`experiment`, `condition`, `subject`,
    `id` or `group`). Commas, semicolons or tabs separate; empty cells, NA and NaN are missing values; blank lines and
    lines starting with # are skipped. A cell <0.05 or >100 is a limit of detection. A column `x_sd` or `sd_x` beside x
    (long: `sd`) has the standard deviations of its values. Doses are rows with an `amt` (and `cmt`, `rate`, `ii`,
    `addl`, `ss`, `evid`, `mdv` where given), or with the observable `dose`.

    Args:
        source: a file in UTF-8 or Latin-1, an .xlsx file (its first sheet), or a DataFrame.
        states: the columns (long: observables) to read; default: all that hold numbers.
        inputs: the columns (long: observables) that are known inputs.
        replicates: as for `Data`.
        time: the column that is the time, if it is none of the names above.
        columns: column or observable → its name here, such as {"height [cm]": "h", "Tree": "experiment"}.
        sd: state → the column with the standard deviations of its values.
        optional: those of `states` that may have no column; they are left out then.
        covariates: the columns with one value per experiment, numbers or labels, that models of populations use.

    Raises:
        InputError: naming row and column of what cannot be read.

    Example:
        >>> import pandas as pd
        >>> import odinfer as od
        >>> table = pd.DataFrame({"Days": [0, 7, 14], "height [cm]": [10.2, 14.1, 19.6], "Tree": "a"})
        >>> od.read_csv(table, time="Days", columns={"height [cm]": "h", "Tree": "experiment"})
        <Data: 1 experiment(s); observations: h (3); inputs: none>
    """
    table, found = split_covariates(read_table(source, time, columns, sd), covariates, inputs)
    return table.data(states, inputs, replicates, optional).with_covariates(found)


def read_table(
    source: Any,
    time: str | None = None,
    columns: Mapping[str, str] | None = None,
    sd: Mapping[str, str] | None = None,
) -> Table:
    """Read the source once, into a table from which data can be taken; see `read_csv`."""
    if isinstance(source, str | os.PathLike):
        name = str(source)[-100:]
        try:
            table = _table(name, readable(source).read_bytes())
        except (OSError, ValueError) as error:  # ValueError: an InputError, or a NUL in the path
            raise InputError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
        return table.with_columns(time, columns, sd)
    if not (hasattr(source, "iloc") and hasattr(source, "columns")):
        raise InputError(f"data are read from a file or a DataFrame, not from {quoted(type(source).__name__)}")
    from odinfer.data.frame import frame_table

    return frame_table(source).with_columns(time, columns, sd)


def _table(name: str, content: bytes) -> Table:
    if name.lower().endswith((".xlsx", ".xlsm")):
        from odinfer.data.excel_file import excel_table

        return excel_table(name, content)
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError("this is an Excel file or an archive; name it .xlsx, or save it as CSV")
    return csv_table(name, content)
