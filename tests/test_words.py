"""Messages and pages speak the field's language: private words and history do not come back."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Word or phrase → what to write instead.
FORBIDDEN = {
    r"accus(e|ed|es|ation)\b": "rejected; rate of false alarms",
    r"given up\b": "failed, stopped",
    r"\bgoes on\b": "resumes, continues",
    r"go far together": "are not individually identifiable",
    r"the estimate is that of": "say what it is",
    r"ends of intervals": "confidence limits",
    r"all together do\b": "the model is rejected",
    r"\bculprit\b": "the rejected equation",
    r"playe?d no part": "was not used",
    r"asked (again|for again)": "re-optimised",
    r"of everything random": "random seed",
    r"refined stage": "maximum likelihood",
    r"\bmended\b": "fixed",
    r"leads? nowhere|led nowhere": "failed",
    r"by trajectories alone": "maximum likelihood; ODIN is not used",
    r"\bnobody (sees|saw)\b|states? that nobody": "hidden states",
    r"\brefuted\b": "rejected",
    r"(is|are) fitted unasked|\bunasked\b": "by default",
    r"\bused to (miss|fail|take|stop|end)\b": "no history: the CHANGELOG has it",
    r"\bbefore (this|that|it) was\b": "no history: the CHANGELOG has it",
}
PAGES = [ROOT / "README.md", *(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def messages(path: Path) -> str:
    """The texts of a module that a user may see: all strings but docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return "\n".join(str(node.value) for node in strings if id(node) not in docs)


@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_page_has_a_forbidden_word(word: str):
    text = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in PAGES}
    found = [name for name, own in text.items() if re.search(word, own, re.I)]
    assert not found, f"write instead: {FORBIDDEN[word]}"


@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_message_has_a_forbidden_word(word: str):
    found = [str(path.relative_to(ROOT)) for path in SOURCES if re.search(word, messages(path), re.I)]
    assert not found, f"write instead: {FORBIDDEN[word]}"


def test_concepts_are_short_and_every_page_has_a_title():
    for path in PAGES:
        assert path.read_text("utf-8").lstrip().startswith("# "), path
    for path in (ROOT / "docs" / "concepts").glob("*.md"):
        assert len(path.read_text("utf-8").splitlines()) <= 150, path


def test_messages_are_told_from_docstrings():
    assert "docstring" not in messages(Path(__file__)).partition("accus")[0]
