"""The studio as people meet it: Chromium, the real server, and what is seen on the screen."""

from __future__ import annotations

import pytest

from apps.studio.browsing import LONG, box_of, differing, example, fit, guessed, pixels, still, type_model, until
from browsers import serious
from odinfer.apps.command.example import FOLDER

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


def test_the_whole_path_of_a_new_user_from_a_dropped_file_to_the_report(page, tmp_path):
    rows = (FOLDER / "lotka_volterra.csv").read_text().replace("prey,", "Hares [1000],").replace("predator", "Lynx")
    handle = page.evaluate_handle(
        """(text) => { const d = new DataTransfer(); d.items.add(new File([text], "my animals.csv")); return d; }""",
        rows,
    )
    page.dispatch_event("body", "drop", {"dataTransfer": handle})
    page.wait_for_selector(".chart canvas")
    page.wait_for_selector("label.name:has-text('rate_Hares')")
    assert page.locator("#charts h3").all_inner_texts() == ["Hares", "Lynx"]
    assert page.input_value("#editor textarea").splitlines()[1] == "Hares' = rate_Hares*Hares"
    type_model(page, "Hares' = a*Hares - b*Hares*Lynx\nLynx' = -c*Lynx + d*Hares*Lynx\n")
    page.wait_for_selector("label.name:has-text('d')")
    names = [words.split("\n")[0] for words in page.locator(".slider .name").all_inner_texts()]
    assert names == ["a", "b", "c", "d", "Hares(0)", "Lynx(0)"]
    fit(page)
    assert "consistent with the data" in page.inner_text("#headline")
    assert page.locator(".estimate").first.inner_text().startswith("estimate 2.019, 95 %: 1.880 to 2.17")
    page.click("#take")
    assert page.input_value("[aria-label='Value of a']") == "2.019"
    page.click("#downloads summary")
    page.wait_for_selector("#files button:has-text('report.html')", timeout=LONG)
    for name, words in {
        "report.html": b"<html",
        "fit.json": b'"theta"',
        "model.ode": b"Hares'",
        "fit.py": b"import odinfer",
    }.items():
        with page.expect_download() as found:
            page.click(f"#files button:has-text('{name}')")
        found.value.save_as(tmp_path / name)
        assert words in (tmp_path / name).read_bytes()
        assert found.value.suggested_filename == name
    assert "--map 'Hares [1000]=Hares'" in page.inner_text(".command")


def test_an_error_is_marked_at_its_place_while_typing(page):
    example(page, "Prey and predators")
    page.locator("#editor textarea").press("Control+End")
    page.locator("#editor textarea").press_sequentially("x' = 3 prey")
    page.wait_for_selector("#editor .wrong")
    assert "".join(page.locator("#editor .wrong").all_inner_texts()) == "3 prey"
    assert page.inner_text("#model-error").startswith("Line 4: cannot read '3 prey'")
    assert page.inner_text("#editor .gutter .bad") == "4"
    assert page.get_attribute("#editor textarea", "aria-invalid") == "true"
    assert page.is_disabled("#fit")
    page.click("#model-error")
    selected = "() => { const b = document.activeElement; return b.value.slice(b.selectionStart, b.selectionEnd); }"
    assert page.evaluate(selected) == "3 prey"
    page.locator("#editor textarea").press("Delete")
    page.locator("#editor textarea").press_sequentially("3*prey - x")
    page.wait_for_selector("#editor .wrong", state="detached")
    page.wait_for_selector("#charts h3:has-text('x')")


# Whether so many pixels of the first chart differ from those of the last time that they did.
MOVED = """(least) => {
  const canvas = document.querySelector(".chart canvas");
  const now = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const before = window.pixels ?? new Uint32Array(now.length);
  let count = 0;
  for (let i = 0; i < now.length; i++) count += now[i] !== before[i];
  if (count >= least) window.pixels = now;
  return count >= least;
}"""


