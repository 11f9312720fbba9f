"""What the documentation shows runs as it stands there, prints what it says, and links lead somewhere."""

import doctest
import importlib.util
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest

import odinfer as od
from apps.studio.running import Running

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_site"))

from command_line import command  # noqa: E402
from pages import Block, Run, agree, blocks, commands  # noqa: E402

PAGES = {
    str(path.relative_to(DOCS)): path.read_text("utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if "_build" not in path.parts
}
OTHERS = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "CONTRIBUTING.md")}
BLOCKS = {name: blocks(text) for name, text in {**PAGES, **OTHERS}.items()}
PAGE = PAGES["observing.md"]
MODELS = re.findall(r"```ode\n(.*?)```\n\n```csv\n(.*?)```", PAGE, re.S)
# Pages of which pieces are shown: what they take for granted.
STAGED = (
    "README.md",
    "data.md",
    "observing.md",
    "petab.md",
    "studio.md",
    "concepts/intervals.md",
    "benchmark.md",
    "coming_from/copasi.md",
    "coming_from/pypesto.md",
)
WHOLE = [
    name
    for name in PAGES
    if name.startswith(("tutorials/", "how-to/", "concepts/idea", "coming_from/")) and BLOCKS[name]
]
WHOLE = [name for name in (*WHOLE, "index.md") if name not in STAGED]
# Pages about problems in PEtab and models in SBML.
_EXCHANGED = ("petab.md", "coming_from/copasi.md", "coming_from/pypesto.md")
# What makes a command that takes hours one of seconds: the same command, on less.
_LESS = {
    "paper": ["--draws", "1", "--systems", "lotka_volterra", "--methods", "odin-paper,gpr", "--workers", "1"],
    "decay.toml": ["--draws", "1", "--methods", "odin,sampler,limit", "--workers", "1"],
}
# Commands with these words run among the slow tests: they start processes, or are about the paper's grid.
_SLOW = {"--each", "--workers", "--cluster", "runs", "decay-report"}


def run_page(run: Run, name: str, parts: list[Block]) -> None:
    """Run the blocks of a page, and hold what they print against what it shows."""
    printed = ""
    for block in parts:
        if block.language == "{picture}":
            assert run.figure(block.beside).axes, f"{name}:{block.line} draws nothing"
        elif block.language == "text":
            assert agree(block.text, printed), f"{name}:{block.line} shows something else than is printed:\n{printed}"
        else:
            printed = run.block(block, name)


@pytest.mark.parametrize("name", WHOLE)
def test_a_page_runs_from_an_empty_folder_and_prints_what_it_shows(name: str, tmp_path: Path):
    run_page(Run(tmp_path), name, BLOCKS[name])


def test_what_a_page_shows_is_told_from_what_it_does_not():
    assert agree("k  0.54\n…\nend", "k   0.541\n\na\nb\nend\n")
    assert agree("from −1.5 to inf\n-----", "from -1.5 to inf\n--------")
    assert not agree("k 0.54", "k 0.64")
    assert not agree("k 0.54", "c 0.54")
    assert not agree("k 0.54\n…", "c 0.1\nk 0.54")
    assert not agree("a\n…\nend", "a\nb")


def staged(name: str, folder: Path, fit: od.Fit) -> dict[str, Any]:
    """Write the files that a page takes for granted, and give the names that its Python does; README takes none."""
    if name == "README.md":
        return {}
    lv = "prey' = a*prey - b*prey*predator\npredator' = -c*predator + d*prey*predator\n"
    files = {"model.ode": lv, "with_limit.ode": lv.replace("\n", " - e*prey^2\n", 1), "without.ode": lv}
    experiment = fit.experiments["1"]
    table = pd.DataFrame({"time": experiment.t, "prey": experiment.y[:, 0], "predator": experiment.y[:, 1]})
    names: dict[str, Any] = {"od": od, "fit": fit, "t": [0.5, 1.0]}
    if name == "data.md":
        files["model.ode"] = "h' = r*h*(1 - h/K); log r, K"
        days, h = np.arange(8.0), np.array([0.57, 1.31, 2.48, 4.13, 6.76, 8.35, 9.10, 9.78])
        table = pd.DataFrame({"time": days, "h": h})
        frame = pd.DataFrame({"Days since dose": days, "height [cm]": h, "Tree": "a"})
        frame.to_excel(folder / "data.xlsx", index=False)
        names |= {"frame": frame, "t": days, "y": np.stack([h, h[::-1]], 1)}
    if name == "each.md":
        parts = [table.assign(experiment=f"plot {i}") for i in (16, 17)]
        pd.concat(parts).to_csv(folder / "plots.csv", index=False)
    if name in _EXCHANGED:
        files["model.ode"] = "A' = -k1*A + k2*B\nB' = k1*A - k2*B\nA(0) = 1; B(0) = 0; log k1, k2"
        files["model.ode"] += "\nA ~ normal(A, 0.02); B ~ normal(B, 0.02)"
        a = np.array([1.02, 0.72, 0.58, 0.52, 0.45, 0.45, 0.41])
        table = pd.DataFrame({"time": np.arange(7.0) / 2, "A": a, "B": 1.01 - a})
    table.to_csv(folder / "data.csv", index=False)
    for file, text in files.items():
        (folder / file).write_text(text, "utf-8")
    if name in _EXCHANGED:
        Run(folder).block(Block("sh", "", "odinfer convert model.ode data.csv --petab .", 0))
    return names


