"""HTML pages from templates, with all user text escaped.

A page needs no other file. What runs in it is the package's own: its policy names the two scripts by their hashes, so
that a browser refuses any other, and data for them are JSON in which nothing can end the element that holds them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from odinfer.style.drawing import css_colour, neutral_theme_css, svg, theme_css
from odinfer.style.picture import PanelFigure, SingleFigure, combined_figure, panel_svg

LIVE = Path(__file__).parent / "live"  # uPlot, which the studio has as well, and what is our own
_DIGITS = 5  # of numbers in live plots
_BESIDE = 4  # panels that stand side by side: if one has a title, all leave room for one


def render_page(template: str, **values: Any) -> str:
    """The page of a template; a value that it needs and does not get is an error."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _file("templates", name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "theme": theme_css(),
        "css": css_colour,
        "scripts": scripts(),
        "live_css": _strip_addresses("uplot.css"),
    }
    return environment.get_template(template).render(**values)


@cache
def _file(*parts: str) -> str:
    return resources.files("odinfer.style").joinpath(*parts).read_text(encoding="utf-8")


@cache
def scripts() -> tuple[tuple[str, str], ...]:
    """What makes plots live, each with its hash for the policy of the page: uPlot with its licence, and our own."""
    licence = _file("live", "uplot.LICENSE").strip().replace("*/", "")
    texts = (f"/* uPlot\n{licence}\n*/\n{_strip_addresses('uplot.js')}", _file("live", "live.js"))
    return tuple((text, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()) for text in texts)


def _strip_addresses(name: str) -> str:
    """A file of uPlot without the address in it: no page of ours names any place in the network."""
    return re.sub(r"/\*! https.*?\*/", "", _file("live", name))


def base64_images(pictures: Mapping[str, bytes]) -> dict[str, str]:
    """PNG files as text, so that a page needs no other file."""
    return {name: base64.b64encode(image).decode() for name, image in pictures.items()}


def page_figure(picture: PanelFigure | SingleFigure, most: int = 24) -> dict[str, Any]:
    """A picture for a page: its first panels as images with their words and data, and what its marks mean."""
    if isinstance(picture, SingleFigure):
        plots = [{"alt": picture.alt, "image": _base64(picture.svg()), "live": ""}]
        return {"plots": plots, "marks": (), "groups": (), "note": "", "lone": True, "live": False, "titled": False}
    titled = len(picture.plots) <= _BESIDE and any(plot.title for plot in picture.plots)
    plots = [
        {"alt": plot.alt, "image": _base64(panel_svg(plot, titled=titled)), "title": plot.title,
         "live": _json(plot.live) if plot.live else "", "colour": css_colour(plot.colour)}
        for plot in picture.plots[:most]
    ]  # fmt: skip
    marks = [(key.words, key.mark, css_colour(key.colour)) for key in picture.keys]
    groups = [(words, css_colour(colour)) for words, colour in picture.groups]
    count = len(picture.plots)
    note = picture.note if count <= most else f"the first {most} of {count} panels"
    return {
        "plots": plots,
        "marks": marks,
        "groups": groups,
        "note": note,
        "lone": False,
        "titled": titled,
        "live": any(plot.live for plot in picture.plots),
    }


def notebook_image(picture: PanelFigure) -> dict[str, str]:
    """All panels on one sheet that is seen on white and on black alike, and what they show."""
    return {
        "image": _base64(svg(combined_figure(picture), neutral_theme_css())),
        "alt": "; ".join(plot.alt for plot in picture.plots),
    }


def _base64(image: bytes) -> str:
    return base64.b64encode(image).decode()


def _json(value: Any) -> str:
    """JSON for an element of a page: characters that could end the element or begin another are spelled out."""
    text = json.dumps(_round(value), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _round(value: Any) -> Any:
    """Numbers with few digits, and null where there is none."""
    if isinstance(value, Mapping):
        return {str(key): _round(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_round(v) for v in value]
    if isinstance(value, np.ndarray):
        return [float(f"{v:.{_DIGITS}g}") if np.isfinite(v) else None for v in value.tolist()]
    return value