def test_the_curve_follows_every_move_of_a_drag_in_the_picture(page):
    from playwright.sync_api import TimeoutError

    page.expected.append("willReadFrequently")  # of a canvas whose pixels a test looks at
    example(page, "Prey and predators")
    value = "() => document.querySelector(`[aria-label='Value of a']`)?.value"
    guessed(page)
    box = box_of(page, ".slider input[type=range]")
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    still(page)
    page.evaluate(MOVED, 1)
    drawn = 0
    for i in range(60):
        before = page.evaluate(value)
        page.mouse.move(box["x"] + box["width"] * (0.25 + 0.01 * (i + 1)), y)
        page.wait_for_function(f"(before) => ({value})() !== before", arg=before)
        try:
            page.wait_for_function(MOVED, arg=20, timeout=5000)
            drawn += 1
        except TimeoutError:
            pass
    page.mouse.up()
    assert drawn >= 59


def test_bounds_and_fixed_values_become_text_and_text_becomes_controls(page):
    example(page, "Prey and predators")
    page.fill("[aria-label='Lower bound of a']", "0.5")
    page.press("[aria-label='Lower bound of a']", "Enter")
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('0.5 < a')")
    page.fill("[aria-label='Upper bound of a']", "9")
    page.press("[aria-label='Upper bound of a']", "Tab")
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('0.5 < a < 9')")
    page.wait_for_function("""() => document.querySelector("[aria-label='Value of b']").value === '1.01'""")
    page.click("[aria-label='Fix b']")
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('fixed b = 1.01')")
    page.wait_for_selector("[aria-label='Fix b'][aria-pressed=true]")
    equations = "prey' = a*prey - b*prey*predator\npredator' = -c*predator + d*prey*predator\n"
    type_model(page, equations + "2 < c < 3; linear d\n")
    page.wait_for_function("""() => document.querySelector("[aria-label='Lower bound of c']")?.value === '2'""")
    assert page.input_value("[aria-label='Lower bound of a']") == ""
    assert page.locator(".slider .name small").all_inner_texts() == ["log", "log"]


def test_a_bound_is_kept_while_the_server_has_not_read_it_yet(page):
    example(page, "Prey and predators")
    guessed(page)
    page.evaluate("""() => {
      const fetched = window.fetch;
      window.fetch = async (path, ...more) => {
        if (path === "/api/understand") await new Promise((done) => { window.read = done; });
        return fetched(path, ...more);
      };
    }""")
    page.fill("[aria-label='Lower bound of a']", "0.5")
    page.press("[aria-label='Lower bound of a']", "Enter")
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('0.5 < a')")
    page.fill("[aria-label='Value of b']", "2")  # which draws sliders anew, if it may
    page.press("[aria-label='Value of b']", "Enter")
    page.fill("[aria-label='Upper bound of a']", "9")
    page.press("[aria-label='Upper bound of a']", "Enter")
    assert "0.5 < a < 9" in page.input_value("#editor textarea")
    page.evaluate("window.read()")
    page.wait_for_selector(".declared[aria-label='Upper bound of a']")
    assert page.input_value("[aria-label='Value of b']") == "2"


def test_scales_bounds_priors_and_starts_are_clicked_and_become_text(page):
    example(page, "Prey and predators")
    has = "(words) => document.querySelector('#editor textarea').value.includes(words)"
    page.click("[aria-label^='More about a']")
    page.click("[aria-label='Log scale of a']")
    page.wait_for_function(has, arg="\nlog a\n")
    page.wait_for_selector("[aria-label='Log scale of a'][aria-pressed=true]")
    page.click("[aria-label='Positive values of a']")
    page.wait_for_function(has, arg="\n0 < a\n")
    page.select_option("[aria-label='Prior of a']", "lognormal")
    page.wait_for_function(has, arg="\na ~ lognormal(2.02, 1)\n")
    page.wait_for_selector("[aria-label='Prior of a, median']")
    page.fill("[aria-label='Prior of a, median']", "3")
    page.press("[aria-label='Prior of a, median']", "Enter")
    page.wait_for_function(has, arg="\na ~ lognormal(3, 1)\n")
    page.wait_for_selector(".slider .name small:has-text('log, lognormal(3, 1)')")
    page.click("[aria-label='Start here of a']")
    page.wait_for_function(has, arg="\nstart a = ")
    page.wait_for_function("() => !document.querySelector('#model-error').textContent")
    page.wait_for_selector("[aria-label='Start here of a'][aria-pressed=true]")
    page.click("[aria-label='Linear scale of a']")
    page.wait_for_function(has, arg="\nlinear a\n")
    page.click("[aria-label='Scale not declared of a']")
    page.click("[aria-label='No bounds of a']")
    page.select_option("[aria-label='Prior of a']", "none")
    page.click("[aria-label='Any start of a']")
    page.wait_for_function(
        "(text) => document.querySelector('#editor textarea').value.trimEnd() === text.trimEnd()",
        arg=(FOLDER / "lotka_volterra.ode").read_text(),
    )


