"""odinfer: from noisy time series and the equations of a model to parameters, states and a verdict.

This is the public API and nothing else. Only numpy is loaded here; JAX, SciPy, pandas and matplotlib wait until they
are used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from odinfer.errors import InputError as InputError
from odinfer.errors import InputWarning as InputWarning
from odinfer.methods import METHODS, class_name
from odinfer.methods import fit as fit
from odinfer.problem.data import Data as Data
from odinfer.problem.data import Experiment as Experiment
from odinfer.problem.model import Model as Model
from odinfer.problem.problem import Problem as Problem
from odinfer.problem.tables.read import read_csv as read_csv
from odinfer.result.fit import Fit as Fit
from odinfer.trajectory.simulate import simulate as simulate
from odinfer.version import __version__ as __version__

if TYPE_CHECKING:
    from odinfer import systems as systems
    from odinfer.methods.agm import Agm as Agm
    from odinfer.methods.fgpgm import Fgpgm as Fgpgm
    from odinfer.methods.gpr import Gpr as Gpr
    from odinfer.methods.odin import Odin as Odin
    from odinfer.methods.rkg import Rkg as Rkg
    from odinfer.methods.trajectory import Trajectory as Trajectory
    from odinfer.methods.two_step import TwoStep as TwoStep
    from odinfer.methods.vgm import Vgm as Vgm
    from odinfer.problem.optional_terms import candidates as candidates
    from odinfer.result.store.load import load as load
    from odinfer.selection.compare import Comparison as Comparison
    from odinfer.selection.compare import compare as compare

_LATER = {
    "systems": "odinfer.systems",
    "load": "odinfer.result.store.load",
    "candidates": "odinfer.problem.optional_terms",
    "compare": "odinfer.selection.compare",
    "Comparison": "odinfer.selection.compare",
    **{class_name(method): f"odinfer.methods.{method.replace('-', '_')}" for method in METHODS},
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'odinfer' has no attribute '{name}'")
    module = importlib.import_module(_LATER[name])
    return module if name == "systems" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
