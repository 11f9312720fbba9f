"""Whatever somebody does on the page, in any order: nothing breaks, and every result is of what stands beside it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from apps.studio.browsing import LONG, drop, example, fit
from odinfer.apps.command.example import FOLDER

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LOTKA = (FOLDER / "lotka_volterra.csv").read_text()
DECAY = "time,x\n" + "".join(f"{i},{8 * 0.7**i + 0.1 * (-1) ** i:.3f}\n" for i in range(12))
PAIR = "time,experiment,x\n" + "".join(
    f"{i},{e},{8 * k**i:.3f}\n" for e, k in (("a", 0.7), ("b", 0.8)) for i in range(9)
)
VERDICT = "() => getComputedStyle(document.querySelector('#headline')).fontWeight"


def test_second_data_with_any_column_name_can_be_brought(page):
    example(page, "Prey and predators")
    for i, header in enumerate(("height [cm]", "x (mg)", "dry-weight", "25°C", "100%", "a\\d+$", "Größe|x")):
        drop(page, f"other{i}.csv", DECAY.replace("time,x", f"time,{header}"))
        page.wait_for_function(
            "(name) => document.querySelector('#file-name').textContent === name", arg=f"other{i}.csv"
        )
        page.wait_for_function("() => document.querySelectorAll('#charts h3').length === 1")
        assert page.is_hidden("#message"), header
        page.wait_for_selector("#fit:enabled")
        assert page.inner_text("#model-error") == "", header


def test_a_second_job_has_a_bar_that_ticks_and_can_be_cancelled_while_the_first_writes_its_report(page):
    example(page, "Prey and predators")
    fit(page)  # the report is being written now
    page.click("[data-kind=sample]")
    page.wait_for_selector("#job:not([hidden])")
    page.wait_for_function("() => / [1-9]\\d* s/.test(document.getElementById('job-words').textContent)")
    page.click("#cancel")
    page.wait_for_selector("#job", state="hidden")
    page.wait_for_timeout(500)
    assert page.is_hidden("#job")
    assert page.is_visible("#verdict")


def test_other_data_take_the_results_of_earlier_data_away(page):
    example(page, "Prey and predators")
    fit(page)
    assert page.locator(".estimate").count() > 0
    drop(page, "later.csv", LOTKA.replace("\n0,", "\n100,"))
    page.wait_for_function("() => document.querySelector('#file-name').textContent === 'later.csv'")
    page.wait_for_selector("#verdict", state="hidden")
    assert page.is_hidden("#results")
    assert page.locator(".estimate").count() == 0
    assert "prey*predator" in page.input_value("#editor textarea")


def test_a_changed_model_has_no_verdict_in_bold_green(page):
    example(page, "Prey and predators")
    fit(page)
    assert page.evaluate(VERDICT) == "600"
    page.locator("#editor textarea").press("Control+End")
    page.locator("#editor textarea").press_sequentially("0 < a < 9")
    page.wait_for_selector("#stale:not([hidden])")
    assert page.get_attribute("#verdict", "class") == "verdict stale-card"


def test_a_fit_moves_the_sliders_and_undo_puts_them_back(page):
    example(page, "Prey and predators")
    value = "(words) => document.querySelector(`[aria-label='Value of a']`)?.value === words"
    page.fill("[aria-label='Value of a']", "3")
    page.press("[aria-label='Value of a']", "Enter")
    page.wait_for_selector("#guess:not([hidden])")
    fit(page)
    page.wait_for_function(value, arg="2.019")
    page.click("#undo")
    page.wait_for_function(value, arg="3")
    page.click("#redo")
    page.wait_for_function(value, arg="2.019")
    page.click("[aria-label='Fix b']")
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('fixed b')")
    page.click("#undo")
    page.wait_for_function("() => !document.querySelector('#editor textarea').value.includes('fixed b')")


def test_a_drag_offers_the_way_back_to_the_guess(page):
    example(page, "Prey and predators")
    slider = page.locator(".slider input[type=range]").first
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#guess:not([hidden])")


def test_a_dropped_model_replaces_the_one_that_nobody_has_written(page):
    drop(page, "d.csv", DECAY)
    page.wait_for_selector(".chart canvas")
    drop(page, "mine.ode", "x' = -k*x\n")
    page.wait_for_function("() => document.querySelector('#model-name').value === 'mine'")
    assert page.locator("#model-tabs [role=tab]").all_inner_texts() == ["Model"]
    drop(page, "other.ode", "x' = -k*x + c\n")
    page.wait_for_function("() => document.querySelector('#model-name').value === 'other'")
    assert page.locator("#model-tabs [role=tab]").all_inner_texts() == ["A", "B"]


def test_back_and_forward_stay_in_the_studio(page):
    example(page, "Prey and predators")
    page.go_back()
    page.wait_for_selector("body[data-view=welcome]")
    page.go_forward()
    page.wait_for_selector("body[data-view=workspace]")
    assert page.locator(".chart canvas").count() == 2
    page.go_back()
    page.click("#back")
    page.wait_for_selector("body[data-view=workspace]")


# What must hold at any moment, said as what does not.
BROKEN = """() => {
  const seen = (id) => document.getElementById(id).offsetParent !== null;
  const said = (id) => document.getElementById(id).textContent;
  const faults = [], card = document.getElementById("verdict"), view = document.body.dataset.view;
  if (!["welcome", "workspace"].includes(view)) faults.push(`view ${view}`);
  const open = view === "workspace", estimates = document.querySelector(".estimate");
  if (open && seen("stale") && !card.classList.contains("stale-card")) faults.push("a stale verdict in colour");
  if (open && !seen("verdict") && estimates) faults.push("estimates without a fit");
  const internal = /internal|Error|undefined|null|Invalid|not a function|answer any longer|process ended/;
  if (seen("message") && internal.test(said("message"))) faults.push(said("message"));
  const empty = [...document.querySelectorAll(".slider .value")].filter((box) => !/\\d/.test(box.value));
  faults.push(...empty.map((box) => `${box.ariaLabel}: ${box.value}`));
  const tabs = document.querySelectorAll("#model-tabs [aria-selected=true]").length;
  if (open && tabs !== 1) faults.push(`${tabs} chosen tabs`);
  return faults;
}"""
# The text is the truth: what can be moved is what the text has, and it stays after a reload.
NAMES = "() => [...document.querySelectorAll('.slider .name')].map((n) => n.firstChild.textContent)"


# Answers that take their time, and come in another order than they were asked for.
LATE = """(() => {
  const fetched = window.fetch;
  window.fetch = async (...given) => {
    const answer = await fetched(...given);
    if (String(given[0]).startsWith("/api/")) await new Promise((done) => setTimeout(done, 400 * Math.random() ** 2));
    return answer;
  };
})()"""


class Somebody:
    """Does one thing after the other, chosen at random."""

    def __init__(self, page: Any, seed: int) -> None:
        self.page, self.random = page, random.Random(seed)

    def act(self) -> None:
        acts = [self.load, self.type, self.type, self.drag, self.drag, self.press, self.press, self.press, self.cancel,
                self.tab, self.click, self.click, self.back, self.reload, self.choose]  # fmt: skip
        self.random.choice(acts)()

    def quickly(self, selector: str, nth: int = 0) -> None:
        """Click what can be seen, without waiting for it."""
        self.page.evaluate(
            "([s, n]) => { const all = [...document.querySelectorAll(s)].filter((b) => b.offsetParent && !b.disabled);"
            " all[n % Math.max(1, all.length)]?.click(); }",
            [selector, nth],
        )

    def load(self) -> None:
        if self.random.random() < 0.6:
            return
        files = [
            ("decay.csv", DECAY),
            ("lotka.csv", LOTKA),
            ("pair.csv", PAIR),
            ("my.ode", "x' = -k*x\n"),
            ("odd.csv", DECAY.replace("x", "x %")),
        ]
        drop(self.page, *self.random.choice(files))

    def type(self) -> None:
        if self.page.is_visible("#editor textarea"):
            texts = [
                "x' = -k*x\n",
                "x' = -k*x + c\n0 < c < 2\n",
                "x' = -k*x\nlocal k\n",
                "prey' = a*prey - b*prey*predator\npredator' = d*prey*predator - c*predator\n",
            ]
            self.page.fill("#editor textarea", self.random.choice([*texts, "x' = -k*", ""]))

    def drag(self) -> None:
        self.page.evaluate(
            "(share) => { const all = document.querySelectorAll('.slider input[type=range]:not(:disabled)');"
            " const one = all[Math.floor(share * all.length)]; if (!one) return;"
            " one.value = 1000 * share; one.dispatchEvent(new Event('input', { bubbles: true })); }",
            self.random.random(),
        )

    def press(self) -> None:
        self.quickly(self.random.choice(["#fit", "#fit", "#compare", "[data-kind=profile]", "#guess", "#take"]))

    def cancel(self) -> None:
        self.quickly("#cancel")

    def tab(self) -> None:
        self.quickly(self.random.choice(["#duplicate", "#remove", "#model-tabs [role=tab]"]), self.random.randrange(4))

    def click(self) -> None:
        self.quickly(self.random.choice([".pin", "#undo", "#redo", ".more", ".choice"]), self.random.randrange(8))

    def back(self) -> None:
        if self.random.random() < 0.3 and self.page.get_attribute("body", "data-view") == "workspace":
            self.page.go_back()
            if self.page.url == "about:blank":  # which was there before the studio
                self.page.go_forward()
            self.page.wait_for_selector("body:not([data-view=loading])")
        else:
            self.quickly("#back")

    def choose(self) -> None:
        """Another experiment, if there are several."""
        self.page.evaluate(
            "(share) => { const one = document.querySelector('#experiment'); if (!one.offsetParent) return;"
            " one.selectedIndex = Math.floor(share * one.length); one.dispatchEvent(new Event('change')); }",
            self.random.random(),
        )

    def reload(self) -> None:
        if self.random.random() < 0.2:
            self.page.reload()
            self.page.wait_for_selector("body:not([data-view=loading])")


@pytest.mark.parametrize("seed", [1, 2])
def test_two_hundred_random_actions_break_nothing(page, seed):
    page.expected += ["400", "ERR_", "Failed to fetch"]
    page.set_viewport_size({"width": 1280, "height": 800})
    page.add_init_script(LATE)
    page.reload()
    example(page, "Prey and predators")
    somebody = Somebody(page, seed)
    for i in range(200):
        somebody.act()
        assert page.evaluate(BROKEN) == [], i
    if page.get_attribute("body", "data-view") == "welcome":
        page.evaluate("document.getElementById('back').click()")
    while page.is_visible("#cancel"):
        page.evaluate("document.getElementById('cancel').click()")
        page.wait_for_timeout(100)
    page.wait_for_selector("body:not([aria-busy=true])")  # a file that arrives may bring another model
    page.fill("#editor textarea", "x' = -k*x + c*t\n")
    page.wait_for_function(f'() => JSON.stringify(({NAMES})().slice(0, 2)) === \'["k","c"]\'', timeout=LONG)
    page.wait_for_timeout(600)
    assert page.evaluate(BROKEN) == []
    text = page.input_value("#editor textarea")
    page.reload()
    page.wait_for_selector("body[data-view=workspace]")
    page.wait_for_function("(text) => document.querySelector('#editor textarea').value === text", arg=text)


def test_data_with_other_columns_keep_what_somebody_wrote_and_examples_go(page):
    example(page, "Prey and predators")
    drop(page, "d.csv", DECAY)
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('x\\' = rate*x')")
    assert page.locator("#model-tabs [role=tab]").all_inner_texts() == ["Model"]
    page.fill("#editor textarea", "x' = -k*x + written\n")
    drop(page, "lotka.csv", LOTKA)
    page.wait_for_function("() => document.querySelectorAll('#model-tabs [role=tab]').length === 2")
    page.click("#model-tabs [role=tab] >> nth=1")
    assert "written" in page.input_value("#editor textarea")
    page.wait_for_selector("#file-name:has-text('lotka.csv')")