def test_sliders_start_where_the_data_suggest_and_find_back_there(page):
    example(page, "Prey and predators")
    value = "(words) => document.querySelector(`[aria-label='Value of a']`)?.value === words"
    page.wait_for_function(value, arg="2.02")
    before = pixels(page)
    assert page.is_hidden("#guess")
    page.fill("[aria-label='Value of a']", "3")
    page.press("[aria-label='Value of a']", "Enter")
    page.wait_for_selector("#guess:not([hidden])")
    until(page, lambda: differing(page, before) > 100)
    page.locator("#editor textarea").press("Control+End")
    with page.expect_response("**/api/understand"):
        page.locator("#editor textarea").press_sequentially("# what was moved stays")
    still(page)
    assert page.input_value("[aria-label='Value of a']") == "3"
    page.click("#guess")
    page.wait_for_function(value, arg="2.02")
    until(page, lambda: differing(page, before) < 100)


def test_columns_are_assigned_anew_by_clicking(page):
    example(page, "Prey and predators")
    before = pixels(page)
    page.select_option("[aria-label='What the column prey is']", "predator")
    page.wait_for_function(
        """() => document.querySelector("[aria-label='What the column predator is']").value === '-'"""
    )
    page.select_option("[aria-label='What the column predator is']", "prey")
    page.wait_for_function("() => !document.querySelector('#model-error').textContent")
    until(page, lambda: differing(page, before) > 100)
    type_model(page, "predator' = a*predator - b*prey*predator\nprey' = -c*prey + d*prey*predator\n")
    page.wait_for_function("() => !document.querySelector('#model-error').textContent")
    fit(page)
    assert "--map predator=prey --map prey=predator" in page.inner_text(".command")


def test_noise_of_columns_is_clicked_and_becomes_text_and_text_becomes_controls(page):
    example(page, "Prey and predators")
    has = "(words) => document.querySelector('#editor textarea').value.includes(words)"
    value = "([label, words]) => document.querySelector(`[aria-label='${label}']`)?.value === words"
    page.select_option("[aria-label='Noise of prey']", "lognormal")
    page.wait_for_function(has, arg="\nprey ~ lognormal(prey)\n")
    page.fill("[aria-label='Noise of prey, sd']", "0.1")
    page.press("[aria-label='Noise of prey, sd']", "Tab")
    page.wait_for_function(has, arg="\nprey ~ lognormal(prey, 0.1)\n")
    page.select_option("[aria-label='Noise of predator']", "student")
    page.wait_for_selector("[aria-label='Noise of predator, df']")
    page.fill("[aria-label='Noise of predator, df']", "7")
    page.press("[aria-label='Noise of predator, df']", "Enter")
    page.wait_for_function(has, arg="\npredator ~ student(predator, df=7)\n")
    assert "must be whole numbers" in page.inner_text("[aria-label='Noise of prey'] option[value=poisson]")
    assert page.is_disabled("[aria-label='Noise of prey'] option[value=poisson]")
    page.select_option("[aria-label='Noise of prey']", "normal")
    page.wait_for_function("() => !document.querySelector('#editor textarea').value.includes('prey ~')")
    page.locator("#editor textarea").press("Control+End")
    page.locator("#editor textarea").press_sequentially("prey ~ laplace(1.1*prey, 0.2)")
    page.wait_for_function(value, arg=["Noise of prey", "laplace"])
    assert page.input_value("[aria-label='What is measured as prey']") == "1.1*prey"
    assert page.input_value("[aria-label='Noise of prey, b']") == "0.2"
    page.wait_for_selector("#fit:enabled")
    assert page.inner_text("#model-error") == ""


