"""Covariates in a table: columns that have one value per experiment, numbers or labels."""

from __future__ import annotations

from collections.abc import Sequence

from odinfer.data.cells import is_missing, is_number
from odinfer.data.table import UNUSED, Table
from odinfer.errors import InputError

Covariates = dict[str, dict[str, float | str]]


def split_covariates(table: Table, names: Sequence[str], kept: Sequence[str] = ()) -> tuple[Table, Covariates]:
    """Take columns out of a table, and their values: experiment → column → number or label.

    Args:
        names: the columns; those that the table does not have are left out.
        kept: columns that stay in the table as well, such as inputs.

    Raises:
        InputError: a value changes within an experiment.
    """
    if not any(name in table.columns for name in names):
        return table, {}
    role = table.roles(kept)
    present = [name for name in names if name in table.columns and name not in role.columns]
    marks = table.columns[role.experiment] if role.experiment else ["1"] * len(table.rows)
    found: Covariates = {}
    for name in present:
        for row, (mark, cell) in enumerate(zip(marks, table.columns[name], strict=True)):
            if is_missing(cell):
                continue
            value = float(cell) if is_number(cell) and "," not in cell else cell
            known = found.setdefault(mark, {}).setdefault(name, value)
            if known != value:
                where = f"{table.name}: {table.word} {table.rows[row]}, column '{name}'"
                shown = [f"{own:g}" if isinstance(own, float) else own for own in (known, value)]
                change = f"changes from {shown[0]} to {shown[1]} within '{mark}'"
                raise InputError(f"{where}: a covariate {change}; it has one value per subject")
    dropped = {name: UNUSED for name in present if name not in kept}
    return (table.with_columns(names=dropped) if dropped else table), found
