"""Help of the page: every card leads to pages of the documentation, which the studio serves itself."""

import re

import pytest

from odinfer.apps.studio import documentation, server
from odinfer.errors import InputError

PAGE = (server.PAGE / "index.html").read_text("utf-8")
LINKS = re.findall(r'href="/help/([^"]*)"[^>]*>([^<]*)<', PAGE)


def test_every_help_text_of_the_page_leads_to_pages_of_the_documentation_by_their_titles():
    cards = re.findall(r'<main id="welcome".*?</main>|<section .*?</section>|<template .*?</template>', PAGE, re.DOTALL)
    helped = [card for card in cards if 'class="help"' in card]
    assert len(helped) == len([card for card in cards if 'id="results"' not in card])
    assert all("In the documentation:" in card for card in helped)
    assert len(LINKS) > 12
    for name, words in LINKS:
        assert documentation.titles()[name] == words


def test_every_page_is_rendered_whole_and_all_of_its_links_lead_to_pages_and_headings():
    pages = {name: documentation.page(name) for name in documentation.titles()}
    assert {"glossary", "concepts/intervals", "how-to/numbers", "tutorials/population"} <= {*pages}
    for name, page in {**pages, "": documentation.page("")}.items():
        words = re.sub(r"<code.*?</code>|<pre.*?</pre>", "", page, flags=re.S)
        assert not re.search(r"\]\(|```|\{picture\}|^#+ ", words, re.M), name
        for target, anchor in re.findall(r'href="/help/([^"#]*)#?([^"]*)"', page):
            assert target in pages or not target, name
            assert not anchor or "%" in anchor or f'id="{anchor}"' in pages[target], name


def test_terms_of_the_glossary_stand_above_their_definitions():
    page = documentation.page("glossary")
    assert re.search(r"<strong>AIC, AICc, BIC</strong><br ?/>\s*Information criteria", page)


@pytest.mark.parametrize("name", ["nothing", "../README", "_site/static", "reference/command", "index"])
def test_what_is_no_page_is_said_to_be_none(name):
    with pytest.raises(InputError, match="no such page"):
        documentation.page(name)


def test_help_is_served_to_whoever_has_the_link_only(studio):
    status, headers, body = studio.ask("GET", "/help/data")
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/html")
    assert "<h1" in body.decode()
    assert "Bringing data" in body.decode()
    assert studio.ask("GET", "/help/")[0] == 200
    assert studio.ask("GET", "/help/nothing")[0] == 404
    assert studio.ask("GET", "/help/data", Cookie=None)[0] == 403


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_click_on_help_opens_the_page_beside_the_studio(page, context, width):
    from browsers import serious

    page.set_viewport_size({"width": width, "height": 800})
    page.click("#welcome .help summary")
    with context.expect_page() as opened:
        page.click("#welcome .help a >> nth=0")
    beside = opened.value
    beside.set_viewport_size({"width": width, "height": 800})
    beside.wait_for_selector("h1:has-text('Bringing data')")
    assert serious(beside) == []
    assert beside.evaluate("document.documentElement.scrollWidth") <= width
    beside.click("text=Observations and noise")
    beside.wait_for_selector("h1:has-text('Observations and noise')")
    beside.click("text=All pages")
    beside.wait_for_selector("h2:has-text('Concepts')")
    assert serious(beside) == []
    beside.close()
    assert page.is_visible("#examples")