def shell(name: str) -> list[tuple[Block, list[str]]]:
    """The commands of a page's blocks for the shell, and the blocks between them, which have none."""
    found = []
    for block in BLOCKS[name]:
        found += [(block, words) for words in commands(block.text)] if block.language == "sh" else [(block, [])]
    return found


def run_command(run: Run, words: list[str], name: str) -> str:
    """What a command of a page prints: a studio its address, before it is ended."""
    if words[:2] == ["odinfer", "studio"]:
        pytest.importorskip("starlette")
        given = [run.folder / w if w.endswith((".ode", ".csv")) else w for w in words[2:]]
        running = Running(*[w if before != "--port" else 0 for before, w in zip(["", *given], given, strict=False)])
        assert running.stop() == (0, "")
        return running.url
    if words[:3] == ["odinfer", "bench", "run"]:
        words = [*words, *_LESS[words[3]]]
    if "--workers" in words:
        at = words.index("--workers") + 1
        words = [*words[:at], str(min(int(words[at]), 2)), *words[at + 1 :]]
    return run.block(Block("sh", "", shlex.join(words), 0), name)


@pytest.mark.parametrize("name", STAGED)
def test_pieces_of_a_page_run_where_their_files_are(name: str, tmp_path: Path, lv_fit: od.Fit):
    run = Run(tmp_path, staged(name, tmp_path, lv_fit))
    for block, words in shell(name):
        if not words:
            run.block(block, name)
        elif not _SLOW & {*words}:
            run_command(run, words, name)


LONG = [name for name in (*STAGED, "each.md") if any(_SLOW & {*words} for _, words in shell(name))]


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_commands_that_take_long_run_on_less_and_two_processes(name: str, tmp_path: Path, lv_fit: od.Fit):
    run = Run(tmp_path, staged(name, tmp_path, lv_fit))
    for block, words in shell(name):
        if block.language == "toml" or (block.language == "python" and name == "each.md"):
            run.block(block, name)
        elif (_SLOW | {"decay.toml"}) & {*words} and "--cluster" not in words:
            run_command(run, words, name)


@pytest.mark.slow
def test_a_cluster_that_is_started_as_the_page_says_takes_the_work(tmp_path: Path, lv_fit: od.Fit):
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def here(words: list[str]) -> list[str]:
        return [w.replace("10.0.0.5", "127.0.0.1").replace("8786", port).replace("N", "1") for w in words]

    dask = [here(words)[1:] for _, words in shell("benchmark.md") if words[:1] == ["dask"]]
    mine = [here(words) for _, words in shell("each.md") if "--cluster" in words]
    assert (len(dask), len(mine)) == (2, 1)
    staged("each.md", tmp_path, lv_fit)
    log = (tmp_path / "dask.log").open("w")
    started = [
        subprocess.Popen([sys.executable, "-m", "dask", *words], cwd=tmp_path, stdout=log, stderr=log) for words in dask
    ]
    try:
        printed = Run(tmp_path).block(Block("sh", "", shlex.join(mine[0]), 0))
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)
        log.close()
    assert "plot 16" in printed or "2 of 2" in printed, printed


def recipe(target: str) -> list[list[str]]:
    """The commands of a target of the Makefile."""
    text = (ROOT / "Makefile").read_text("utf-8")
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.M)
    assert found
    return [words for words in commands(found[1].replace("$(BIN)/", "")) if words[0] != "@echo"]


def test_make_demo_prints_what_the_readme_shows(tmp_path: Path):
    run = Run(tmp_path)
    printed = [run_command(run, words, "Makefile") for words in recipe("demo")]
    shown = [block.text for block in BLOCKS["README.md"] if block.language == "text"]
    assert len(shown) == 1
    assert agree(shown[0], printed[-1]), printed[-1]


def test_make_studio_opens_the_example(tmp_path: Path):
    run = Run(tmp_path)
    assert "token=" in [run_command(run, words, "Makefile") for words in recipe("studio")][-1]


MADE = sorted({word for parts in BLOCKS.values() for block in parts if block.language == "sh"
               for words in commands(block.text) if words[0] == "make" for word in words[1:]})  # fmt: skip


@pytest.mark.parametrize("target", MADE)
def test_what_make_would_run_is_there(target: str):
    told = subprocess.run(["make", "-n", target, "BIN=bin"], cwd=ROOT, capture_output=True, text=True, check=True)
    ran = [words for words in commands(told.stdout) if words[0].startswith("bin/")]
    assert ran
    for tool, *words in ran:
        if tool == "bin/odinfer":
            _parsed(words, "Makefile")
        elif tool == "bin/python" and words[0] == "-m":
            assert importlib.util.find_spec(words[1]), words
        elif tool == "bin/python":
            assert (ROOT / words[0]).exists(), words
        else:
            assert tool in ("bin/ruff", "bin/mypy"), tool


