"""The site builds without a warning, has every public name, and asks no other machine for anything."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx.util.inventory import InventoryFile

import odinfer as od
from browsers import CHROMIUM, chromium, serious

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without its pictures: the code behind these is run by `test_docs`."""
    folder = tmp_path_factory.mktemp("site") / "html"
    arguments = ["-W", "--keep-going", "-q", "-D", "run_pages=0", "-b", "html", "docs", folder]
    run = subprocess.run([sys.executable, "-m", "sphinx", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-4000:]
    return folder


def test_every_public_name_is_in_the_reference(site: Path):
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    documented = {name for kind in inventory.data.values() for name in kind}
    private = {"TYPE_CHECKING", "Any", "importlib", "systems"}
    public = {name for name in dir(od) if not name.startswith("_") and name not in private}
    public = {name for name in public if not _is_module(getattr(od, name))}
    assert public <= {name.removeprefix("odinfer.") for name in documented}
    assert {
        "odinfer.FitResult.interval",
        "odinfer.Fit.bootstrap",
        "odinfer.Model.from_text",
        "odinfer.paper.systems.System",
    } <= documented


def _is_module(thing: object) -> bool:
    return type(thing).__name__ == "module"


def test_every_command_is_in_the_reference(site: Path):
    page = (site / "reference" / "command.html").read_text("utf-8")
    for command in ("fit", "check", "compare", "simulate", "convert", "example", "studio", "bench run", "bench report"):
        assert f"odinfer {command}<" in page, command
    assert "--uncertainty" in page


def test_nothing_is_fetched_from_elsewhere(site: Path):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    linked = r"<link\b(?=[^>]*rel=\"(?:stylesheet|icon|preload|preconnect)\")[^>]*href=\"([^\"]*)\""
    for page in pages:
        text = page.read_text("utf-8")
        fetched = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]*)\"", text)
        fetched += re.findall(linked, text)
        assert fetched
        assert not [link for link in fetched if re.match(r"\w+:|//", link) and not link.startswith("data:")], page
    for sheet in site.rglob("*.css"):
        addresses = re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", sheet.read_text("utf-8"))
        assert not [a for pair in addresses for a in pair if re.match(r"https?:|//", a)], sheet


def test_pictures_have_words(site: Path):
    pictures = re.findall(
        r'<div [^>]*class="picture"[^>]*>', "".join(p.read_text("utf-8") for p in site.rglob("*.html"))
    )
    assert len(pictures) >= 6
    assert all(re.search(r'role="img" aria-label="[^"]{40,}"', picture) for picture in pictures)


def asked_by(page: str, folder: Path) -> set[str]:
    """Addresses beyond the disk that a page asks for, as Chromium logs it; not what the browser asks for itself."""
    log = folder / "log.json"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
    flags += [f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--virtual-time-budget=3000"]
    subprocess.run([str(CHROMIUM), *flags, f"file://{page}"], capture_output=True, timeout=120, check=True)
    found = [event.get("params", {}) for event in json.loads(log.read_text("utf-8"))["events"]]
    return {p["url"] for p in found if "url" in p and p.get("network_isolation_key", "").startswith("file:")}


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_no_request_leaves_the_machine(site: Path, tmp_path: Path):
    (tmp_path / "asking.html").write_text('<img src="https://elsewhere.example/picture.png">')
    assert asked_by(f"{tmp_path}/asking.html", tmp_path) == {"https://elsewhere.example/picture.png"}
    for page in ("index.html", "tutorials/first_fit.html", "reference/results.html", "search.html?q=interval"):
        assert not asked_by(f"{site}/{page}", tmp_path), page


PAGES = (
    "index",
    "tutorials/first_fit",
    "how-to/noise",
    "concepts/idea",
    "gallery",
    "equations",
    "petab",
    "reference/results",
    "reference/command",
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_serious_findings_of_accessibility_and_nothing_beyond_the_edge(site: Path, browser, scheme: str, width: int):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for name in PAGES:
        page.goto(f"file://{site}/{name}.html")
        assert serious(page) == [], name
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, name
    context.close()
