"""Pictures on pages: figures of the code that stands there, drawn when the site is built.

They are part of the page (SVG), so they follow its light and dark and need no other file. A page with pictures is run
once; what it drew is kept beside the site until the page or odinfer changes.
"""

from __future__ import annotations

import hashlib
import html
import json
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from cycler import cycler
from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib import rc_context
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from odinfer.style.drawing import PALETTE, STYLE, THEME, svg
from pages import Run, blocks

# Figures that a page draws itself have colours that follow light and dark, too.
_LOOK = {
    "axes.prop_cycle": cycler(color=PALETTE),
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), STYLE["ink"]),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), STYLE["line"]),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": STYLE["text"],
}
log = logging.getLogger(__name__)


class Picture(SphinxDirective):
    """The figure that an expression gives; its content is the caption."""

    required_arguments, final_argument_whitespace, has_content = 1, True, True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        if "alt" not in self.options:
            raise self.error("a picture needs :alt:, what it shows in words")
        number = self.env.temp_data.get("pictures", 0)  # of this page so far
        self.env.temp_data["pictures"] = number + 1
        drawn = _drawn(self.env, self.env.docname)[number]
        image = f'<div class="picture" role="img" aria-label="{html.escape(self.options["alt"])}">{drawn}</div>'
        figure = nodes.figure("", nodes.raw("", image, format="html"))
        if self.content:
            figure += nodes.caption("", "", *self.parse_inline("\n".join(self.content))[0])
        return [figure]


def _drawn(env: Any, page: str) -> list[str]:
    """The pictures of a page as SVG."""
    text = Path(env.doc2path(page)).read_text("utf-8")
    if not env.config.run_pages:
        return ["<svg/>" for block in blocks(text) if block.language == "{picture}"]
    kept = Path(env.app.outdir).parent / "pictures" / f"{page.replace('/', '-')}.json"
    key = hashlib.sha256((text + _sources()).encode()).hexdigest()
    if kept.exists() and (before := json.loads(kept.read_text("utf-8")))["key"] == key:
        return list(before["pictures"])
    log.info("running %s for its pictures", page)
    found = []
    with tempfile.TemporaryDirectory() as folder, rc_context(_LOOK):
        run = Run(Path(folder))
        for block in blocks(text):
            if block.language == "{picture}":
                found.append(svg(run.figure(block.beside)).decode())
            else:
                run.block(block, page)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"key": key, "pictures": found}), "utf-8")
    return found


def _sources() -> str:
    import odinfer

    files = sorted(Path(odinfer.__file__).parent.rglob("*.py"))
    return str([(f.name, f.stat().st_mtime_ns) for f in files])


def _colours(app: Any, *_: Any) -> None:
    """The theme's switch decides, not only the system: colours of pictures by day and by night."""
    names = {light: pair for light, pair in THEME.items() if pair[0] != "back"}  # that of the page, in site.css
    day = "".join(f"--plot-{name}:{light};" for light, (name, _) in names.items())
    night = "".join(f"--plot-{name}:{dark};" for name, dark in names.values())
    dark = f'body[data-theme="dark"]{{{night}}}'
    auto = f'@media (prefers-color-scheme:dark){{body:not([data-theme="light"]){{{night}}}}}'
    out = Path(app.outdir) / "_static"
    out.mkdir(parents=True, exist_ok=True)
    (out / "pictures.css").write_text(f"body{{{day}}}{auto}{dark}\n", "utf-8")


def setup(app: Any) -> dict[str, Any]:
    app.add_config_value("run_pages", True, "env")
    app.add_directive("picture", Picture)
    app.add_css_file("pictures.css")
    app.connect("build-finished", _colours)
    return {"parallel_read_safe": True}
