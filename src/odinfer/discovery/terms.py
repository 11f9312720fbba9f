"""Candidate terms of equations: monomials, saturation, Hill functions, exponentials, sines, and inputs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.model.edit import unused_name
from odinfer.model.model import Model

Array = NDArray[np.float64]

_DEGREE = 3  # of monomials
_GRID = (0.1, 0.3, 1.0, 3.0)  # half-saturations and widths that are screened, in units of the variable's mean size
_MANY = 6  # states: from there on, products of three different states are left out
_POLYNOMIAL = re.compile(r"[\w^*]+")
_PARAMETER = re.compile(r"\bK\b")  # the inner parameter of a form


@dataclass(frozen=True)
class Term:
    """A candidate term, without its coefficient.

    Attributes:
        form: an expression of states and inputs, in which the inner parameter, if there is one, is called K.
        variable: the state or input that the inner parameter is measured in.
    """

    form: str
    variable: str | None = None

    @property
    def inner(self) -> bool:
        """Whether there is an inner parameter."""
        return self.variable is not None

    def named(self, taken: Collection[str]) -> tuple[str, str, str | None]:
        """The term with its coefficient, the coefficient's name and the inner parameter's, both not yet taken."""
        coefficient = unused_name("c", taken)
        inner = unused_name("K", {*taken, coefficient}) if self.inner else None
        return self.written(coefficient, inner), coefficient, inner

    def written(self, coefficient: str, inner: str | None) -> str:
        """The term with its coefficient and its inner parameter, if it has one."""
        if self.form == "1":
            return coefficient
        form = self.form[1:] if self.form.startswith("1/") else f"*{self.form}"
        return f"{coefficient}{form if inner is None else _PARAMETER.sub(inner, form)}"

    @property
    def unknowns(self) -> int:
        """Number of parameters that the term brings."""
        return 2 if self.inner else 1

    @property
    def polynomial(self) -> bool:
        """Whether the term is a product of powers."""
        return bool(_POLYNOMIAL.fullmatch(self.form))

    @property
    def complexity(self) -> tuple[int, int]:
        """Degree of a polynomial; other functions come after all of these, by their number of parameters."""
        if not self.polynomial:
            return _DEGREE + 1, self.unknowns
        powers = [int(power or 1) for power in re.findall(r"[^\W\d]\w*(?:\^(\d+))?", self.form)]
        return sum(powers), self.unknowns


def library(states: Sequence[str], inputs: Sequence[str] = (), positive: Collection[str] = ()) -> tuple[Term, ...]:
    """All candidate terms.

    Args:
        states, inputs: names.
        positive: those that are nowhere negative: only these saturate.
    """
    found = [Term("1")]
    for degree in range(1, _DEGREE + 1):
        for factors in itertools.combinations_with_replacement(states, degree):
            if len(states) < _MANY or len(set(factors)) < _DEGREE:
                found.append(Term(monomial(factors)))
    for x in states:
        found += [Term(f"sin({x})"), Term(f"cos({x})")]
    for x in (s for s in states if s in positive):
        found += [Term(f"{x}/(K + {x})", x), Term(f"{x}^2/(K^2 + {x}^2)", x), Term(f"1/(1 + ({x}/K)^2)", x)]
        found += [Term(f"exp(-{x}/K)", x)]
        for y in (s for s in states if s != x):
            found += [Term(f"{y}*{x}/(K + {x})", x), Term(f"{y}*{x}^2/(K^2 + {x}^2)", x)]
    for u in inputs:
        found += [Term(u), *(Term(f"{u}*{x}") for x in states)]
    return tuple(found)


def monomial(factors: Sequence[str]) -> str:
    """A product of names as an expression, such as "x^2*y"."""
    powers = {name: list(factors).count(name) for name in dict.fromkeys(factors)}
    return "*".join(name if n == 1 else f"{name}^{n}" for name, n in powers.items())


@dataclass(frozen=True, eq=False)
class Features:
    """The values of all terms at given points, for screened values of their inner parameters.

    Attributes:
        terms: of every column.
        inner: the value of the inner parameter in every column; NaN where there is none.
        values: (M, columns).
    """

    terms: tuple[Term, ...]
    inner: Array
    values: Array

    @staticmethod
    def of(
        terms: Sequence[Term],
        states: Sequence[str],
        x: Array,
        inputs: Sequence[str],
        u: Array,
        sizes: Mapping[str, float],
    ) -> Features:
        """Evaluate the terms at states x (M, K) and inputs u (M, U); columns that are not finite are left out.

        Args:
            sizes: mean absolute value of every state and input.
        """
        taken = {*states, *inputs}
        K = unused_name("K", taken)
        names = [unused_name(f"g_{j}", taken) for j in range(len(terms))]
        text = [f"{n}' = {_PARAMETER.sub(K, term.form) if term.inner else term.form}"
                for n, term in zip(names, terms, strict=True)]  # fmt: skip
        model = Model.from_text("\n".join(text), inputs=[*states, *inputs])
        order = [[*states, *inputs].index(name) for name in model.inputs]
        given = np.concatenate([x, u], 1)[:, order]
        nothing = np.zeros((len(x), len(terms)))
        columns, kept, inner = [], [], []
        for share in (*_GRID,) if model.parameters else (1.0,):
            for variable in dict.fromkeys(term.variable for term in terms):
                if variable is None and share != _GRID[-1 if model.parameters else 2]:
                    continue
                value = np.nan if variable is None else share * sizes[variable]
                theta = np.full(len(model.parameters), 1.0 if variable is None else value)
                with np.errstate(all="ignore"):
                    all_values = model.evaluate(np.zeros(len(x)), nothing, theta, given)
                for j, term in enumerate(terms):
                    if term.variable == variable and np.isfinite(all_values[:, j]).all():
                        columns.append(all_values[:, j])
                        kept.append(term)
                        inner.append(value)
        values = np.stack(columns, 1) if columns else np.zeros((len(x), 0))
        return Features(tuple(kept), np.array(inner), values)
