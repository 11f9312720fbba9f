"""Forward-mode differentiation of text models, evaluated in numpy.

Every instruction carries derivatives by those states and parameters on which it depends, and by no others, so that the
pattern of the Jacobian is exact. They are instructions, too, simplified and shared like the others, and all become one
straight function of Python. Its text is made of generated names, operators and numbers; nothing in it is the user's.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.model.program import FOLD, LEAVES, Instructions, is_whole_exponent, needed

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Code = Sequence[tuple[str, tuple[Any, ...]]]

# Derivatives of all instructions by single columns, up to which each is an instruction of its own. Beyond, one has the
# derivatives by all columns in it: as many instructions as the model has, whatever depends on whatever.
MOST_SINGLE = 30_000
_INFIX = {"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="}
_SIGNS = {"and": "&", "or": "|"}
_FLAT = _INFIX - {*"+-*/"} | {"and", "or", "not", "sign", "floor", "ceil"}  # have no derivatives


def _whole_power(x: Any, n: int) -> Any:
    """x^n by multiplication, n ≥ 2."""
    result = None
    while True:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if not n:
            return result
        x = x * x


_NUMPY = {f"f_{name}": function for name, function in FOLD.items() if name.isidentifier()}
_NUMPY |= {"f_whole": _whole_power}
_UNARY = (
    "exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh",
)  # fmt: skip
# The same on single numbers, ten times as fast. Where numpy has inf or NaN, most of these raise.
_SCALAR: dict[str, Callable[..., Any]] = {f"f_{name}": getattr(math, name) for name in _UNARY}
_SCALAR |= {
    "f_abs": abs,
    "f_floor": lambda x: float(math.floor(x)),
    "f_ceil": lambda x: float(math.ceil(x)),
    "f_sign": lambda x: x if x != x else float((x > 0) - (x < 0)),
    "f_min": lambda x, y: x if x < y or x != x else y,
    "f_max": lambda x, y: x if x > y or x != x else y,
    "f_not": operator.not_,
    "f_where": lambda c, x, y: x if c else y,
    "f_pow": math.pow,
    "f_whole": _whole_power,
}


@dataclass(frozen=True)
class _Term:
    """An instruction that is added to the others by writing formulas with it."""

    tape: Instructions
    i: int

    @property
    def value(self) -> float | None:
        found: float | None = self.tape.value(self.i)
        return found

    def apply(self, op: str, *others: _Term | float) -> _Term:
        return _Term(self.tape, self.tape.emit(op, self.i, *(self.of(other).i for other in others)))

    def of(self, other: _Term | float) -> _Term:
        """A number as an instruction."""
        return other if isinstance(other, _Term) else _Term(self.tape, self.tape.emit("number", float(other)))

    def __neg__(self) -> _Term:
        if self.value is not None:
            return self.of(-self.value)
        op, args = self.tape.code[self.i]
        return _Term(self.tape, args[0]) if op == "neg" else self.apply("neg")

    def __add__(self, other: _Term) -> _Term:
        for one, two in ((self, other), (other, self)):
            op, args = self.tape.code[two.i]
            if op == "neg":
                return one - _Term(self.tape, args[0])
        return self._fold(operator.add, other) or self.apply("+", other)

    def __sub__(self, other: _Term | float) -> _Term:
        return self._fold(operator.sub, self.of(other)) or self.apply("-", other)

    def __mul__(self, other: _Term | float) -> _Term:
        other = self.of(other)
        for one, two in ((self, other), (other, self)):
            if one.value is not None and abs(one.value) == 1.0:
                return two if one.value == 1.0 else -two
        return self._fold(operator.mul, other) or self.apply("*", other)

    def __truediv__(self, other: _Term) -> _Term:
        return self if other.value == 1.0 else self.apply("/", other)

    def _fold(self, op: Callable[[float, float], float], other: _Term) -> _Term | None:
        if self.value is None or other.value is None:
            return None
        result = op(self.value, other.value)
        return self.of(result) if math.isfinite(result) else None


_ONE: dict[str, Callable[[_Term, _Term, _Term], _Term]] = {  # derivatives of y = op(x) along dx
    "neg": lambda dx, x, y: -dx,
    "exp": lambda dx, x, y: dx * y,
    "log": lambda dx, x, y: dx / x,
    "log10": lambda dx, x, y: dx / (x * math.log(10.0)),
    "sqrt": lambda dx, x, y: dx * (x.of(0.5) / y),
    "abs": lambda dx, x, y: x.apply(">=", 0.0).apply("where", dx, -dx),
    "sin": lambda dx, x, y: dx * x.apply("cos"),
    "cos": lambda dx, x, y: -(dx * x.apply("sin")),
    "tan": lambda dx, x, y: dx * (x.of(1.0) + y * y),
    "asin": lambda dx, x, y: dx / (x.of(1.0) - x * x).apply("sqrt"),
    "acos": lambda dx, x, y: -(dx / (x.of(1.0) - x * x).apply("sqrt")),
    "atan": lambda dx, x, y: dx / (x.of(1.0) + x * x),
    "sinh": lambda dx, x, y: dx * x.apply("cosh"),
    "cosh": lambda dx, x, y: dx * x.apply("sinh"),
    "tanh": lambda dx, x, y: dx / (x.apply("cosh") * x.apply("cosh")),
    "asinh": lambda dx, x, y: dx / (x * x + x.of(1.0)).apply("sqrt"),
    "acosh": lambda dx, x, y: dx / (x * x - 1.0).apply("sqrt"),
    "atanh": lambda dx, x, y: dx / (x.of(1.0) - x * x),
}


def _power(x: _Term, n: _Term) -> _Term:
    return x.of(1.0) if n.value == 0.0 else x if n.value == 1.0 else x.apply("pow", n)


def _derivative(op: str, args: Sequence[_Term], y: _Term, d: Sequence[_Term | None]) -> _Term:
    """That of y = op(args) along one direction, from those of its arguments; None stands for zero, but not for all."""
    zero = y.of(0.0)
    parts: list[_Term | None] = []
    match op, args, d:
        case _, [x], [_Term() as dx]:
            return _ONE[op](dx, x, y)
        case "where", [holds, _, _], [_, da, db]:
            return holds.apply("where", da or zero, db or zero)
        case (("min" | "max"), [a, b], [da, db]):
            # Half of each where they are equal, as in JAX; the other one does not count, be it infinite.
            beats, tie = ">" if op == "max" else "<", (da or zero) * 0.5 + (db or zero) * 0.5
            return a.apply(beats, b).apply("where", da or zero, b.apply(beats, a).apply("where", db or zero, tie))
        case "+", _, [da, db]:
            parts = [da, db]
        case "-", _, [da, db]:
            parts = [da, db and -db]
        case "*", [a, b], [da, db]:
            parts = [da and da * b, db and db * a]
        case "/", [_, b], [da, db]:
            parts = [da and da / b, db and -(db * (y / b))]
        case "pow", [a, b], [da, db]:
            parts = [da and da * (b * _power(a, b - 1.0))]
            if db:  # at x = 0 the power itself is what counts, not the infinite logarithm
                positive = a if a.value else a.apply("==", zero).apply("where", 1.0, a)
                parts.append(db * (positive.apply("log") * y))
    return functools.reduce(operator.add, filter(None, parts))


class Differentiated(NamedTuple):
    """Instructions of values and derivatives, and which of them are asked for."""

    code: Code
    values: tuple[int, ...]
    derivatives: tuple[dict[int, int], ...]  # of every value, by column


def _differentiate(code: Code, outputs: Iterable[int], seeds: Mapping[str, tuple[int, str]]) -> Differentiated:
    """Derivatives of the outputs; a seed is a name's column and its derivative by it: a name, or "" for one."""
    tape = Instructions()
    terms: list[_Term] = []
    along: list[dict[int, _Term]] = []  # of every instruction, by column
    for op, args in code:
        parts = args if op in LEAVES else tuple(terms[i].i for i in args)
        y = _Term(tape, tape.emit(op, *parts))
        terms.append(y)
        found: dict[int, _Term] = {}
        if op == "name" and args[0] in seeds:
            column, seed = seeds[args[0]]
            found[column] = _Term(tape, tape.emit("name", seed)) if seed else y.of(1.0)
        elif op not in LEAVES and op not in _FLAT:
            moving = [{} if op == "where" and n == 0 else along[i] for n, i in enumerate(args)]
            own = [terms[i] for i in args]
            for column in sorted(set().union(*moving)):
                found[column] = _derivative(op, own, y, [d.get(column) for d in moving])
        along.append(found)
    return Differentiated(
        tape.code,
        tuple(terms[i].i for i in outputs),
        tuple({column: term.i for column, term in along[i].items()} for i in outputs),
    )


