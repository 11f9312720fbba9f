"""Read and write SBML and PEtab by way of the model language.

What a file says becomes statements of the model language and columns of data; what cannot be said is refused by name.
`sbml_reader.py` and `sbml_writer.py` are for models, `petab_reader.py`, `petab_tables.py` and `petab_writer.py` for
problems; `formula.py` and `infix.py` translate formulas. libsbml is imported only when needed.
"""

from __future__ import annotations

from typing import Any

from odinfer.errors import InputError

PETAB, SBML = (".yaml", ".yml"), (".xml", ".sbml")  # how the names of such files end


def libsbml() -> Any:
    """The library that reads and writes SBML, if it is installed."""
    try:
        import libsbml as found
    except ImportError:
        raise InputError("SBML and PEtab need python-libsbml: pip install 'odinfer[petab]'") from None
    return found
