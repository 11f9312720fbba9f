"""Inference methods and `fit`, the entry point. A new method is one module and one line in `MODULES`.

A method is a frozen dataclass whose fields are its options, with a `name`, `fit(problem, seed, progress) -> Fit` and
`paper(system)`; `quick()` if it is slow. The class is named after the method: "two-step" is TwoStep. The methods that
the paper compares with live in `odinfer.paper`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from odinfer.checks import choice, whole
from odinfer.data.data import Data
from odinfer.errors import InputError, nearest
from odinfer.model.model import Model
from odinfer.problem.observables import need_plain, need_times
from odinfer.problem.problem import Problem
from odinfer.progress import Progress

if TYPE_CHECKING:
    from odinfer.result.fit import Fit

# The module of every method by its name; the default first.
MODULES = {
    "odin": "methods.odin",
    "agm": "paper.agm",
    "fgpgm": "paper.fgpgm",
    "gpr": "methods.gpr",
    "rkg": "paper.rkg",
    "trajectory": "methods.trajectory",
    "two-step": "paper.two_step",
    "vgm": "paper.vgm",
}
METHODS = tuple(MODULES)
# Those that can go by trajectories alone, and so need not see every state.
_BY_TRAJECTORIES = ("odin", "trajectory")


class Method(Protocol):
    """A way to infer: options are fields of a frozen dataclass."""

    @property
    def name(self) -> str: ...

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit: ...


def class_name(method: str) -> str:
    """The class of a method: "two-step" is TwoStep."""
    return "".join(part.capitalize() for part in method.split("-"))


def method_class(name: str) -> Any:
    """The class of a method.

    Raises:
        InputError: no method has this name.
    """
    module = MODULES[choice("method", name, METHODS)]
    return getattr(importlib.import_module(f"odinfer.{module}"), class_name(name))


def preset(system: Any, presets: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The entry of one of the paper's systems, given as a System or by name; all sizes of Lorenz '96 share one.

    Raises:
        InputError: there is no entry for the system.
    """
    name = str(getattr(getattr(system, "model", system), "name", system))
    family = "lorenz96" if name.startswith("lorenz96") else name
    if family not in presets:
        raise InputError(f"the paper has no system '{name}'{nearest(name, presets)}")
    return presets[family]


def check_method(method: Method, problem: Problem) -> None:
    """Refuse what no method can do, and what the paper of a method cannot.

    Raises:
        InputError: states make events happen, or not every state is observed with Gaussian noise, which all but
            trajectory matching needs.
    """
    need_times(problem)
    alone = method.name in _BY_TRAJECTORIES and getattr(method, "refine", True)
    if method.name in METHODS and not alone:
        name = method.name if "-" in method.name else method.name.upper()
        need_plain(problem, name + " without refinement" * (method.name in _BY_TRAJECTORIES))


def fit(
    problem: Problem | Model,
    data: Data | None = None,
    method: Method | str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    store: str | Path | None = None,
) -> Fit:
    """Infer parameters and states.

    Args:
        problem: a Problem, or a Model together with `data`.
        data: the observations, if `problem` is a Model.
        method: a method such as `od.Odin(refine=False)`, or the name of one, such as "odin" or "trajectory"; ODIN with
            its default settings if not given.
        seed: of everything random; the same seed gives the same answer.
        progress: called with (what, share done), for example `print`.
        workers: where states are hidden or observed otherwise, and everything has bounds, so many processes follow the
            starts, chunk by chunk, with the same answer for any number; all at once in this process if not given.
        cluster: address of a Dask scheduler instead.
        store: a folder in which ends of starts last: the same call goes on from there after a kill.

    Returns:
        What was estimated, with all that goes on from there. A fit that does not work out says so in its `status`.

    Raises:
        InputError: what was given cannot be used.

    Example:
        >>> import odinfer as od
        >>> model = od.Model.from_text("x' = -k*x")
        >>> data = od.Data([0, 1, 2, 3, 4, 5], [3.0, 1.9, 1.1, 0.7, 0.45, 0.25], states=["x"])
        >>> fit = od.fit(model, data)
        >>> fit.status, fit.verdicts
        ('converged', {'x': 'consistent'})
        >>> print("k =", round(fit.theta["k"], 2), "from {:.2f} to {:.2f}".format(*fit.interval()["k"]))
        k = 0.49 from 0.46 to 0.51
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    if isinstance(problem, Model):
        if not isinstance(data, Data):
            raise InputError("fit needs data: fit(model, data) with data from od.Data(...) or od.read_csv(...)")
        problem = Problem(problem, data)
    elif not isinstance(problem, Problem):
        raise InputError(f"fit takes a Problem or a Model, not {type(problem).__name__}")
    elif data is not None:
        raise InputError("fit(problem) takes no data of its own: they are in the Problem")
    seed = whole("seed", seed)
    chosen: Method = method_class(method or "odin")() if method is None or isinstance(method, str) else method
    check_method(chosen, problem)
    # The matrices are small: threads inside BLAS cost more than they give. What leaves the floating-point numbers on
    # the way of a search shows in what it finds.
    with threadpool_limits(1, user_api="blas"), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return replace(chosen.fit(problem, seed, progress, **_crew(chosen, workers, cluster, store)), problem=problem)


def _crew(method: Method, workers: int | None, cluster: str | None, store: str | Path | None) -> dict[str, Any]:
    """Who follows the starts, as an option of the method that has them."""
    if workers is None and cluster is None and store is None:
        return {}
    if method.name != "odin":
        raise InputError(f"workers, cluster and store are for the method odin, not {method.name}; leave them out")
    from odinfer.search.start_executor import Crew

    return {"crew": Crew(workers or 1, cluster, store)}