def test_every_command_is_one_that_there_is():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    seen = set()
    for name, parts in BLOCKS.items():
        for words in (words for block in parts if block.language == "sh" for words in commands(block.text)):
            seen.add(words[0])
            if words[0] == "odinfer":
                _parsed(words[1:], name)
            elif words[0] == "make":
                assert {*words[1:]} <= targets, f"{name}: {words}"
            elif words[0] == "pip":
                assert {*re.findall(r"\[(\w+)\]", words[-1])} <= {*extras}, f"{name}: {words}"
            elif words[0] == ".venv/bin/python":
                assert (ROOT / words[1]).exists(), f"{name}: {words}"
            else:
                assert words[0] == "dask", f"{name}: what is {words[0]}?"
    assert {"odinfer", "make", "pip"} <= seen


def _parsed(words: list[str], name: str) -> None:
    """The command line reads these words; nothing is run."""
    group: Any = command()
    while hasattr(group, "commands"):
        assert words[0] in group.commands, f"{name}: there is no 'odinfer {words[0]}'"
        group, words = group.commands[words[0]], words[1:]
    group.make_context("odinfer", list(words))


def test_commands_and_python_are_marked_as_such():
    for name, parts in BLOCKS.items():
        for block in parts:
            if block.language == "":
                assert not re.search(r"^(odinfer|make|pip|import) ", block.text, re.M), (
                    f"{name}:{block.line}: mark it sh"
                )
            if block.language == "ode":
                assert od.candidates(block.text, "page") if "'" in block.text else True, f"{name}:{block.line}"


def _examples() -> dict[str, doctest.DocTest]:
    """The examples in docstrings of what is public."""
    finder, found = doctest.DocTestFinder(exclude_empty=True), {}
    for name in dir(od):
        thing = getattr(od, name)
        if not name.startswith("_") and getattr(thing, "__module__", "").startswith("odinfer"):
            found |= {test.name: test for test in finder.find(thing, name, module=False, globs={}) if test.examples}
    return found


EXAMPLES = _examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_in_a_docstring_gives_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    runner = doctest.DocTestRunner(checker=_Checker(), verbose=False)
    assert runner.run(EXAMPLES[name], out=told.append).failed == 0, "".join(told)


class _Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return agree(want, got)


def test_what_people_begin_with_has_an_example():
    begin = {"fit", "Model", "Model.from_text", "read_csv", "Data", "Problem", "compare", "fit_each", "simulate"}
    assert begin | {"loglik", "candidates", "Fit"} <= {*EXAMPLES}


def test_every_model_on_the_page_has_data():
    assert len(MODELS) == PAGE.count("```ode\n") >= 9  # those with a name are files, for the commands there


@pytest.mark.parametrize(("text", "table"), MODELS, ids=[text.partition("'")[0] for text, _ in MODELS])
def test_every_model_on_the_page_is_fitted_and_not_contradicted(text: str, table: str, tmp_path: Path):
    (tmp_path / "data.csv").write_text(table)
    model = od.Model.from_text(text)
    fit = od.fit(model, od.read_csv(tmp_path / "data.csv", inputs=model.inputs))
    assert fit.converged
    assert not fit.warnings
    assert all(low < fit.theta[name] < high for name, (low, high) in fit.interval().items())
    assert "contradict" not in repr(fit)


def links(text: str) -> list[str]:
    """What a page links to, code left out."""
    prose = re.sub(r"^(`{3,})[^\n]*\n.*?^\1", "", text, flags=re.S | re.M)
    return re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", prose))


def anchors(text: str) -> set[str]:
    """The names of a page's headings, as they are in addresses."""
    heads = re.findall(r"^#+ +(.*)$", re.sub(r"^(`{3,})[^\n]*\n.*?^\1", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", [*PAGES, *OTHERS])
def test_links_lead_somewhere(name: str):
    home = (DOCS if name in PAGES else ROOT) / name
    for link in links(home.read_text("utf-8")):
        address = urlsplit(link)
        if address.scheme:
            assert address.scheme in ("https", "mailto"), f"{name}: {link}"
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", address.netloc), f"{name}: {link}"
            continue
        target = (home.parent / address.path).resolve() if address.path else home
        assert target.exists(), f"{name} links to {link}"
        if address.fragment:
            assert address.fragment in anchors(target.read_text("utf-8")), f"{name}: no heading for {link}"


def _reachable(start: str) -> set[str]:
    found, todo = set(), [start]
    while todo:
        page = todo.pop()
        if page not in found:
            found.add(page)
            for block in BLOCKS[page]:
                lines = block.text.splitlines() if block.language == "{toctree}" else []
                own = [line.strip() for line in lines if line.strip() and not line.startswith(":")]
                todo += [str((Path(page).parent / entry).with_suffix(".md")) for entry in own]
    return found


def test_every_page_is_in_the_table_of_contents():
    assert _reachable("index.md") == set(PAGES)
