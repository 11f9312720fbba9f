"""Convert options and files of the command to a Problem and a Method; every error names the option."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odinfer.checks import checked_integer, checked_number, checked_positive
from odinfer.errors import InputError, nearest
from odinfer.files import readable
from odinfer.io import PETAB, SBML
from odinfer.style.text import printable

if TYPE_CHECKING:
    from odinfer.apps.studio.server import Opening
    from odinfer.data.table import Table
    from odinfer.methods import Method
    from odinfer.model.model import Model
    from odinfer.problem.problem import Problem


# What an option may ask for at most: more would fill the memory before it fails.
LIMITS = {"starts": 10_000, "grid": 1_000, "draws": 100_000}


def model_text(path: Path) -> str:
    """The equations in a file, also in one of SBML."""
    if path.suffix.lower() in SBML:
        from odinfer.io.sbml_reader import read_sbml

        return str(read_sbml(path).text)
    from odinfer.model.model import read_text

    return read_text(path)


def read_problem(model: Path, data: Path | None, flags: Mapping[str, Any], notes: list[str]) -> Problem:
    """Read the files, each once, and apply the flags that `fit` and `check` share."""
    from odinfer.model.model import Model
    from odinfer.problem.from_table import posed
    from odinfer.problem.matching import observable

    if model.suffix.lower() in PETAB:
        return _read_petab(model, data, flags)
    if data is None:
        raise InputError(f"'{model}' needs a data file beside it: odinfer fit {model.name} data.csv")
    text = model_text(model)

    def parsed(inputs: Sequence[str] = ()) -> Model:
        return Model.from_text(text, printable(model.stem), inputs)

    system = parsed()
    table = _read_table(data, {*system.parameters, *system.inputs, *observable(system)}, flags)
    rest = _prior_knowledge(flags), flags["replicates"]
    return posed(system, parsed, table, notes, flags["input"] or (), *rest)


def _read_petab(path: Path, data: Path | None, flags: Mapping[str, Any]) -> Problem:
    """The problem in a PEtab file, with what the flags say about its parameters."""
    from odinfer.io.petab_reader import read_petab
    from odinfer.problem.problem import Problem

    if data is not None:
        raise InputError(f"'{path}' is a PEtab problem, which has its own data; leave '{data}' out")
    for flag in ("input", "time", "map", "sd"):
        if flags[flag]:
            raise InputError(f"--{flag} is about a data file; a PEtab problem says this in its tables")
    found, k = read_petab(path), _prior_knowledge(flags)
    return Problem(found.model, found.data, k["set"], k["fixed"], k["prior"], k["sigma"], k["start"], k["scale"])


def read_candidates(models: Sequence[Path], data: Path, flags: Mapping[str, Any], notes: list[str]) -> list[Problem]:
    """A Problem per candidate; a flag about a name applies to those candidates that have it."""
    from odinfer.model.optional_terms import candidates
    from odinfer.problem.from_table import posed
    from odinfer.problem.matching import observable

    known, found = _prior_knowledge(flags), []
    texts = [(path, model_text(path)) for path in models]
    families = [(path, text, candidates(text, printable(path.stem))) for path, text in texts]
    everything = {n for _, _, family in families for m in family for n in (*m.parameters, *m.inputs, *observable(m))}
    for flag, values in (*known.items(), ("input", flags["input"] or ())):
        for name in values:
            if name not in everything:
                raise InputError(
                    f"--{flag.replace('set', 'bounds')}: no candidate has '{name}'{nearest(name, sorted(everything))}"
                )
    table = _read_table(data, everything, flags)
    for path, text, family in families:
        for i, model in enumerate(family):
            own = {*model.parameters, *observable(model)}
            mine = {flag: {n: v for n, v in values.items() if n in own} for flag, values in known.items()}
            inputs = [n for n in flags["input"] or () if n in (*model.parameters, *model.inputs)]

            def again(given: Sequence[str], path: Path = path, text: str = text, i: int = i) -> Model:
                return candidates(text, printable(path.stem), given)[i]

            found.append(posed(model, again, table, notes, inputs, mine, flags["replicates"]))
        if len(family) > 1:
            notes.append(f"the optional terms of '{path.name}' make {len(family)} candidates")
    return found


def _read_table(data: Path, known: Collection[str], flags: Mapping[str, Any]) -> Table:
    """The data file, with the time that was chosen and columns under the names that they have in the models."""
    from odinfer.data.reader import read_table
    from odinfer.problem.matching import ROLES

    names = _assignments("--map", "COLUMN=NAME", flags["map"], str.rpartition)
    sd = _assignments("--sd", "NAME=COLUMN", flags["sd"], str.partition)
    choices = sorted(known)
    for flag, given, allowed in (("--map", names.values(), [*choices, *ROLES]), ("--sd", sd, choices)):
        for name in given:
            if name not in allowed:
                raise InputError(f"{flag}: the model has no '{name}'{nearest(name, allowed)}")
    return read_table(data, flags["time"], names, sd)


def _assignments(
    flag: str, form: str, items: Iterable[str] | None, split: Callable[[str, str], tuple[str, str, str]]
) -> dict[str, str]:
    """Left → right of the assignments of a flag; the name of a column may hold the sign, so `split` is at its end."""
    found: dict[str, str] = {}
    for text in items or ():
        left, _, right = (part.strip() for part in split(text, "="))
        if not left or not right or left in found:
            raise InputError(f"{flag} names {left!r} twice" if left in found else f"{flag} takes {form}, not {text!r}")
        found[left] = right
    return found


def _prior_knowledge(flags: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the flags say is known beforehand: flag → name → value."""
    return {
        "set": {name: _interval(name, text) for name, text in _pairs("--bounds", flags["bounds"]).items()},
        **{flag: _numbers(f"--{flag}", flags[flag]) for flag in ("fixed", "start", "sigma")},
        "scale": {
            name.strip(): scale
            for flag, scale in (("log", "log"), ("real", "linear"))
            for text in flags[flag] or ()
            for name in text.split(",")
        },
        "prior": dict(_prior(text) for text in flags["prior"] or ()),
    }


