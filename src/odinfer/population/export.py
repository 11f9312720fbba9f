"""A population fit as a netCDF file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from odinfer.files import replaced_file
from odinfer.result.formats.netcdf_format import Group

if TYPE_CHECKING:
    from odinfer.population.result import PopulationFit


def write_netcdf(fit: PopulationFit, path: Path) -> None:
    """Write estimates with errors and intervals by parameter, and individual parameters by subject and effect."""
    import h5netcdf

    table, individual = fit.table, fit.individual
    effects = list(fit.eta)
    ends = {"individual": "", "individual_low": "_low", "individual_high": "_high"}
    own = {name: individual[[e + end for e in effects]].to_numpy() for name, end in ends.items()}
    variables = {name: ("parameter", table[name].to_numpy(float)) for name in table}
    by_subject = {name: (("subject", "effect"), values) for name, values in (own | {"eta": fit.eta.to_numpy()}).items()}
    coords = {"parameter": list(table.index), "subject": list(fit.subjects), "effect": effects}
    named = {name: (name, np.array(values, object)) for name, values in coords.items()}
    numbers = {"loglik": fit.loglik, "loglik_error": fit.loglik_error, "focei": fit.focei, "laplace": fit.laplace}
    with replaced_file(path) as place, h5netcdf.File(place, "w") as file:
        Group({**variables, **by_subject}, named, {**numbers, "status": fit.status}).write(file)