def _dependencies(code: Code, columns: Mapping[str, int]) -> list[int]:
    """Of every instruction, the columns on which it depends, as the bits of a number."""
    found: list[int] = []
    for op, args in code:
        if op in LEAVES or op in _FLAT:
            found.append(1 << columns[args[0]] if op == "name" and args[0] in columns else 0)
        else:
            found.append(functools.reduce(operator.or_, (found[i] for i in args[op == "where" :])))
    return found


def _bits(number: int) -> list[int]:
    return [i for i, bit in enumerate(reversed(f"{number:b}")) if bit == "1"]


def _compiled(
    code: Code, outputs: Sequence[int], groups: Sequence[Sequence[str]], library: Mapping[str, Any]
) -> Callable[..., tuple[Any, ...]]:
    """A function of one sequence of values per group of names, that runs the instructions which the outputs need."""
    names = {name: f"x{g}_{i}" for g, group in enumerate(groups) for i, name in enumerate(group)}
    last = dict.fromkeys(outputs, len(code))  # where an instruction is used last
    for i in reversed(range(len(code))):
        if i in last and code[i][0] not in LEAVES:
            for j in code[i][1]:
                last.setdefault(j, i)
    lines = [f"def run({', '.join(f'g{g}' for g in range(len(groups)))}):"]
    lines += [f" {', '.join(names[n] for n in group)}, = g{g}" for g, group in enumerate(groups) if group]
    called: dict[int, str] = {}
    free: list[str] = []
    for i in sorted(last):
        op, args = code[i]
        if op in LEAVES:
            called[i] = names[args[0]] if op == "name" else f"({args[0]!r})"
            continue
        parts = [called[j] for j in args]
        # Variables are used again, which frees what was in them.
        free += [called[j] for j in {*args} if last[j] == i and code[j][0] not in LEAVES]
        called[i] = free.pop() if free else f"v{i}"
        lines.append(f" {called[i]} = {_formula(op, parts, code[args[-1]])}")
    lines.append(f" return ({''.join(f'{called[i]},' for i in outputs)})")
    # Nothing that a user wrote is in these lines: names are ours, numbers are floats, operations those of the language.
    space: dict[str, Any] = {"__builtins__": {}, **library}
    exec(compile("\n".join(lines), "<equations>", "exec"), space)
    run: Callable[..., tuple[Any, ...]] = space["run"]
    return run


