"""Draw the screenshots of the landing page: the page of the studio after a fit, and a report.

python docs/_site/screenshots.py     (needs Chromium and Playwright: make test-browser)
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
STATIC = Path(__file__).parent / "static"
sys.path.insert(0, str(ROOT / "tests"))

from apps.command.commands import odinfer  # noqa: E402
from apps.studio.browsing import example, fit  # noqa: E402
from apps.studio.running import Running  # noqa: E402
from browsers import chromium  # noqa: E402

SIZE = {"width": 1280, "height": 1000}


def main() -> None:
    studio = Running()
    studio.login()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        context = browser.new_context(viewport=SIZE, reduced_motion="reduce")
        name, _, value = studio.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": f"http://{studio.host}"}])
        page = context.new_page()
        page.goto(f"http://{studio.host}/")
        example(page, "Prey and predators")
        fit(page)
        page.wait_for_selector(".estimate")
        page.wait_for_timeout(1500)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=STATIC / "page.png")
        files = ["lotka_volterra.ode", "lotka_volterra.csv"]
        odinfer("example", "lotka_volterra", ".", cwd=Path(folder))
        odinfer("fit", *files, "--truth", "truth.json", "-o", "out", cwd=Path(folder))
        page.goto(f"file://{folder}/out/report.html")
        page.wait_for_timeout(500)
        page.screenshot(path=STATIC / "report.png")
    studio.stop()
    for name in ("page.png", "report.png"):  # few colours make small files
        image = Image.open(STATIC / name).convert("RGB")
        image.quantize(128, dither=Image.Dither.NONE).save(STATIC / name, optimize=True)


if __name__ == "__main__":
    main()
