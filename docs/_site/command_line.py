"""The reference of the command line, from the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Commands(SphinxDirective):
    """Every command with its arguments, its flags by group, its examples."""

    def run(self) -> list[nodes.Node]:
        lines = list(pages(command()))
        found = self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)
        for table in (table for node in found for table in node.findall(nodes.table)):
            table["classes"].append("flags")
        return found


def command() -> Any:
    import typer.main

    from odinfer.apps.command.cli import app

    return typer.main.get_command(app)


def pages(group: Any, above: str = "odinfer") -> Iterator[str]:
    """Sections in Markdown."""
    for name, own in group.commands.items():
        if hasattr(own, "commands"):
            yield from pages(own, f"{above} {name}")
            continue
        arguments = [p for p in own.params if p.param_type_name == "argument"]
        words = " ".join([above, name, *(_argument(p) for p in arguments), "[OPTIONS]"])
        yield from (f"## {above} {name}", "", own.help or "", "", "```text", words, "```", "")
        panels: dict[str, list[Any]] = {"Arguments": arguments}
        for p in own.params:
            if p.param_type_name == "option":
                panels.setdefault(getattr(p, "rich_help_panel", None) or "Options", []).append(p)
        panels["Options"] = panels.pop("Options", [])  # last
        for title, those in panels.items():
            if those:
                yield from (f"| {title} | |", "|---|---|")
                yield from (f"| {_shown(p)} | {_cell(p.help or '')} |" for p in those)
                yield ""
        yield from _epilog(own.epilog or "")


def _argument(p: Any) -> str:
    return str(p.metavar or p.name).strip() if p.required else f"[{str(p.metavar or p.name).strip('[]')}]"


def _shown(p: Any) -> str:
    if p.param_type_name == "argument":
        return f"`{p.metavar or p.name}`"
    value = "" if p.is_flag or not p.metavar else f" {p.metavar}"
    return ", ".join(f"`{_cell(flag + value)}`" for flag in p.opts)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", r"\|")


def _epilog(text: str) -> Iterator[str]:
    """Lines of examples as code, the others as sentences."""
    for part in filter(None, map(str.strip, text.split("\n\n"))):
        match = re.fullmatch(r"(odinfer .*?)(?:\s{3,}\((.*)\))?", part)
        if match:
            yield from ("```sh", match[1] + (f"     # {match[2]}" if match[2] else ""), "```", "")
        else:
            yield from (part, "")


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
