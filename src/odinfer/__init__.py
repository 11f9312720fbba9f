"""odinfer: from noisy time series and the equations of a model to parameters, states and a verdict.

This is the public API and nothing else. Nothing is loaded here: every name waits in its module until it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odinfer import systems as systems
    from odinfer.each.entry import fit_each as fit_each
    from odinfer.each.fits import Fits as Fits
    from odinfer.errors import InputError as InputError
    from odinfer.errors import InputWarning as InputWarning
    from odinfer.exchange.petab import read_petab as read_petab
    from odinfer.exchange.sbml import read_sbml as read_sbml
    from odinfer.methods import fit as fit
    from odinfer.methods.agm import Agm as Agm
    from odinfer.methods.fgpgm import Fgpgm as Fgpgm
    from odinfer.methods.gpr import Gpr as Gpr
    from odinfer.methods.odin import Odin as Odin
    from odinfer.methods.rkg import Rkg as Rkg
    from odinfer.methods.trajectory import Trajectory as Trajectory
    from odinfer.methods.two_step import TwoStep as TwoStep
    from odinfer.methods.vgm import Vgm as Vgm
    from odinfer.problem.data import Data as Data
    from odinfer.problem.data import Experiment as Experiment
    from odinfer.problem.dose import Dose as Dose
    from odinfer.problem.language.optional_terms import candidates as candidates
    from odinfer.problem.model import Model as Model
    from odinfer.problem.observe import Observe as Observe
    from odinfer.problem.problem import Problem as Problem
    from odinfer.problem.tables.read import read_csv as read_csv
    from odinfer.result.fit import Fit as Fit
    from odinfer.result.store.load import load as load
    from odinfer.selection.compare import Comparison as Comparison
    from odinfer.selection.compare import compare as compare
    from odinfer.trajectory.loglik import loglik as loglik
    from odinfer.trajectory.simulate import simulate as simulate
    from odinfer.version import __version__ as __version__

# Where the public names live; classes of methods are found by the names of their files.
_HOMES = {
    "each.entry": ("fit_each",),
    "each.fits": ("Fits",),
    "errors": ("InputError", "InputWarning"),
    "exchange.petab": ("read_petab",),
    "exchange.sbml": ("read_sbml",),
    "methods": ("fit",),
    "problem.tables.read": ("read_csv",),
    "problem.data": ("Data", "Experiment"),
    "problem.dose": ("Dose",),
    "problem.model": ("Model",),
    "problem.observe": ("Observe",),
    "problem.language.optional_terms": ("candidates",),
    "problem.problem": ("Problem",),
    "result.fit": ("Fit",),
    "result.store.load": ("load",),
    "selection.compare": ("Comparison", "compare"),
    "trajectory.loglik": ("loglik",),
    "trajectory.simulate": ("simulate",),
    "version": ("__version__",),
}


def _homes() -> dict[str, str]:
    methods = importlib.import_module("odinfer.methods")
    found = {methods.class_name(name): f"methods.{name.replace('-', '_')}" for name in methods.METHODS}
    return found | {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "systems":
        return importlib.import_module("odinfer.systems")
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None and name[0].isupper():  # what is not, may be a module that is about to be imported
        home = _homes().get(name)
    if home is None:
        raise AttributeError(f"module 'odinfer' has no attribute '{name}'")
    globals()[name] = value = getattr(importlib.import_module(f"odinfer.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes(), "systems"})
