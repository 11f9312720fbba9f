"""Inference methods, and `od.fit`. A new method is one module and one line in `MODULES`.

A method is a frozen dataclass whose fields are its options, with a `name`, `fit(problem, seed, progress) -> Fit` and
`paper(system)`; `quick()` if it is slow. The class is named after the method: "two-step" is TwoStep. The methods that
the paper compares with live in `odinfer.paper`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from odinfer.checks import checked_choice, checked_integer
from odinfer.errors import InputError, nearest
from odinfer.model.model import Model
from odinfer.problem.observables import need_fully_observed_gaussian, need_times
from odinfer.problem.problem import Problem
from odinfer.problem.resting import check_not_resting
from odinfer.problem.user_input import is_model
from odinfer.progress import Progress
from odinfer.style.progress_bar import shown_progress

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
    module = MODULES[checked_choice("method", name, METHODS)]
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
        need_fully_observed_gaussian(problem, name + " without refinement" * (method.name in _BY_TRAJECTORIES))


def fit(
    problem: Problem | Model | str | Path | Callable[..., Any],
    data: Any = None,
    method: Method | str | None = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
    *,
    bounds: Mapping[str, Any] | None = None,
    fixed: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    prior: Mapping[str, Any] | None = None,
    noise: Any = None,
    initial: Mapping[str, Any] | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    store: str | Path | None = None,
) -> Fit:
    """Infer parameters and states.

    Args:
        problem: the model: text such as "x' = -k*x", the path of an .ode file, a Model, or a function f(t, x, a, b);
            or a Problem, which has data of its own.
        data: a DataFrame, a dictionary of columns, the path of a CSV or Excel file, or `od.Data`.
        method: such as `od.Odin(refine=False)`, or a name such as "trajectory"; default: "odin".
        seed: random seed; the same seed gives the same answer.
        progress: True shows a bar (default in notebooks), False none; a function is called with (what, share done).
        bounds: parameter or state → (low, high), None where open; "x(0)" names the initial value of x, here and in the
            next three.
        fixed: parameter → value that is not estimated.
        start: parameter → start value of the search.
        prior: parameter → "normal(2, 0.5)" or a frozen distribution of scipy.stats.
        noise: a known standard deviation or a distribution such as "poisson", for all columns or by column.
        initial: state → its known initial value, or an expression such as "N - I(0)". `od.Problem` has these
            keywords and further ones (scale, local, events, observe).
        workers: number of processes for the start points; the answer is the same for any number.
        cluster: address of a Dask scheduler instead.
        store: a folder for finished start points; the same call resumes from it.

    Returns:
        The estimates with everything that can be computed from them; a `PopulationFit` if parameters vary by subject.
        A fit that fails says so in its `status`.

    Raises:
        InputError: what was given cannot be used.

    Example:
        >>> import odinfer as od
        >>> data = {"time": [0, 1, 2, 3, 4, 5], "x": [3.0, 1.9, 1.1, 0.7, 0.45, 0.25]}
        >>> fit = od.fit("x' = -k*x", data, bounds={"k": (0, 10)})
        >>> fit.status, fit.verdicts
        ('converged', {'x': 'consistent'})
        >>> print("k =", round(fit.theta["k"], 2), "from {:.2f} to {:.2f}".format(*fit.interval()["k"]))
        k = 0.49 from 0.46 to 0.51
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    keywords = {"bounds": bounds, "fixed": fixed, "start": start, "prior": prior, "noise": noise, "initial": initial}
    problem = _as_problem(problem, data, {name: value for name, value in keywords.items() if value is not None})
    seed = checked_integer("seed", seed)
    check_not_resting(problem)
    if problem.model.declarations.effects:
        from odinfer.population.fit import fit_population

        if method is not None or store is not None:
            raise InputError("a model with random effects has one method and no store; leave method and store out")
        # Callers inside the package have refused such models; others get what the docstring says.
        with shown_progress(progress) as tell:
            return cast("Fit", fit_population(problem, seed, tell, workers, cluster))
    chosen = _chosen_method(method)
    check_method(chosen, problem)
    # The matrices are small: threads inside BLAS cost more than they give. What leaves the floating-point numbers on
    # the way of a search shows in what it finds.
    quiet = np.errstate(over="ignore", divide="ignore", invalid="ignore")
    with threadpool_limits(1, user_api="blas"), quiet, shown_progress(progress) as tell:
        executor = _start_executor(chosen, workers, cluster, store)
        if problem.model.declarations.unknown:
            unknown = importlib.import_module("odinfer.methods.unknown")
            return cast("Fit", unknown.fit_unknown(chosen, problem, seed, tell, executor))
        return chosen.fit(problem, seed, tell, **executor)


def _chosen_method(method: Any) -> Method:
    """The method that a user passed: an instance, a name in any case, or nothing."""
    if isinstance(method, str) or method is None:
        return cast("Method", method_class((method or "odin").lower())())
    if isinstance(method, type) or not callable(getattr(method, "fit", None)):
        raise InputError('method must be a name such as "trajectory", or a method with its options: od.Odin(starts=20)')
    return cast("Method", method)


def _as_problem(given: Any, data: Any, keywords: dict[str, Any]) -> Problem:
    """The problem from a model and data, or from a Problem with entries that the keywords override."""
    if isinstance(given, Problem):
        if data is not None:
            raise InputError("fit(problem) takes no data of its own: they are in the Problem")
        for name in {*keywords} - {"noise", "initial"}:
            before = getattr(given, name)
            if callable(before):
                raise InputError(f"the Problem has a joint prior; give {name}= to the Problem instead of fit")
            keywords[name] = {**before, **keywords[name]} if isinstance(keywords[name], Mapping) else keywords[name]
        return replace(given, **keywords) if keywords else given
    if not is_model(given):
        raise InputError(
            f"fit takes equations as text, an .ode file, a Model, a function or a Problem, not {type(given).__name__}"
        )
    if data is None:
        raise InputError("fit needs data: od.fit(model, data) with a DataFrame, a file, a dictionary or Data")
    return Problem(given, data, **keywords)


def _start_executor(
    method: Method, workers: int | None, cluster: str | None, store: str | Path | None
) -> dict[str, Any]:
    """Who follows the starts, as an option of the method that has them."""
    if workers is None and cluster is None and store is None:
        return {}
    if method.name != "odin":
        raise InputError(f"workers, cluster and store are for the method odin, not {method.name}; leave them out")
    from odinfer.search.start_executor import StartExecutor

    return {"executor": StartExecutor(workers or 1, cluster, store)}
