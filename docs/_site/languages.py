"""Colours for the language of models, and none for tables."""

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Text


class OdeLexer(RegexLexer):
    name, aliases = "odinfer models", ["ode"]
    tokens: ClassVar = {
        "root": [
            (r"#.*", Comment.Single),
            (r"\b(input|step|start|log|linear|fixed|local|shared|at|before|when)\b(?=\s+[\w(])", Keyword),
            (
                r"\b((log)?normal|student|(log)?laplace|poisson|(neg)?binomial|uniform|near)\b",
                Name.Builtin,
            ),
            (r"\b(exp|log|ln|log10|sqrt|abs|sign|min|max|pow|hill|where|piecewise)\b(?=\()", Name.Builtin),
            (r"\b\d+(\.\d*)?([eE][-+]?\d+)?\b", Number),
            (r"\w+'{1,2}", Name.Function),
            (r"\w+", Name),
            (r"[-+*/^=~<>|\[\]]", Operator),
            (r"\s+|.", Text),
        ]
    }


class CsvLexer(TextLexer):
    name, aliases = "tables", ["csv"]


def setup(app: Any) -> dict[str, Any]:
    app.add_lexer("ode", OdeLexer)
    app.add_lexer("csv", CsvLexer)
    return {"parallel_read_safe": True}
