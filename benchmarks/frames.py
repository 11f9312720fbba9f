"""Computing time of a frame on the page of the studio while a slider moves, with large data, in Chromium.

    python benchmarks/frames.py [--moves 60]

Prints, for each case of ten states, milliseconds of computing time per drawn frame: of the main thread of the page
(script, layout and painting, all charts in sight), and of the worker beside it that computes the curves.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

STATES = 10


def model() -> str:
    """A ring of states that flow into each other, with an input of material into the first."""
    names = [f"x{k + 1}" for k in range(STATES)]
    flows = [f"{n}' = k{(k or STATES)}*{names[k - 1]} - k{k + 1}*{n}" for k, n in enumerate(names)]
    return "\n".join([flows[0] + " + 0.3*sin(t)", *flows[1:]]) + "\n"


def table(rows: int, subjects: int) -> bytes:
    """Noisy observations of all states, `rows` in all."""
    rng = np.random.default_rng(0)
    each = rows // subjects
    stream = io.StringIO()
    names = ",".join(f"x{k + 1}" for k in range(STATES))
    stream.write(f"time,{'subject,' if subjects > 1 else ''}{names}\n")
    for i in range(subjects):
        t = np.linspace(0, 40, each)
        x = 2 + np.sin(t[:, None] * 0.5 + np.arange(STATES)) + rng.normal(0, 0.1, (each, STATES)) + 0.01 * i
        for time, values in zip(t, x, strict=True):
            own = f"s{i + 1}," if subjects > 1 else ""
            stream.write(f"{time:.4f},{own}{','.join(f'{v:.4g}' for v in values)}\n")
    return stream.getvalue().encode()


DRAG = """async (moves) => {
  const slider = document.querySelector('.slider input[type=range]'), drawn = () => Number(document.body.dataset.drawn);
  for (let i = 0; i < moves; i++) {
    const before = drawn();
    slider.value = 300 + Math.round(400 * i / moves);
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    while (drawn() === before) await new Promise(requestAnimationFrame);
  }
}"""


def measured(page: Any, moves: int) -> dict[str, float]:
    """Computing time in milliseconds per frame of the page's main thread and of its worker, while a slider moves."""
    from apps.studio.browsing import still

    still(page)
    page.evaluate(DRAG, 5)
    client = page.context.new_cdp_session(page)
    events: list[dict[str, Any]] = []
    ended: list[Any] = []
    client.on("Tracing.dataCollected", lambda found: events.extend(found["value"]))
    client.on("Tracing.tracingComplete", lambda _: ended.append(True))
    client.send("Tracing.start", {"categories": "devtools.timeline,toplevel", "transferMode": "ReportEvents"})
    page.evaluate(DRAG, moves)
    client.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(50)
    tasks: dict[int, float] = {}
    for event in events:
        if event["name"].endswith("RunTask"):
            tasks[event["tid"]] = tasks.get(event["tid"], 0.0) + event.get("tdur", 0) / 1e3 / moves
    main = next(event["tid"] for event in events if event["name"] == "FireAnimationFrame")
    workers = {event["tid"] for event in events if event["name"] == "HandlePostMessage"} - {main}
    return {"page": tasks[main], "worker": sum(tasks[one] for one in workers)}


def main() -> None:
    from apps.studio.running import Running
    from browsers import chromium

    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=60)
    moves = parser.parse_args().moves
    studio = Running()
    studio.login()
    try:
        with chromium() as browser:
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            name, _, value = studio.cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": f"http://{studio.host}"}])
            for words, rows, subjects in (
                ("1 series, 400 rows", 400, 1),
                ("1 series, 20,000 rows", 20_000, 1),
                ("50 subjects, 20,000 rows", 20_000, 50),
                ("50 subjects, 1,000 rows", 1_000, 50),
            ):
                page = context.new_page()
                page.set_default_timeout(120_000)
                page.goto(f"http://{studio.host}/")
                files = [("d.csv", table(rows, subjects)), ("ring.ode", model().encode())]
                page.wait_for_selector("#examples button")
                page.set_input_files("#file", [{"name": n, "mimeType": "text/plain", "buffer": b} for n, b in files])
                page.wait_for_selector(f".slider:nth-child({STATES})")
                page.wait_for_function("() => Number(document.body.dataset.drawn) > 0")
                page.wait_for_timeout(20_000 if rows > 1000 else 5000)  # the guess has arrived
                page.set_viewport_size({"width": 1280, "height": 3000})  # all charts are in sight
                found = measured(page, moves)
                print(f"{words}: {found['page']:.0f} ms a frame, {found['worker']:.0f} ms for the curves", flush=True)
                page.close()
    finally:
        studio.stop()


if __name__ == "__main__":
    main()