def read_opening(files: Sequence[Path]) -> Opening:
    """What the studio begins with: a model, data, or both in this order."""
    from odinfer.apps.studio.server import Opening
    from odinfer.model.model import read_text

    rest = list(files)
    model = rest.pop(0) if rest and rest[0].suffix.lower() == ".ode" else None
    if len(rest) > 1:
        raise InputError("studio takes a model file (.ode), a data file, or both in this order")
    text = read_text(model) if model else None
    try:
        data = readable(rest[0]).read_bytes() if rest else None
    except OSError as error:
        raise InputError(f"{rest[0]}: {error.strerror}") from None
    return Opening(printable(model.stem) if model else "", text, printable(rest[0].name) if rest else "", data)


def read_method(name: str, paper: str | None, options: Mapping[str, Any]) -> Method:
    """The method; its options are the fields of its dataclass, which checks them."""
    from odinfer.methods import method_class

    cls = method_class(name)
    given = {key: value for key, value in options.items() if value is not None}
    known = {f.name for f in dataclasses.fields(cls)}
    for key in given:
        if key not in known:
            raise InputError(f"the method '{name}' has no option '{key}'{nearest(key, sorted(known))}")
    with contextlib.suppress(KeyError, ValueError):
        given["gamma"] = float(given["gamma"])
    if isinstance(given.get("gamma"), float) and given["gamma"] > 0:
        checked_positive("--gamma", given["gamma"])
    for key in given.keys() & LIMITS:
        checked_integer(f"--{key}", given[key], 1, LIMITS[key])
    method: Method = cls.paper(paper, **given) if paper else cls(**given)
    return method


