"""Noise families of observed columns: one file per family, and one line in `FAMILIES`.

A family has arguments, the predicted value first: `normal(x, sd)`, `poisson(m)`. Its functions take observed values
and arguments as arrays that broadcast, and know nothing of models, problems or states. JAX is imported only when
needed.
"""

from odinfer.noise.binomial import Binomial
from odinfer.noise.family import Array, Family, Rows
from odinfer.noise.laplace import Laplace
from odinfer.noise.loglaplace import Loglaplace
from odinfer.noise.lognormal import Lognormal
from odinfer.noise.negbinomial import NegBinomial
from odinfer.noise.normal import Normal
from odinfer.noise.poisson import Poisson
from odinfer.noise.residuals import quantile_residuals
from odinfer.noise.student import Student

FAMILIES: dict[str, Family] = {
    "normal": Normal(),
    "lognormal": Lognormal(),
    "student": Student(),
    "laplace": Laplace(),
    "loglaplace": Loglaplace(),
    "poisson": Poisson(),
    "negbinomial": NegBinomial(),
    "binomial": Binomial(),
}

__all__ = ["FAMILIES", "Array", "Family", "Rows", "quantile_residuals"]
