"""Equations as they stand in books."""

import pytest

from odinfer.apps.studio.typeset import typeset


def plain(tree):
    """A tree in one line: fractions by /, powers by ^, indices by _."""
    name, *children = tree
    parts = [child if isinstance(child, str) else plain(child) for child in children]
    written = {"mfrac": "[{}]/[{}]", "msup": "{}^{}", "msub": "{}_{}", "msqrt": "√[{}]"}.get(name)
    return written.format(*parts) if written else "".join(parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x' = -k*x", "[dx]/[dt]=−k⋅x"),
        ("x' = a*(b - c*x) - (u - x)", "[dx]/[dt]=a⋅(b−c⋅x)−(u−x)"),
        ("x' = V*x/(K + x)", "[dx]/[dt]=[V⋅x]/[K+x]"),
        ("x' = (a + x)^2 + x^n", "[dx]/[dt]=(a+x)^2+x^n"),
        ("x' = -alpha*x + omega_CL*k1", "[dx]/[dt]=−α⋅x+ω_CL⋅k_1"),
        ("x' = sqrt(x) + exp(-k*t)", "[dx]/[dt]=√[x]+exp(−k⋅t)"),
        ("x'' = -k*x - c*x'", "[d^2x]/[dt^2]=−k⋅x−c⋅x˙"),
        ("x' = -?(x)", "[dx]/[dt]=−f(x)"),
        ("x' = where(x > 2 and x < 3, 1, 0)", "[dx]/[dt]=where(x>2andx<3,1,0)"),
    ],
)
def test_equations_read_as_in_a_book(text, expected):
    assert [plain(tree) for tree in typeset(text)] == [expected]


def test_definitions_follow_the_equations_and_what_cannot_be_read_is_left_out():
    found = typeset("x' = -uptake\nuptake = a*x")
    assert [plain(tree) for tree in found] == ["[dx]/[dt]=−uptake", "uptake=a⋅x"]
    assert typeset("x' = -k*") == []
