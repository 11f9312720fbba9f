"""odinfer: from noisy time series and the equations of a model to parameters, states and a verdict.

Only numpy is loaded here; JAX, SciPy, pandas and matplotlib wait until they are used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from odinfer.data import Data as Data
from odinfer.data import Experiment as Experiment
from odinfer.data import read_csv as read_csv
from odinfer.errors import InputError as InputError
from odinfer.errors import InputWarning as InputWarning
from odinfer.fit import Fit as Fit
from odinfer.fit import fit as fit
from odinfer.methods import METHODS
from odinfer.model import Model as Model
from odinfer.problem import Problem as Problem
from odinfer.simulate import simulate as simulate

if TYPE_CHECKING:
    from odinfer import systems as systems
    from odinfer.comparison import Comparison as Comparison
    from odinfer.comparison import compare as compare
    from odinfer.methods.agm import Agm as Agm
    from odinfer.methods.fgpgm import Fgpgm as Fgpgm
    from odinfer.methods.gpr import Gpr as Gpr
    from odinfer.methods.odin import Odin as Odin
    from odinfer.methods.rkg import Rkg as Rkg
    from odinfer.methods.trajectory import Trajectory as Trajectory
    from odinfer.methods.two_step import TwoStep as TwoStep
    from odinfer.methods.vgm import Vgm as Vgm
    from odinfer.optional_terms import candidates as candidates
    from odinfer.store import load as load

__version__ = "0.1.0"

_LATER = {"load": "odinfer.store", "systems": "odinfer.systems", "candidates": "odinfer.optional_terms"}
_LATER |= {"compare": "odinfer.comparison", "Comparison": "odinfer.comparison"}
_LATER |= {cls: f"odinfer.methods.{module}" for module, cls in METHODS.values()}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'odinfer' has no attribute '{name}'")
    module = importlib.import_module(_LATER[name])
    return module if name == "systems" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
