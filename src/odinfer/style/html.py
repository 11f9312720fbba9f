"""HTML pages from the package's templates: everything that comes from the user is escaped."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib import resources
from typing import Any


def page(template: str, **values: Any) -> str:
    """The page of a template; a value that it needs and does not get is an error."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def _source(template: str) -> str:
    return (resources.files("odinfer.style") / "templates" / template).read_text(encoding="utf-8")


def inlined(pictures: Mapping[str, bytes]) -> dict[str, str]:
    """PNG files as text, so that a page needs no other file."""
    return {name: base64.b64encode(image).decode() for name, image in pictures.items()}