def _formula(op: str, parts: Sequence[str], last: tuple[str, tuple[Any, ...]]) -> str:
    if op in _INFIX or op in _SIGNS:
        return f" {_SIGNS.get(op, op)} ".join(parts)
    if op == "neg":
        return f"-{parts[0]}"
    if op == "pow" and last[0] == "number" and is_whole_exponent(n := last[1][0]):
        return f"{parts[0]} * {parts[0]}" if n == 2.0 else f"f_whole({parts[0]}, {int(n)})"
    return f"f_{op}({', '.join(parts)})"


class TextField:
    """The field of a model from text, or other F values of (t, x, θ, u), and derivatives, in numpy.

    Args:
        code: instructions; those that the outputs do not need are left out.
        outputs: those that give the values, such as the time derivatives of the states.
        names: of states, parameters and inputs.
    """

    def __init__(self, code: Code, outputs: Sequence[int], names: tuple[Sequence[str], Sequence[str], Sequence[str]]):
        kept = needed(code, outputs)
        place = {i: n for n, i in enumerate(kept)}
        own = [(op, args if op in LEAVES else tuple(place[j] for j in args)) for op, args in (code[i] for i in kept)]
        self.code, self.outputs, self.names = tuple(own), tuple(place[i] for i in outputs), names

    def __reduce__(self) -> tuple[Any, ...]:
        return TextField, (self.code, self.outputs, self.names)  # what is compiled stays here

    @functools.cached_property
    def _dependent(self) -> list[int]:
        states, parameters, _ = self.names
        return _dependencies(self.code, {name: i for i, name in enumerate((*states, *parameters))})

    @functools.cached_property
    def pattern(self) -> tuple[Index, Index]:
        """Rows and columns (nnz,) of the derivatives by (x, θ) that are not zero everywhere, sorted by rows."""
        reach = [_bits(self._dependent[i]) for i in self.outputs]
        rows = np.repeat(np.arange(len(reach)), [len(r) for r in reach])
        return rows, np.array([column for r in reach for column in r], np.int64)

    def at_one(self, t: float, x: Sequence[float], theta: Sequence[float], u: Sequence[float]) -> tuple[float, ...]:
        """The values at one point, from plain numbers: as fast as can be.

        Raises:
            ArithmeticError, ValueError: something on the way is not finite.
        """
        return self._at_one((t,), x, theta, u)

    def evaluate(self, t: Array, x: Array, theta: Array, u: Array) -> Array:
        if len(t) == 1:
            try:
                return np.array([self._at_one(t.tolist(), *(a[0].tolist() for a in (x, theta, u)))], float)
            except (ArithmeticError, ValueError):
                pass  # infinite or not a number somewhere, which numpy can say
        out = np.empty((len(t), len(self.outputs)))
        with np.errstate(all="ignore"):
            for k, f in enumerate(self._values(*_columns(t, x, theta, u))):
                out[:, k] = f
        return out

    def linearise(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        (M, K), F = x.shape, len(self.outputs)
        out = np.zeros((M, F, 1 + K + theta.shape[1]))
        with np.errstate(all="ignore"):
            found = self._run(t, x, theta, u)
            for k in range(F):
                out[:, k, 0] = found[k]
            if self._single:
                for row, column, d in zip(*self._places, found[F:], strict=True):
                    out[:, row, column] = d
            else:
                for k, d in enumerate(found[F:]):
                    out[:, k, 1:] = np.transpose(d)
        return out[..., 0], out[..., 1 : 1 + K], out[..., 1 + K :]

    def derived(self, columns: Sequence[str]) -> Differentiated:
        """The instructions of the values, and of their derivatives by some names."""
        return _differentiate(self.code, self.outputs, {name: (i, "") for i, name in enumerate(columns)})

    def nonzeros(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Array, Array]:
        """f (M, F) and the derivatives (M, nnz) in the order of the pattern."""
        M, F = len(t), len(self.outputs)
        f, out = np.empty((M, F)), np.empty((M, len(self.pattern[0])))
        with np.errstate(all="ignore"):
            found = self._run(t, x, theta, u)
            for k in range(F):
                f[:, k] = found[k]
            if self._single:
                for i, d in enumerate(found[F:]):
                    out[:, i] = d
            else:
                rows, columns = self.pattern
                for k in np.unique(rows):
                    out[:, rows == k] = np.transpose(found[F + k])[..., columns[rows == k]]
        return f, out

    @functools.cached_property
    def _single(self) -> bool:
        """Whether derivatives by single columns are instructions of their own."""
        return sum(number.bit_count() for number in self._dependent) <= MOST_SINGLE

    @property
    def cost(self) -> int:
        """The number of instructions that give f and its derivatives."""
        return len(self._differentiated.code)

    @functools.cached_property
    def _differentiated(self) -> Differentiated:
        """With derivatives by every column, or by all of them at once, whose seeds are the names `d name`."""
        columns = enumerate((*self.names[0], *self.names[1]))
        single = self._single
        return _differentiate(
            self.code, self.outputs, {name: (i, "") if single else (0, f"d {name}") for i, name in columns}
        )

    @functools.cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        rows, columns = self.pattern
        return rows.tolist(), (1 + columns).tolist()

    @functools.cached_property
    def _at_one(self) -> Callable[..., tuple[Any, ...]]:
        return _compiled(self.code, self.outputs, (("t",), *self.names), _SCALAR)

    @functools.cached_property
    def _values(self) -> Callable[..., tuple[Any, ...]]:
        return _compiled(self.code, self.outputs, (("t",), *self.names), _NUMPY)

    @functools.cached_property
    def _run(self) -> Callable[..., tuple[Any, ...]]:
        """(t, x, θ, u) ↦ values, then derivatives in the order of the pattern, or of all columns for each value."""
        groups: tuple[Sequence[str], ...] = (("t",), *self.names)
        found = self._differentiated
        if self._single:
            wanted = [d[column] for d in found.derivatives for column in sorted(d)]
            run = _compiled(found.code, [*found.values, *wanted], groups, _NUMPY)
            return lambda *at: run(*_columns(*at))
        seeds = [f"d {name}" for name in (*self.names[0], *self.names[1])]
        units = np.eye(len(seeds))[..., None]
        code = [*found.code, ("number", (0.0,))]
        wanted = [d.get(0, len(found.code)) for d in found.derivatives]
        every = _compiled(code, [*found.values, *wanted], (*groups, seeds), _NUMPY)
        return lambda *at: every(*_columns(*at), units)


def _columns(t: Array, x: Array, theta: Array, u: Array) -> tuple[Any, ...]:
    """The values of every name; parameters that are the same at all points are numbers."""
    same = len(t) == 1 or theta.strides[0] == 0
    return (t,), np.ascontiguousarray(x.T), theta[0] if same and len(t) else theta.T, u.T
