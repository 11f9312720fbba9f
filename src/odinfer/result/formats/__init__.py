"""File formats of fits, one module each with `write(fit, path)` and a line in FORMATS.

JSON loads back exactly (`load.py`, `validation.py`); netCDF is for xarray and ArviZ.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from odinfer.errors import InputError
from odinfer.files import replaced_file

if TYPE_CHECKING:
    from odinfer.result.fit import FitResult

# ending of the file → module
FORMATS = {".json": "json_format", ".nc": "netcdf_format"}


def write(fit: FitResult, path: str | Path) -> None:
    """Write a fit to a file whose name says the format; it is written whole or not at all.

    Raises:
        InputError: if the ending is an unknown one or the file cannot be written; an older file then stays as it was.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise InputError(f"cannot tell the format of '{path.name}'; the name must end in {' or '.join(FORMATS)}")
    with replaced_file(path) as temporary:
        importlib.import_module(f"{__name__}.{FORMATS[path.suffix]}").write(fit, temporary)
