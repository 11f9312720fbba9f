"""What the theme leaves out for those who read by keyboard or by ear: levels of headings, and focus of what scrolls."""

from __future__ import annotations

import re
from typing import Any

# Code, tables and pictures may be wider than a telephone; who has no mouse scrolls them once they have the focus.
_SCROLLS = re.compile(r'<(?=pre>|div class="(?:table-wrapper|picture)\b)(pre|div)')


def readable(context: dict[str, Any]) -> None:
    """Change what a page is made of."""
    if "body" in context:
        context["body"] = _SCROLLS.sub(r'<\1 tabindex="0"', context["body"])
    if "furo_navigation_tree" in context:
        tree = str(context["furo_navigation_tree"])
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Any) -> dict[str, Any]:
    def changed(_app: Any, _name: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
        readable(context)

    app.connect("html-page-context", changed, priority=900)  # after the theme
    return {"parallel_read_safe": True}
