"""Write the actions of the page as a shell command and as a Python script that give the same numbers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from odinfer.files import safe_name
from odinfer.problem.problem import Problem


@dataclass(frozen=True)
class Choice:
    """What was chosen about the columns of a table; the flags --time, --map and --sd."""

    time: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # column → its name in the model
    sd: Mapping[str, str] = field(default_factory=dict)  # column or state → the column of its errors

    def flags(self) -> list[str]:
        found = ["--time", self.time] if self.time else []
        found += [word for old, new in self.names.items() for word in ("--map", f"{old}={new}")]
        return found + [word for name, of in self.sd.items() for word in ("--sd", f"{name}={of}")]


def model_file(name: str) -> str:
    return f"{safe_name(name)}.ode"


# Names of files that a job writes, which stand beside the data in a download.
_RESULTS = ("states", "comparison", "gamma", "command")


def data_file(name: str) -> str:
    """The name under which data are kept: what the user calls it, as far as that can be the name of a file.

    It differs from those of results.
    """
    path = PurePath(name.replace("\\", "/"))
    ending = path.suffix.lower() if path.suffix.lower() in (".xlsx", ".xlsm", ".tsv", ".txt") else ".csv"
    stem = f"{path.stem}-data" if path.stem.lower() in _RESULTS else path.stem
    return f"{safe_name(stem or 'data')}{ending}"


def fit_command(model: str, data: str, choice: Choice, kind: str | None) -> str:
    """The command that fits a model, or finds its intervals of some kind."""
    more = ["--uncertainty", kind] if kind else []
    return _join("fit", model_file(model), data_file(data), *choice.flags(), *more)


def discover_command(model: str, data: str, choice: Choice) -> str:
    """The command that searches for a missing term."""
    return _join("discover", model_file(model), data_file(data), *choice.flags())


def design_command(model: str, data: str, choice: Choice, add: int, first: float, last: float | None) -> str:
    """The command that plans further samples."""
    times = ["--times", f"{first:g}:{last:g}"] if last is not None else []
    return _join("design", model_file(model), data_file(data), *choice.flags(), "--add", str(add), *times)


def compare_command(models: Sequence[str], data: str, choice: Choice) -> str:
    """The command that compares models."""
    return _join("compare", *map(model_file, models), data_file(data), *choice.flags())


def _join(*words: str) -> str:
    return " ".join(shlex.quote(word) for word in ("odinfer", *words))


def fit_script(problem: Problem, data: str, choice: Choice, kinds: Sequence[str]) -> str:
    """The same in Python, with intervals of several kinds."""
    lines = ["import odinfer as od", "", *_read(problem, data, choice)]
    lines += [f"model = {_model(problem)}", "fit = od.fit(model, data, seed=0)"]
    for kind in kinds:
        if kind == "profile":
            lines += ["for name in fit.uncertainty.names:", "    fit = fit.including(fit.profile(name))"]
        else:
            lines += [f"fit = fit.including(fit.{kind}(seed=0))"]
    return "\n".join([*lines, "print(fit)", 'fit.save("fit.json")', ""])


def compare_script(problems: Sequence[Problem], data: str, choice: Choice) -> str:
    """A comparison in Python."""
    models = ",\n    ".join(_model(p) for p in problems)
    lines = ["import odinfer as od", "", *_read(problems[0], data, choice), f"models = [\n    {models},\n]"]
    return "\n".join([*lines, "found = od.compare(models, data, seed=0)", "print(found.summary())", ""])


def _model(problem: Problem) -> str:
    # Inputs that the text does not declare were found among the columns.
    text, inputs = str(problem.model.text), [*problem.model.inputs]
    more = f", inputs={inputs!r}" if inputs else ""
    if "\n" in problem.model.name or "[" in problem.model.name:
        return f"od.Model.from_text({text!r}, {problem.model.name!r}{more}, spare=True)"
    return f"od.Model.from_file({model_file(problem.model.name)!r}{more})"


def _read(problem: Problem, data: str, choice: Choice) -> list[str]:
    given: dict[str, Any] = {"states": [*problem.columns], "inputs": [*problem.model.inputs], "time": choice.time}
    given |= {"columns": dict(choice.names), "sd": dict(choice.sd)}
    words = [repr(data_file(data)), *(f"{key}={value!r}" for key, value in given.items() if value)]
    return [f"data = od.read_csv({', '.join(words)})"]
