"""Read an SBML file as a model."""

from __future__ import annotations

from pathlib import Path

from odinfer.io.formula import number
from odinfer.io.sbml_document import load_document
from odinfer.io.sbml_system import System, names_in, statements
from odinfer.io.sbml_translation import translate
from odinfer.model.model import Model


def read_sbml(path: str | Path) -> Model:
    """Read a model from an SBML file of level 1, 2 or 3.

    Its constant parameters are parameters that start from the values in the file; compartments and initial values are
    as they are there. Everything that has an identifier is a state, a parameter or a definition. `Model.text` has the
    equations in the model language.

    Raises:
        InputError: the file cannot be read, or has a construct that cannot be read, which is named.
    """
    path = Path(path)
    return model_of(translate(load_document(path), path.name, free=None), path)


def model_of(system: System, path: Path) -> Model:
    """The model of a translated file."""
    lines = [f"# read from {path.name}", *statements(system, system.definitions)]
    used = names_in(lines)
    for name, value in system.parameters.items():
        if value is not None:
            lines.append(f"start {name} = {number(value)}" if name in used else f"{name} = {number(value)}")
    return Model.from_text("\n".join([*lines, ""]), path.stem)
