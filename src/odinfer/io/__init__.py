"""Read and write SBML and PEtab by way of the model language.

What a file says becomes statements of a model and columns of data, so that everything that follows needs to know of
neither; what cannot be said is refused by name. `formula`: mathematics; `sbml`: a model; `tables`: what stands in the
tables of PEtab; `petab`: a problem. Imports from `observation` and what stands before it, and libsbml where it is asked
for.
"""

from __future__ import annotations

from typing import Any

from odinfer.errors import InputError


def libsbml() -> Any:
    """The library that reads and writes SBML, if it is installed."""
    try:
        import libsbml as found
    except ImportError:
        raise InputError("SBML and PEtab need python-libsbml: pip install 'odinfer[petab]'") from None
    return found
