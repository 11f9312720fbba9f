"""A page as what can be done with it: its blocks of code are run in the order in which they stand.

```python             runs; all blocks of a page share their names and a folder
```sh                 commands: `odinfer …` runs in this process
```ode model.ode      is written to that file, as are csv and toml; without a name it is only shown
```text               what the block before it prints; a line … stands for any number of lines
```{picture} fit.plot()   a figure: the expression is evaluated where it stands
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt


@dataclass(frozen=True)
class Block:
    """A block of code: its language and what stands beside that, its text, and the line of the page it begins at."""

    language: str
    beside: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The blocks of a page in Markdown; those of a figure have the language `{picture}`."""
    found = []
    for token in MarkdownIt().parse(page):
        if token.type == "fence":
            language, _, beside = token.info.strip().partition(" ")
            found.append(Block(language, beside.strip(), token.content, (token.map or [0])[0] + 1))
    return found


def commands(text: str) -> list[list[str]]:
    """The words of every command in a block for the shell, without comments."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@dataclass
class Run:
    """A page that is being run, in a folder of its own.

    Attributes:
        folder: where its files are.
        names: what its Python has defined so far.
    """

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)

    def block(self, block: Block, where: str = "page") -> str:
        """Run a block; what it prints."""
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            if block.language == "python":
                code = "\n" * block.line + block.text  # so that errors name the line of the page
                exec(compile(code, where, "exec"), self.names)
            elif block.language == "sh":
                for words in commands(block.text):
                    if words[0] == "odinfer":
                        odinfer(words[1:])
            elif block.beside and block.language in ("ode", "csv", "toml"):
                Path(block.beside).write_text(block.text, "utf-8")
        return printed.getvalue()

    def figure(self, expression: str) -> Any:
        """What an expression gives at this point of the page."""
        with contextlib.chdir(self.folder):
            return eval(expression, self.names)


_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\d)")
_P_VALUE = re.compile(r"\bp = (\d+(?:\.\d+)?(?:e-\d+)?)")


def agree(shown: str, printed: str, tolerance: float = 0.03) -> bool:
    """Whether a page shows what was printed: the same words, and numbers that agree as well as computers do."""
    return _lines_agree(
        *([line.split() for line in text.splitlines() if line.strip()] for text in (shown, printed)), tolerance
    )


def _lines_agree(shown: list[list[str]], printed: list[list[str]], tolerance: float) -> bool:
    for i, line in enumerate(shown):
        if line == ["…"]:
            return any(_lines_agree(shown[i + 1 :], printed[j:], tolerance) for j in range(i, len(printed) + 1))
        if i >= len(printed) or not _words_agree(" ".join(line), " ".join(printed[i]), tolerance):
            return False
    return len(shown) == len(printed)


def _words_agree(shown: str, printed: str, tolerance: float) -> bool:
    shown, printed = (_P_VALUE.sub(_side_of_level, text) for text in (shown, printed))
    a, b = ([float(n.replace("−", "-")) for n in _NUMBER.findall(text)] for text in (shown, printed))
    words = [re.sub("-{3,}", "---", _NUMBER.sub("#", text)) for text in (shown, printed)]
    return words[0] == words[1] and len(a) == len(b) and all(
        abs(x - y) <= tolerance * max(abs(x), abs(y)) for x, y in zip(a, b, strict=True)
    )  # fmt: skip


def _side_of_level(p: re.Match[str]) -> str:
    """A p-value by simulation varies between machines; which side of 5 % it is on does not."""
    return "p above the level" if float(p[1]) > 0.05 else "p below the level"


def odinfer(arguments: list[str]) -> None:
    """The command in this process.

    Raises:
        RuntimeError: it ended with an error.
    """
    from odinfer.apps.command.cli import main

    said = io.StringIO()
    with _argv(["odinfer", *arguments]), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{shlex.join(sys.argv)} ended with {end.code}: {said.getvalue()}") from None


@contextlib.contextmanager
def _argv(words: list[str]) -> Iterator[None]:
    before, wide = sys.argv, os.environ.get("COLUMNS")
    sys.argv, os.environ["COLUMNS"] = words, "100"
    try:
        yield
    finally:
        sys.argv = before
        os.environ.pop("COLUMNS") if wide is None else os.environ.update(COLUMNS=wide)
