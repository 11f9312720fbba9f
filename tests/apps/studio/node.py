"""What the page runs, run by node: modules of the page, and those that models become."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import odinfer.apps.studio

PAGE = Path(odinfer.apps.studio.__file__).parent / "page"
_LOOP = """
import { createInterface } from "node:readline";
const plain = (v) => typeof v === "number" && !Number.isFinite(v) ? String(v)
  : Array.isArray(v) ? v.map(plain) : ArrayBuffer.isView(v) ? [...v].map(plain)
  : v && typeof v === "object" ? Object.fromEntries(Object.entries(v).map(([k, w]) => [k, plain(w)])) : v;
const load = (text) => import("data:text/javascript," + encodeURIComponent(text));
const page = (name) => import(PAGE + name);
for await (const line of createInterface({ input: process.stdin })) {
  const special = { NaN, inf: Infinity, "-inf": -Infinity };
  const { code, given } = JSON.parse(line, (k, v) => special[v] ?? v);
  try {
    const run = (await load(`export default async (given, load, page) => { ${code} }`)).default;
    console.log(JSON.stringify({ found: plain(await run(given, load, page)) }));
  } catch (error) { console.log(JSON.stringify({ error: String(error.stack) })); }
}
"""


class Node:
    """A process that runs pieces of code, one after the other."""

    def __enter__(self) -> Node:
        code = _LOOP.replace("PAGE", json.dumps(PAGE.as_uri() + "/"))
        command = ["node", "--no-warnings", "--input-type=module", "-e", code]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, code: str, given: Any = None) -> Any:
        """The value that `code` returns; `given` is what it is given, `load` imports a text, `page` a file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"code": code, "given": _plain(given)}) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        assert "error" not in reply, reply["error"]
        return reply.get("found")


def _plain(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return {math.inf: "inf", -math.inf: "-inf"}.get(value, "NaN")
        case dict():
            return {k: _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
    return value
