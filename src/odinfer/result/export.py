"""Write tables as Markdown and LaTeX."""

from __future__ import annotations

from odinfer.style.text import TextTable

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}  # fmt: skip


def markdown(table: TextTable) -> str:
    """Write a table in Markdown: names left, numbers right."""
    rule = ("---", *["---:"] * (len(table.header) - 1))
    lines = (table.header, rule, *table.rows)
    escaped = (" | ".join(cell.replace("|", r"\|") for cell in row) for row in lines)
    return "".join(f"| {row} |\n" for row in escaped)


def latex(table: TextTable) -> str:
    """Write a table as a LaTeX tabular with the rules of the package booktabs."""

    def line(cells: tuple[str, ...]) -> str:
        return " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in cells) + r" \\"

    columns = "l" + "r" * (len(table.header) - 1)
    body = [line(table.header), r"\midrule", *map(line, table.rows)]
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *body, r"\bottomrule", r"\end{tabular}", ""])
