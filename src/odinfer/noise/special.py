"""Log-probabilities that stay accurate for large means and in far tails.

Each works in both, given numpy or jax.numpy as `xp`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

# Probabilities below it come from continued fractions, which converge fast there. The functions of scipy and JAX not
# only underflow: for means of 1e8 and more they lose their digits some deviations out.
TAIL = 1e-5
DEPTH = 40  # of the fractions
STEP = 1e-4  # relative, of differences


def special(xp: Any) -> Any:
    """scipy.special, or its likeness in JAX."""
    if xp is np:
        import scipy.special as functions
    else:
        from odinfer._jax import jax

        functions = jax.scipy.special
    return functions


def stirling(x: Any, xp: Any) -> Any:
    """log Γ(x + 1) less Stirling's formula (x + ½) log x − x + ½ log 2π, for x > 0."""
    large = x >= 16
    s, b = xp.where(large, 1.0, x), xp.where(large, x, 16.0)
    exact = special(xp).gammaln(s + 1) - (s + 0.5) * xp.log(s) + s - 0.5 * np.log(2 * np.pi)
    w = (1 / b) ** 2
    series = (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188)))) / b
    return xp.where(large, series, exact)


def log_mass(y: Any, m: Any, gap: Any, xp: Any) -> Any:
    """log of mʸ e⁻ᵐ / Γ(y + 1) for y ≥ 0, m ≥ 0, in Loader's form: nothing cancels for large means.

    Args:
        gap: y − m, which the caller may know better than the difference tells.
    """
    possible = (y > 0) & (m > 0)
    n, mean, d = xp.where(possible, y, 1.0), xp.where(possible, m, 1.0), xp.where(possible, gap, 0.0)
    v = d / (n + mean)
    near = abs(v) < 0.1
    w = xp.where(near, v, 0.0) ** 2
    tail = w * (1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * (1 / 11 + w * (1 / 13 + w * (1 / 15 + w / 17)))))))
    far = n * (xp.log(n) - xp.log(mean)) - d
    deviance = xp.where(near, d * v + 2 * n * v * tail, far)
    log_p = -0.5 * xp.log(2 * np.pi * n) - stirling(n, xp) - deviance
    return xp.where(y == 0, -m, xp.where(possible, log_p, -np.inf))


def log_split(x: Any, w: Any, mean: Any, rest: Any, gap: Any, xp: Any) -> Any:
    """log of the binomial probability of x out of n = x + w, any numbers ≥ 0, where mean and rest (which sum to n) are
    expected and gap is x − mean: a Poisson x and a Poisson w, given their sum."""
    n = x + w
    return log_mass(x, mean, gap, xp) + log_mass(w, rest, -gap, xp) - log_mass(n, n, xp.zeros_like(n * 1.0), xp)


