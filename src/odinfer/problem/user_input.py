"""Convert what Python users pass as model, data and noise."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odinfer.checks import checked_positive
from odinfer.data.data import Data
from odinfer.data.reader import read_table
from odinfer.errors import InputError, InputWarning, nearest
from odinfer.model.expression import initial_name
from odinfer.model.model import Model
from odinfer.noise import FAMILIES
from odinfer.problem.matching import matched, observable
from odinfer.problem.observables import Observe

if TYPE_CHECKING:
    from odinfer.data.table import Table

_MODELS = 'text such as "x\' = -k*x", the path of an .ode file, a Model, or a function f(t, x, a, b)'
_DATA = "a DataFrame, a dictionary of columns, the path of a CSV or Excel file, or od.Data"


def is_model(value: Any) -> bool:
    """Whether a value can stand for a model."""
    return isinstance(value, str | os.PathLike | Model) or inspect.isroutine(value)


def as_model(value: Any, columns: Sequence[str] = ()) -> Model:
    """A model from text, the path of an `.ode` file, or a function f(t, x, a, b).

    Args:
        value: what the user passed.
        columns: of the data: the states of a function, which has no names for them.

    Raises:
        InputError: it is nothing of this kind.
    """
    if isinstance(value, Model):
        return value
    if isinstance(value, os.PathLike) or (isinstance(value, str) and re.fullmatch(r"[^'=\n]+\.ode", value.strip())):
        return Model.from_file(Path(value))
    if isinstance(value, str):
        return Model.from_text(value)
    if inspect.isroutine(value):
        return Model(
            value, states=tuple(columns), name=getattr(value, "__name__", "model").replace("<lambda>", "model")
        )
    raise InputError(f"a model is {_MODELS}, not {type(value).__name__}")


def as_table(value: Any) -> Table:
    """A table from a DataFrame, a dictionary of columns, or the path of a file.

    Raises:
        InputError: it is nothing of this kind.
    """
    if isinstance(value, Mapping):
        import pandas as pd

        try:
            value = pd.DataFrame(value)
        except ValueError as error:
            raise InputError(f"the columns of the data do not fit together: {error}") from None
    if isinstance(value, np.ndarray | Sequence) and not isinstance(value, str):
        raise InputError('data need names: {"time": t, "x": x}, a DataFrame, or od.Data(t, y, states=["x"])')
    if not (isinstance(value, str | os.PathLike) or (hasattr(value, "iloc") and hasattr(value, "columns"))):
        raise InputError(f"data are {_DATA}, not {type(value).__name__}")
    return read_table(value)


def as_model_and_data(model: Any, data: Any) -> tuple[Model, Data]:
    """Model and data from what the user passed; columns of a table get their roles from the model.

    Raises:
        InputError: either cannot be used.
    """
    if isinstance(data, Data):
        return as_model(model, data.states), data
    table = as_table(data)
    if inspect.isroutine(model):
        data = table.data(None, (), "keep", ())
        return as_model(model, data.states), data
    system = as_model(model)
    if system.text is None:
        names = observable(system)
        return system, table.data(names, system.inputs, "keep", optional=names)
    text, notes = system.text, list[str]()

    def with_inputs(found: Sequence[str]) -> Model:
        return Model.from_text(text, system.name, (*system.inputs, *found))

    system, data = matched(system, with_inputs, table, notes)
    for note in notes:
        warnings.warn(note, InputWarning, stacklevel=4)
    return system, data


def declared_initial_values(model: Model, names: Iterable[str]) -> str:
    """Statements that make initial values parameters: those named as "x(0)" by bounds, fixed, start, prior or scale."""
    own = [name for name in names if name not in model.parameters]
    initial = {initial_name(state) for state in model.states}
    return "\n".join(f"real {name}" for name in dict.fromkeys(own) if name in initial)


def read_noise(noise: Any, columns: Sequence[str]) -> tuple[dict[str, float], tuple[Observe, ...]]:
    """Known standard deviations and distributions from the keyword `noise`.

    Args:
        noise: a standard deviation or a distribution for every column, or either by column: 0.1, "poisson",
            {"prey": 0.1, "cases": "negbinomial"}, {"cases": "poisson(rho*I)"}.
        columns: of the data.

    Returns:
        column → standard deviation, and the columns with distributions.

    Raises:
        InputError: naming what cannot be used.
    """
    given = noise if isinstance(noise, Mapping) else dict.fromkeys(columns, noise)
    sds: dict[str, float] = {}
    observed = []
    for column, value in given.items():
        if column not in columns:
            raise InputError(f"noise: the data have no column '{column}'{nearest(str(column), columns)}")
        if isinstance(value, np.ndarray | Sequence) and not isinstance(value, str):
            remedy = f"for errors that differ by row, add a column '{column}_sd' to the data"
            raise InputError(f"noise of '{column}' must be one number or a distribution; {remedy}")
        if not isinstance(value, str):
            sds[column] = checked_positive(f"noise of '{column}'", value)
            continue
        family = value.partition("(")[0].strip()
        if family not in FAMILIES:
            close = nearest(family, FAMILIES) or f"; write {', '.join(FAMILIES)}"
            raise InputError(f"noise of '{column}': {value[:40]!r} is no known distribution{close}")
        observed.append(Observe(column, value if "(" in value else f"{family}({column})"))
    return sds, tuple(observed)