def test_a_column_that_measures_something_of_the_model_is_clicked_and_written(page):
    rows = "time,S,new cases\n" + "".join(f"{i},{100 - 5 * i},{5 + i % 3}\n" for i in range(10))
    page.set_input_files("#file", {"name": "c.csv", "mimeType": "text/csv", "buffer": rows.encode()})
    page.wait_for_selector(".chart canvas")
    type_model(page, "S' = -b*S\n0 < b < 1\n")
    page.wait_for_selector("[aria-label='What the column new cases is'] option[value='=']", state="attached")
    page.select_option("[aria-label='What the column new cases is']", "=")
    page.wait_for_selector("[aria-label='What is measured as new_cases']")
    page.fill("[aria-label='What is measured as new_cases']", "b*S")
    page.press("[aria-label='What is measured as new_cases']", "Tab")
    page.select_option("[aria-label='Noise of new_cases']", "poisson")
    has = "(words) => document.querySelector('#editor textarea').value.includes(words)"
    page.wait_for_function(has, arg="\nnew_cases ~ poisson(b*S)\n")
    page.wait_for_function("() => !document.querySelector('#model-error').textContent")
    page.wait_for_selector("#charts h3:has-text('new_cases')")


def test_a_fit_is_cancelled_and_another_one_runs(page):
    example(page, "Prey and predators")
    fit(page)
    page.click("[data-kind=sample]")
    page.wait_for_selector("#job:not([hidden])")
    page.click("#cancel")
    page.wait_for_selector("#job", state="hidden")
    page.click("[data-kind=profile]")
    page.wait_for_selector("[data-kind=profile].done", timeout=LONG)
    assert page.locator("h3:has-text('Profiles')").count() == 1
    assert page.locator(".results .small-charts").nth(1).locator(".chart").count() == 4


def test_models_are_duplicated_changed_and_compared(page):
    example(page, "Prey and predators")
    page.click("#duplicate")
    type_model(page, "prey' = a*prey - b*prey*predator\npredator' = -c*predator + d*prey\n")
    page.wait_for_selector("#model-error:empty", state="attached")
    page.click("#compare")
    page.wait_for_selector("h3:has-text('Models, the best first')", timeout=LONG)
    first = page.locator(".results table").first.locator("tbody tr").first.inner_text()
    assert first.startswith("A lotka_volterra")
    assert "is preferred over" in page.inner_text("#headline")
    # All of its columns are in sight, risk and p among them.
    header = page.locator(".results table").first.locator("th")
    assert header.all_inner_texts()[-2:] == ["risk", "p"]
    wrap = "() => { const w = document.querySelector('.results .table-wrap'); return w.scrollWidth <= w.clientWidth; }"
    assert page.evaluate(wrap)
    assert "B lotka_volterra 2" in page.inner_text("#fit-keys")
    page.click("#model-tabs [role=tab]:has-text('A')")
    page.wait_for_selector("#verdict", state="hidden")


def test_a_reload_finds_everything_again_and_two_tabs_are_apart(page, context, studio):
    example(page, "Prey and predators")
    fit(page)
    page.click("#take")
    page.fill("#model-name", "mine")
    page.press("#model-name", "Enter")
    page.locator("#editor textarea").press("Control+End")
    page.locator("#editor textarea").press_sequentially("# still here\n0 < a < 7")
    page.wait_for_function("""() => document.querySelector("[aria-label='Upper bound of a']")?.value === '7'""")
    page.reload()
    page.wait_for_selector("#verdict:not([hidden])")
    assert "still here" in page.input_value("#editor textarea")
    assert page.input_value("#model-name") == "mine"
    assert page.input_value("[aria-label='Value of a']") == "2.019"
    assert page.is_visible("#stale")
    other = context.new_page()
    other.goto(f"http://{studio.host}/")
    other.wait_for_selector("#examples button")
    assert other.get_attribute("body", "data-view") == "welcome"
    example(other, "A spiking neuron")
    page.reload()
    page.wait_for_selector("#verdict:not([hidden])")
    page.wait_for_selector("#charts .chart canvas")  # results have charts as well, and may be there before
    assert page.locator("#charts h3").all_inner_texts() == ["prey", "predator"]
    other.close()


