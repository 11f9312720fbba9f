"""`odinfer convert`: convert PEtab and SBML files to model text and CSV, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from odinfer.apps.command.flags import PETAB, SBML
from odinfer.errors import InputError
from odinfer.files import safe_name

if TYPE_CHECKING:
    from odinfer.problem.problem import Problem


def to_own(source: Path, folder: Path) -> list[str]:
    """Write a PEtab problem or an SBML model to a folder in our language; the names of the files.

    Nominal values become published.json, for `odinfer fit --truth`.

    Raises:
        InputError: the file is of another kind, or cannot be read.
    """
    name = safe_name(source.stem)
    if source.suffix.lower() in SBML:
        from odinfer.io.sbml_reader import read_sbml

        (folder / f"{name}.ode").write_text(str(read_sbml(source).text), "utf-8")
        return [f"{name}.ode"]
    if source.suffix.lower() not in PETAB:
        raise InputError(f"'{source}' is neither a PEtab problem (.yaml) nor an SBML model (.xml)")
    from odinfer.io.native_files import write_own
    from odinfer.io.petab_reader import nominal, read_petab

    files = write_own(read_petab(source), folder, name)
    values = nominal(source)
    if values:
        files.append(folder / "published.json")
        files[-1].write_text(json.dumps(values, indent=2) + "\n", "utf-8")
    return [path.name for path in files]


def to_petab(problem: Problem, folder: Path) -> list[str]:
    """Write a problem to a folder as PEtab; the names of the files."""
    from odinfer.io.petab_writer import write_petab

    return [path.name for path in write_petab(problem, folder)]
