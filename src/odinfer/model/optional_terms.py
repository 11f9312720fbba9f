"""Candidate models from one text with optional terms in square brackets.

    prey' = a*prey [- e*prey^2] - b*prey*predator     # with and without the term: two candidates
    prey' = [a*prey | a*prey*(1 - prey/K)] - b*...    # one of several: a candidate each

All combinations are made. Declarations about names that a candidate does not use are left out of it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from odinfer.errors import InputError
from odinfer.model.expression import MAX_CHARACTERS, SHORT
from odinfer.model.model import Model

MOST = 64  # candidates of one text
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_AFTER_A_NAME = re.compile(r"(?<!\w)[^\W\d]\w*\[\s*[\w(][^\[\]|]*\]")  # as in x[t-1]


def candidates(text: str, name: str = "model", inputs: Sequence[str] = (), most: int = MOST) -> list[Model]:
    """The models of all combinations of the optional terms in a text; one model if there are none.

    Args:
        text: equations in which `[+ e*x]` is optional, and of `[a*x | a*x^2]` exactly one is taken.
        name: of the model; what was taken is added to it.
        inputs: as for `Model.from_text`.
        most: combinations at most.

    Raises:
        InputError: the brackets do not match, there are more than `most` combinations, or one cannot be read.

    Example:
        >>> import odinfer as od
        >>> [model.name for model in od.candidates("n' = r*n [*(1 - n/K)]", "growth")]
        ['growth [no optional term]', 'growth [*(1 - n/K)]']
    """
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        raise InputError(f"'{name}': equations are a text of at most {MAX_CHARACTERS} characters; shorten it")
    body = "\n".join(line.partition("#")[0] for line in re.split(r"\r\n?|\n", text.removeprefix("\ufeff")))
    for m in _AFTER_A_NAME.finditer(body):
        line = body.count("\n", 0, m.start()) + 1
        problem = "is no index: square brackets mark optional terms, which begin with their sign"
        raise InputError(f"line {line}: {SHORT.repr(m[0])} {problem}; write x [- e*x]")
    choices = [(m.start(), m.end(), _options(m[1])) for m in _CHOICE.finditer(body)]
    rest = _CHOICE.sub("", body)
    if "[" in rest or "]" in rest:
        raise InputError(f"'{name}': square brackets mark optional terms; they must come in pairs and not be nested")
    if not choices:
        return [Model.from_text(text, name, inputs)]
    count = 1
    for _, _, options in choices:
        if (count := count * len(options)) > most:
            raise InputError(f"the optional terms of '{name}' make more than {most} candidates; compare fewer at once")
    return [_choose(body, choices, picks, name, inputs) for picks in itertools.product(*(c[2] for c in choices))]


def _options(content: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in content.split("|"))
    return parts if len(parts) > 1 else ("", *parts)


def _choose(
    body: str, choices: list[tuple[int, int, tuple[str, ...]]], picks: tuple[str, ...], name: str, inputs: Sequence[str]
) -> Model:
    pieces, end = [], 0
    for (start, stop, _), pick in zip(choices, picks, strict=True):
        pieces += [body[end:start], pick]
        end = stop
    terms = "; ".join(" ".join(pick.split()) for pick in picks if pick) or "no optional term"
    return Model.from_text("".join([*pieces, body[end:]]), f"{name} [{terms}]", inputs, spare=True)