def test_hidden_states_doses_events_inputs_and_limits_are_drawn(page):
    for words, columns in (
        ("Theophylline", ["conc", "gut hidden", "body hidden"]),
        ("A drug swallowed every 12 hours", None),
        ("Influenza in a boarding school", None),
        ("A damped oscillator", ["position", "velocity"]),
        ("An antibody in three patients", None),
    ):
        page.click(f"#examples button:has-text('{words}')")
        page.wait_for_function("(words) => document.querySelector('#editor textarea').value.includes(words)", arg=words)
        page.wait_for_selector("#fit:enabled")
        page.wait_for_selector("#charts .chart canvas")
        assert page.inner_text("#model-error") == "", words
        if columns:
            titles = "() => [...document.querySelectorAll('#charts h3')].map((h) => h.textContent).join()"
            page.wait_for_function(f"(words) => ({titles})() === words", arg=",".join(columns))
        if page.is_visible("#experiment"):
            page.select_option("#experiment", index=1)
            still(page)
        assert page.locator("#charts .chart canvas").count() >= 1, words
        page.click("#home")


def test_a_phone_shows_everything_without_scrolling_sideways(page):
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    example(page, "Prey and predators")
    fit(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    box_of(page, ".slider input[type=range]")
    chart, slider = page.locator(".chart").first.bounding_box(), page.locator(".slider").first.bounding_box()
    assert chart["y"] >= 0  # still in sight
    assert slider["y"] >= chart["y"] + chart["height"] - 1


def test_a_chart_is_saved_on_a_touch_screen(browser, context, studio):
    size = {"width": 390, "height": 800}
    telephone = browser.new_context(viewport=size, has_touch=True, is_mobile=True, device_scale_factor=2)
    telephone.add_cookies(context.cookies())
    page = telephone.new_page()
    page.goto(f"http://{studio.host}/")
    page.tap("#examples button:has-text('Prey and predators')")
    page.wait_for_selector(".chart canvas")
    with page.expect_download() as found:
        page.tap("[aria-label='Save the picture as an SVG file: prey']")
    assert found.value.suggested_filename == "prey.svg"
    below = "() => document.querySelector('.exports').getBoundingClientRect().top"
    assert page.evaluate(below) >= page.evaluate(below.replace(".exports", ".plot").replace("top", "bottom")) - 1
    telephone.close()


def test_a_file_that_cannot_be_read_says_why_and_nothing_is_lost(page):
    page.expected.append("400")
    example(page, "Prey and predators")
    page.set_input_files("#file", {"name": "bad.csv", "mimeType": "text/csv", "buffer": b"time,x\n0,1\n1\n"})
    page.wait_for_selector("#message:not([hidden])")
    assert "expected 2 as in the header" in page.inner_text("#message")
    assert page.locator("#charts h3").all_inner_texts() == ["prey", "predator"]
    page.click("#message button")
    assert page.is_hidden("#message")


def test_names_from_files_are_text_and_never_markup(page):
    name = "<img src=x onerror=alert(1)>"
    rows = f"time,{name}\n" + "".join(f"{i},{i + 1}\n" for i in range(8))
    page.set_input_files("#file", {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": rows.encode()})
    page.wait_for_selector(".column b")
    assert name in page.inner_text("#columns")
    assert page.locator("img[src=x]").count() == 0


def test_no_serious_findings_of_accessibility(page):
    def found() -> list[str]:
        every = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            every += serious(page)
        return every

    assert found() == []
    example(page, "Prey and predators")
    fit(page)
    page.click("#duplicate")
    page.click("#model-tabs [role=tab]:has-text('A')")
    page.click("#downloads summary")
    page.wait_for_selector("#files button", timeout=LONG)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert found() == []
    page.locator("#editor textarea").press_sequentially("wrong wrong")
    page.wait_for_selector("#editor .wrong")
    assert found() == []


def test_everything_works_by_keyboard(page):
    page.keyboard.press("Tab")
    example(page, "Prey and predators")
    slider = page.locator(".slider input[type=range]").first
    slider.focus()
    before = page.input_value("[aria-label='Value of a']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    assert page.input_value("[aria-label='Value of a']") != before
    page.locator("#editor textarea").press("Control+Enter")
    page.wait_for_selector("#verdict:not([hidden])", timeout=LONG)


def test_a_browser_without_the_link_is_told_so(browser, studio):
    stranger = browser.new_context()
    page = stranger.new_page()
    response = page.goto(f"http://{studio.host}/")
    assert response.status == 403
    assert "terminal" in page.inner_text("body")
    stranger.close()


def test_the_first_rows_stand_above_the_columns_with_their_roles(page):
    rows = "Zeit [h],Größe (m),comment\n" + "".join(f"{i},{1 + 0.1 * i:.1f},ok\n" for i in range(12))
    page.set_input_files("#file", {"name": "z.csv", "mimeType": "text/csv", "buffer": rows.encode()})
    page.wait_for_selector(".chip.ignored")
    assert page.locator("#preview .chip").all_inner_texts() == ["time", "observed", "ignored"]
    assert page.locator("#preview tbody tr").first.locator("td").all_inner_texts() == ["0", "1.0", "ok"]
    assert page.locator("#preview tbody tr").count() == 6


def test_a_zoom_in_one_chart_is_one_in_all_and_pictures_are_saved_and_copied(page, tmp_path):
    page.expected.append("willReadFrequently")
    example(page, "Prey and predators")
    guessed(page)
    before = pixels(page, ".chart:nth-child(2) canvas")
    box = box_of(page, ".chart .u-over")
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 70, steps=4)
    page.mouse.up()
    page.mouse.move(5, 5)
    until(page, lambda: differing(page, before, ".chart:nth-child(2) canvas") > 300)
    page.locator(".chart .u-over").first.dblclick()
    page.mouse.move(5, 5)
    until(page, lambda: differing(page, before, ".chart:nth-child(2) canvas") < 300)
    page.check("#phase")
    page.wait_for_selector("#charts h3:has-text('predator against prey')")
    page.check("#log")
    page.hover(".chart")
    with page.expect_download() as found:
        page.click("[aria-label='Save the picture as an SVG file: prey']")
    found.value.save_as(tmp_path / "prey.svg")
    saved = (tmp_path / "prey.svg").read_text()
    assert saved.startswith("<svg")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("[aria-label='Copy the picture as SVG: prey']")
    page.wait_for_selector(".exports button:has-text('Copied')")
    assert page.evaluate("() => navigator.clipboard.readText()") == saved
    assert "image/svg+xml" in page.evaluate("async () => (await navigator.clipboard.read())[0].types")


def test_equations_appear_as_in_a_book_and_go_with_a_mistake(page):
    example(page, "Prey and predators")
    page.wait_for_selector("#typeset math mfrac")
    assert page.locator("#typeset math").count() == 2
    type_model(page, "prey' = a*prey/(K + prey)\n")
    page.wait_for_function("() => document.querySelectorAll('#typeset math').length === 1")


def test_a_printed_page_has_the_verdict_the_model_and_the_charts_and_no_buttons(page):
    example(page, "Prey and predators")
    fit(page)
    page.emulate_media(media="print")
    for shown in ("#verdict", "#editor pre", ".chart >> nth=1", "#results"):
        assert page.is_visible(shown), shown
    for hidden in (".bar", "#sliders", "#take", "#columns", "#editor textarea"):
        assert page.is_hidden(hidden), hidden
    box = page.locator(".chart >> nth=1").bounding_box()
    assert box["x"] + box["width"] <= 1280


def test_the_gallery_begins_with_the_simplest_example_and_has_a_picture_of_each(page):
    page.wait_for_function("() => document.querySelectorAll('#examples .thumbnail svg').length > 2")
    assert page.locator("#examples b").first.inner_text() == "Prey and predators"