def check_uncertainty(kind: str | None) -> None:
    """Refuse an unknown kind, or one that needs a package which is not there, before anything is computed."""
    from odinfer.uncertainty.results import KINDS

    if kind is not None and kind not in KINDS[1:]:
        raise InputError(f"--uncertainty: unknown kind '{kind}'{nearest(kind, KINDS[1:])}")
    if kind == "sample":
        from odinfer.sampling.nuts import import_blackjax

        import_blackjax()


def _pairs(flag: str, items: Iterable[str] | None) -> dict[str, str]:
    """name=value pairs of a flag, repeated or with commas in between."""
    found: dict[str, str] = {}
    for item in (part for text in items or () for part in text.split(",")):
        name, _, value = (part.strip() for part in item.partition("="))
        if not name or not value or name in found:
            raise InputError(
                f"{flag} names '{name}' twice" if name in found else f"{flag} takes name=value, not '{item}'"
            )
        found[name] = value
    return found


def _number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag}: '{text[:60]}' is not a number") from None


def _numbers(flag: str, items: Iterable[str] | None) -> dict[str, float]:
    return {name: _number(f"{flag} {name}", text) for name, text in _pairs(flag, items).items()}


def _interval(name: str, text: str) -> tuple[float | None, float | None]:
    low, _, high = (part.strip() for part in text.partition(":"))
    if ":" not in text or not (low or high):
        raise InputError(f"--bounds {name}: '{text}' is not an interval; write {name}=0:100, {name}=0: or {name}=:100")
    return _number(f"--bounds {name}", low) if low else None, _number(f"--bounds {name}", high) if high else None


def _prior(text: str) -> tuple[str, tuple[Any, ...]]:
    from odinfer.model.priors import two_numbers

    match = re.fullmatch(r"\s*([^~]*[^~\s])\s*~\s*(\w+)\s*\(([^,]+)(?:,([^,]+))?\)\s*", text)
    if not match:
        raise InputError(f"--prior takes text such as 'a~normal(2,0.5)', not '{text}'")
    name, family, *numbers = match.groups()
    values = two_numbers(family, [_number(f"--prior {name}", number) for number in numbers if number is not None])
    if len(values) != 2:
        raise InputError(f"--prior {name}: {family} takes two numbers, such as 'a~normal(2,0.5)', not '{text}'")
    return name, (family, *values)


def read_values(flag: str, text: str, known: Iterable[str]) -> dict[str, float]:
    """Values by name, from a=2,b=1 or from a JSON file, which may be a fit.json."""
    if "=" in text:
        values = _numbers(flag, [text])
    else:
        try:
            content = json.loads(readable(text).read_text("utf-8"))
            values = {name: float(value) for name, value in content.get("theta", content).items()}
        except OSError as error:
            raise InputError(f"{flag}: cannot read '{text}' ({error.strerror}); give a=2,b=1 or a JSON file") from None
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            raise InputError(f"{flag}: '{text}' is not a JSON file of numbers by name") from None
    for name, value in values.items():
        if name not in known:
            raise InputError(f"{flag}: the model has no '{name}'{nearest(name, known)}")
        checked_number(f"{flag}: the value of '{name}'", value)
    return values


def read_costs(texts: Sequence[str] | None) -> dict[str, float]:
    """Costs of --cost by column."""
    return _numbers("--cost", texts)


def read_times(text: str) -> Any:
    import numpy as np

    numbers = [checked_number("--times", _number("--times", part)) for part in re.split("[:,]", text)]
    if ":" not in text:
        return np.array(numbers)
    if len(numbers) != 3 or not (numbers[2].is_integer() and 2 <= numbers[2] <= 1e6):
        raise InputError(f"--times takes START:STOP:COUNT with a whole COUNT from 2 on, or a list; not '{text}'")
    return np.linspace(numbers[0], numbers[1], int(numbers[2]))
