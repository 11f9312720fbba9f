"""Options that several commands share, each declared once with its help text."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

KNOWN, DATA, HOW, OUT = "What is known beforehand", "What the data mean", "How to fit", "Output"
EACH, DESIGN = "Many series (--each), or many starts", "The design"


def option(flag: str, metavar: str, help: str, panel: str = KNOWN, **more: Any) -> Any:
    return typer.Option(*flag.split(), metavar=metavar, help=help, rich_help_panel=panel, show_default=False, **more)


Names = list[str] | None
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Equations: model.ode, SBML, or a whole PEtab problem.yaml.")
]
DataFile = Annotated[
    Path | None, typer.Argument(metavar="DATA", help="A CSV or Excel file: a column time and one per state.")
]
Debug = Annotated[bool, typer.Option("--debug", metavar="", help="Show the traceback of an error.")]
Kernel = Annotated[str | None, option("--kernel", "NAME", "Kernel of the Gaussian process; auto chooses it.", HOW)]
Seed = Annotated[int, option("--seed", "N", "Random seed; 0 if not given.", HOW, min=0)]
Quiet = Annotated[bool, option("--quiet -q", "", "Print warnings and errors only.", OUT)]

# What a problem is, beside its model and its data: name → (type, default, option).
_PROBLEM_OPTIONS: dict[str, tuple[Any, Any, Any]] = {
    "bounds": (Names, None, option("--bounds --set", "NAME=LOW:HIGH", "Bounds: a=0:100, a=0: or a=:5.")),
    "fixed": (Names, None, option("--fixed", "NAME=VALUE", "Fix a parameter at a value.")),
    "start": (Names, None, option("--start", "NAME=VALUE", "Start value of a parameter.")),
    "log": (Names, None, option("--log", "NAME", "Estimate a parameter on a log scale; it is positive then.")),
    "real": (Names, None, option("--real", "NAME", "A parameter of any sign; by default they are positive.")),
    "prior": (Names, None, option("--prior", "TEXT", 'A prior, such as "a~normal(2,0.5)" or "a~lognormal(1,0.3)".')),
    "sigma": (Names, None, option("--sigma", "NAME=VALUE", "Known standard deviation of the noise of a column.")),
    "input": (Names, None, option("--input", "NAME", "A column that is a known input u(t).", DATA)),
    "time": (str | None, None, option("--time", "COLUMN", "The column that is the time.", DATA)),
    "map": (Names, None, option("--map", "COLUMN=NAME", "Rename a column to its name in the model.", DATA)),
    "sd": (Names, None, option("--sd", "NAME=COLUMN", "Column that holds the standard deviations of another.", DATA)),
    "replicates": (
        str,
        "keep",
        option("--replicates", "keep|mean|error", "Values at the same time: keep, average, or refuse them.", DATA),
    ),
}


def with_problem_options(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the options of a problem in place of its argument `posed`, which gets their values by name."""
    signature = inspect.signature(command, eval_str=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [p.replace(kind=keyword) for p in signature.parameters.values()]
    options = [
        inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, words])
        for name, (kind, default, words) in _PROBLEM_OPTIONS.items()
    ]
    at = [p.name for p in own].index("posed")
    every = [*own[:at], *options, *own[at + 1 :]]

    @functools.wraps(command)
    def run(**given: Any) -> int:
        posed = {name: given.pop(name) for name in _PROBLEM_OPTIONS}
        return command(**given, posed=posed)

    del run.__wrapped__
    run.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in every} | {"return": int}
    return run
