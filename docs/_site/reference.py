"""The reference from docstrings: how they are read, and what is linked to what."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.typing import stringify_annotation

import odinfer

MADE_FOR_YOU = (
    "odinfer.result.",
    "odinfer.uncertainty.",
    "odinfer.diagnostics.",
    "odinfer.selection.",
    "odinfer.discovery.result.",
    "odinfer.optimal_design.result.",
    "odinfer.population.",
    "odinfer.apps.each.",
)


# Several names in one entry, "chains, draws: how many", stay one entry.
_READ = Config(
    napoleon_use_param=False, napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "params_style")]
)


# What Sphinx writes for some types, and what it is called in the sources.
_BRIEF = {
    stringify_annotation(ArrayLike, "smart"): "~numpy.typing.ArrayLike",
    stringify_annotation(NDArray[np.float64], "smart"): "~numpy.ndarray",
    "<factory>": "{}",
}


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Sections of a docstring as lists; what stands before a colon in a property's is no type."""
    what = "method" if what == "property" else what
    lines[:] = GoogleDocstring(lines, _READ, app, what, name, thing, options).lines()


def _found(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """The page of a public name, such as Problem in a signature, wherever its file is; None if it is none of ours."""
    name = node.get("reftarget", "").rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in dir(odinfer):
        return None
    domain, page = env.get_domain("py"), node.get("refdoc", "")
    for kind in ("class", "func", "exc"):
        if link := domain.resolve_xref(env, page, app.builder, kind, f"odinfer.{name}", node, contnode):
            return link
    return None


def _signature(app: Any, what: str, name: str, thing: Any, options: Any, given: str, back: str) -> Any:
    """Classes that nobody makes by hand are shown without what they are made of; a default that is made is empty."""
    made = (what == "class" and thing.__module__.startswith(MADE_FOR_YOU)) or name == "odinfer.methods.Method"
    return ("", "") if made else (_brief(given), _brief(back))


def _brief(types: str | None) -> str | None:
    for long, brief in _BRIEF.items():
        types = types and types.replace(long, brief)
    return types


def setup(app: Any) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("missing-reference", _found)
    return {"parallel_read_safe": True}
