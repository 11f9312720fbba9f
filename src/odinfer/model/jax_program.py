"""Evaluate instructions in JAX, with derivatives that ignore branches not taken."""

from collections.abc import Mapping, Sequence
from typing import Any

from odinfer.model.expression import ARITY
from odinfer.model.program import LEAVES, needed, operations_of

Code = Sequence[tuple[str, tuple[Any, ...]]]


def values(code: Code, outputs: Sequence[int], known: Mapping[str, Any]) -> list[Any]:
    """The outputs of a program at values of its names.

    Where no branch that is taken needs them, functions see 0.5, where all are smooth: reverse-mode derivatives multiply
    what such a branch gives by zero, and zero times infinity would be NaN. Conditions have no derivatives; they are
    computed first, from values of their own without guards.
    """
    from odinfer._jax import jnp  # here, so that reading equations does not need JAX

    operations = operations_of(jnp)

    def value(i: int, done: dict[int, Any], wanted: Any = True) -> Any:
        op, args = code[i]
        if op in LEAVES:
            return known[args[0]] if op == "name" else args[0]
        parts = [done[j] for j in args]
        if wanted is not True and (op == "/" or op in ARITY):
            parts = [part if isinstance(part, float) else jnp.where(wanted, part, 0.5) for part in parts]
        return operations[op](*parts)

    order = needed(code, outputs)
    plain: dict[int, Any] = {}
    for i in needed(code, {code[i][1][0] for i in order if code[i][0] == "where"}):
        plain[i] = value(i, plain)

    by: dict[int, Any] = dict.fromkeys(outputs, True)  # where an instruction is needed: True or a mask

    def need(i: int, where: Any) -> None:
        already = by.get(i, where)
        by[i] = where if already is where else True if already is True or where is True else already | where

    for i in reversed(order):
        op, args = code[i]
        if i in by and op == "where":
            for j, taken in ((args[1], plain[args[0]]), (args[2], ~plain[args[0]])):
                need(j, taken if by[i] is True else by[i] & taken)
        elif i in by and op not in LEAVES:
            for j in args:
                need(j, by[i])
    done: dict[int, Any] = {}
    for i in sorted(by):
        op, args = code[i]
        if op == "where":
            done[i] = jnp.where(plain[args[0]], done[args[1]], done[args[2]])
        else:
            done[i] = value(i, done, by[i])
    return [jnp.asarray(done[i]) for i in outputs]
