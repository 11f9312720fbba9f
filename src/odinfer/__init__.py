"""odinfer: from noisy time series and the equations of a model to parameters, states and a verdict.

This is the public API and nothing else. Nothing is loaded here: every name waits in its module until it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odinfer.apps.each.entry import fit_each as fit_each
    from odinfer.apps.each.fits import Fits as Fits
    from odinfer.data.data import Data as Data
    from odinfer.data.data import Experiment as Experiment
    from odinfer.data.dose import Dose as Dose
    from odinfer.data.reader import read_csv as read_csv
    from odinfer.discovery.discover import discover as discover
    from odinfer.discovery.result import Discovery as Discovery
    from odinfer.errors import InputError as InputError
    from odinfer.errors import InputWarning as InputWarning
    from odinfer.io.petab_reader import read_petab as read_petab
    from odinfer.io.sbml_reader import read_sbml as read_sbml
    from odinfer.methods import fit as fit
    from odinfer.methods.gpr import Gpr as Gpr
    from odinfer.methods.odin import Odin as Odin
    from odinfer.methods.trajectory import Trajectory as Trajectory
    from odinfer.model.model import Model as Model
    from odinfer.model.optional_terms import candidates as candidates
    from odinfer.ode.simulate import simulate as simulate
    from odinfer.optimal_design.entry import design as design
    from odinfer.optimal_design.result import Design as Design
    from odinfer.paper import systems as systems
    from odinfer.paper.agm import Agm as Agm
    from odinfer.paper.fgpgm import Fgpgm as Fgpgm
    from odinfer.paper.rkg import Rkg as Rkg
    from odinfer.paper.two_step import TwoStep as TwoStep
    from odinfer.paper.vgm import Vgm as Vgm
    from odinfer.population.loglik import loglik as loglik
    from odinfer.population.result import PopulationFit as PopulationFit
    from odinfer.problem.observables import Observe as Observe
    from odinfer.problem.problem import Problem as Problem
    from odinfer.result.fit import Fit as Fit
    from odinfer.result.fit import FitResult as FitResult
    from odinfer.result.formats.load import load as load
    from odinfer.selection.compare import Comparison as Comparison
    from odinfer.selection.compare import compare as compare
    from odinfer.version import __version__ as __version__

# Where the public names live; classes of methods are found by the names of their files.
_HOMES = {
    "apps.each.entry": ("fit_each",),
    "apps.each.fits": ("Fits",),
    "discovery.discover": ("discover",),
    "discovery.result": ("Discovery",),
    "errors": ("InputError", "InputWarning"),
    "io.petab_reader": ("read_petab",),
    "io.sbml_reader": ("read_sbml",),
    "methods": ("fit",),
    "data.reader": ("read_csv",),
    "data.data": ("Data", "Experiment"),
    "data.dose": ("Dose",),
    "model.model": ("Model",),
    "problem.observables": ("Observe",),
    "model.optional_terms": ("candidates",),
    "problem.problem": ("Problem",),
    "result.fit": ("Fit", "FitResult"),
    "result.formats.load": ("load",),
    "selection.compare": ("Comparison", "compare"),
    "optimal_design.entry": ("design",),
    "optimal_design.result": ("Design",),
    "population.loglik": ("loglik",),
    "population.result": ("PopulationFit",),
    "ode.simulate": ("simulate",),
    "version": ("__version__",),
}


def _homes() -> dict[str, str]:
    methods = importlib.import_module("odinfer.methods")
    found = {methods.class_name(name): module for name, module in methods.MODULES.items()}
    return found | {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "systems":
        return importlib.import_module("odinfer.paper.systems")
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None and name[0].isupper():  # what is not, may be a module that is about to be imported
        home = _homes().get(name)
    if home is None:
        raise AttributeError(f"module 'odinfer' has no attribute '{name}'")
    globals()[name] = value = getattr(importlib.import_module(f"odinfer.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*_homes(), "systems"})
