"""The documentation as pages of the studio, so that help needs no internet: the Markdown of `docs/`, rendered plainly.

Figures and the parts that Sphinx generates from code are left out. An installed package has a copy of the Markdown.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from odinfer.errors import InputError

if TYPE_CHECKING:
    from markdown_it.token import Token

_INSTALLED, _CHECKOUT = Path(__file__).parent / "docs", Path(__file__).parents[4] / "docs"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
_SECTIONS = {
    "": "Using odinfer", "how-to": "How do I …?", "tutorials": "Tutorials", "concepts": "Concepts",
    "coming_from": "Coming from another program", "reference": "Reference", "benchmarks": "Measurements",
}  # fmt: skip
_GENERATED = re.compile(r"^```\{(eval-rst|commands)\}", re.M)
_DIRECTIVE = re.compile(r"^(`{3,})\{.*?^\1`*\s*?$", re.M | re.S)
_TERM = re.compile(r"^(\S.*)\n: ((?:.+\n?)+)", re.M)


@cache
def titles() -> dict[str, str]:
    """The titles of all pages by name, such as "how-to/numbers"; pages that are generated from code are left out."""
    found = {}
    for path in sorted(FOLDER.rglob("*.md")):
        name, text = path.relative_to(FOLDER).with_suffix("").as_posix(), path.read_text("utf-8")
        if name.partition("/")[0] in (*_SECTIONS, name) and not name.endswith("index") and not _GENERATED.search(text):
            found[name] = _words(text.partition("\n")[0].removeprefix("# "))
    return found


def page(name: str) -> str:
    """Render a page of the documentation, or the list of them if the name is empty, as HTML.

    Raises:
        InputError: there is no such page.
    """
    if not name:
        body = "<h1>Documentation</h1>" + "".join(_contents())
        return _document("Documentation", body, home=True)
    if name not in titles():
        raise InputError("there is no such page of the documentation")
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    return _document(titles()[name], _rendered(name, _DIRECTIVE.sub("", text)))


def _words(text: str) -> str:
    return text.replace("`", "").strip()


def _contents() -> Iterator[str]:
    for folder, heading in _SECTIONS.items():
        own = {name: title for name, title in titles().items() if posixpath.dirname(name) == folder}
        if own:
            items = "".join(f'<li><a href="/help/{name}">{html.escape(title)}</a></li>' for name, title in own.items())
            yield f"<h2>{html.escape(heading)}</h2><ul>{items}</ul>"


def _rendered(name: str, text: str) -> str:
    """HTML of Markdown: headings get anchors, links lead to other pages here or are plain words."""
    from markdown_it import MarkdownIt

    # Terms with definitions become a list; inside, they are Markdown as elsewhere.
    text = _TERM.sub(lambda term: f"**{term[1]}**\\\n{term[2]}", text)
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(text)
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(tokens[i + 1].content))
        elif token.type == "inline":
            token.children = list(_linked(name, token.children or []))
        elif token.type in ("table_open", "fence", "code_block"):
            token.attrSet("tabindex", "0")  # may be wider than a telephone, and is scrolled by keyboard
    return str(parser.renderer.render(tokens, parser.options, {}))


def _anchor(heading: str) -> str:
    """The anchor of a heading as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", _words(heading).lower()).replace(" ", "-")


def _linked(name: str, tokens: list[Token]) -> Iterator[Token]:
    from markdown_it.token import Token

    leads = True
    for i, token in enumerate(tokens):
        if token.type == "link_open":
            path, _, anchor = str(token.attrGet("href")).partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path.removesuffix(".md")))
            leads = not path or target in titles()
            if leads:
                token.attrSet("href", f"/help/{target if path else name}" + (f"#{anchor}" if anchor else ""))
                yield token
            if tokens[i + 1].type == "link_close":  # a link without words has those of the page
                yield Token("text", "", 0, content=titles().get(target, path))
        elif token.type != "link_close" or leads:
            yield token


def _document(title: str, body: str, home: bool = False) -> str:
    up = "" if home else '<a href="/help/">All pages</a>'
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(title)} – odinfer</title>"
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/static/studio.css"></head>'
        '<body class="document"><header class="bar">'
        '<span class="brand"><img src="/static/icon.svg" alt="" width="24" height="24">'
        "<span>odinfer <b>help</b></span></span>"
        f"<nav>{up}</nav></header><main>{body}</main></body></html>"
    )