def log_poisson_tail(y: Any, m: Any, upper: bool, xp: Any) -> Any:
    """log P(Y > y) or log P(Y ≤ y) of a Poisson count with mean m: the incomplete gamma functions of y + 1 at m."""
    p = (special(xp).gammainc if upper else special(xp).gammaincc)(y + 1.0, m)

    def above(y: Any, m: Any) -> Any:
        a = y + 1.0
        fraction = _fraction(lambda j: a + j, lambda j: xp.where(j % 2 == 1, -(a + j // 2) * m, j // 2 * m), xp)
        return log_mass(a, m, a - m, xp) + xp.log(a) - xp.log(fraction)

    def below(y: Any, m: Any) -> Any:
        fraction = _fraction(lambda j: m - y + 2 * j, lambda j: -j * (j - 1 - y), xp)
        return log_mass(y, m, y - m, xp) + xp.log(m) - xp.log(fraction)

    if upper:
        return _rescue(p, above, (y, m), (1e4, 1.0), m > 0, xp)
    return _rescue(p, below, (y, m), (1.0, 1e4), m > 0, xp)


def log_beta(a: Any, b: Any, x: Any, rest: Any, xp: Any) -> Any:
    """log I_x(a, b), the regularised incomplete beta function, with rest = 1 − x, of which either may be tiny."""
    functions = special(xp)
    if xp is np:
        a, b, x, rest = np.broadcast_arrays(a, b, x, rest)
        p = functions.betainc(a, b, x, where=x <= 0.5, out=np.empty(x.shape))
        functions.betaincc(b, a, rest, where=x > 0.5, out=p)
    else:
        p = functions.betainc(a, b, x)
        p = xp.where((x > 0.5) & (p > 0.1), 1.0 - functions.betainc(b, a, rest), p)

    def tail(a: Any, b: Any, x: Any, rest: Any) -> Any:
        def numerator(j: Any) -> Any:
            i = j // 2
            odd = -(a + i) * (a + b + i) / ((a + 2 * i) * (a + 2 * i + 1)) * x
            even = i * (b - i) / ((a + 2 * xp.maximum(i, 1) - 1) * (a + 2 * i)) * x  # begins with i = 1
            return xp.where(j % 2 == 1, odd, even)

        fraction = _fraction(lambda j: xp.ones_like(x), numerator, xp)
        n = a + b
        split = log_split(a, b, n * x, n * rest, a * rest - b * x, xp)
        return split + xp.log(b / n) - xp.log(fraction)

    return _rescue(p, tail, (a, b, x, rest), (200.0, 200.0, 1e-3, 0.999), (x > 0) & (rest > 0), xp)


def differentiable(log_p: Callable[..., Any], slope: Callable[..., Any], xp: Any) -> Callable[..., Any]:
    """log_p(x, k, …, xp) as a function in `xp`, with derivatives that JAX's incomplete beta functions lack.

    By x it is slope(log_p, x, k, …, xp), by k a difference; by further arguments it is not differentiated.
    """
    return partial(log_p, xp=np) if xp is np else _in_jax(log_p, slope)


@cache
def _in_jax(log_p: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
    from odinfer._jax import jax, jnp

    def rule(primals: Any, tangents: Any) -> Any:
        x, k, *others = primals
        value = smooth(x, k, *others)
        up, down = (smooth(x, k * (1 + h), *others) for h in (STEP, -STEP))
        finite = jnp.isfinite(up) & jnp.isfinite(down)  # where p = 0 there is no slope
        by_k = jnp.where(finite, up, 0.0) - jnp.where(finite, down, 0.0)
        by_x = jnp.where(jnp.isfinite(value), slope(jnp.where(jnp.isfinite(value), value, 0.0), *primals, xp=jnp), 0.0)
        return value, by_x * tangents[0] + by_k / (2 * STEP * k) * tangents[1]

    smooth = jax.custom_jvp(partial(log_p, xp=jnp))
    smooth.defjvp(rule)

    def broadcast(*a: Any) -> Any:
        return smooth(*jnp.broadcast_arrays(*(value * 1.0 for value in a)))

    return broadcast


def _fraction(b: Callable[[Any], Any], a: Callable[[Any], Any], xp: Any) -> Any:
    """b(0) + a(1)/(b(1) + a(2)/(b(2) + …))."""

    def step(i: Any, f: Any) -> Any:
        return b(DEPTH - i - 1) + a(DEPTH - i) / f

    if xp is not np:
        from odinfer._jax import jax

        return jax.lax.fori_loop(0, DEPTH, step, b(DEPTH))  # unrolled, it compiles longer
    f = b(DEPTH)
    for i in range(DEPTH):
        f = step(i, f)
    return f


def _rescue(p: Any, log_tail: Callable[..., Any], a: tuple[Any, ...], instead: Any, possible: Any, xp: Any) -> Any:
    """log p, or `log_tail` of the arguments where p is a far tail, yet possible.

    Elsewhere it is given arguments with which it and its derivatives are finite.
    """
    lost = (p < TAIL) & possible
    log_p = xp.log(xp.where(lost, 1.0, p))
    if xp is np and not np.any(lost):
        return log_p
    return xp.where(lost, log_tail(*(xp.where(lost, v, i) for v, i in zip(a, instead, strict=True))), log_p)
