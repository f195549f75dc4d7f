"""The page in a real browser: choose, zoom, live update, empty store, store that vanishes, a thousand keys; no error in its console."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sash.serve import app
from sash.serve.server import Address, beside
from tests.serve.streams import MINUTE, T0, ZONES, empty, slices, written

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip


def test_the_pages_scripts_parse():
    page = Path(sys.modules["sash.serve"].__file__).parent / "page"
    text = (page / "index.html").read_text()
    for script in ("chart.js", "page.js"):
        assert f'src="/static/{script}"' in text
        assert (page / script).stat().st_size > 1000
    node = shutil.which("node")
    for script in ("chart.js", "page.js") if node else ():
        assert subprocess.run([node, "--check", str(page / script)], capture_output=True, text=True).stderr == ""


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs chromium, which is not installed here")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with driver.sync_playwright() as running:
        try:
            made = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        except driver.Error as error:
            pytest.skip(f"chromium can't be started here: {error.message.splitlines()[0]}")
        yield made
        made.close()


@pytest.fixture
def visit(browser):
    """Pages on an application over some stores; each must end without an error in its console."""
    opened, said = [], []

    def make(stores, hash_="", size=(1366, 900), scheme="light", allowed=(), **options):
        serving = beside(app(stores, **options), Address("127.0.0.1", 0))
        address = serving.__enter__()
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(20_000)

        def heard(message):
            if message.type in ("error", "warning") and not any(word in message.text for word in allowed):
                said.append(message.text)

        page.on("console", heard)
        page.on("pageerror", lambda error: said.append(str(error)))
        opened.append((serving, context))
        page.goto(address.url + hash_)
        return page

    yield make
    for serving, context in opened:
        context.close()
        serving.__exit__(None, None, None)
    assert not said


def until(page, expression, arg=None):
    """Wait until something holds in the page: asked from outside, since the page itself may evaluate no text."""
    end = time.monotonic() + 20
    while not page.evaluate(expression, arg):
        assert time.monotonic() < end, f"{expression} does not come true: {page.locator('body').inner_text()[:500]}"
        page.wait_for_timeout(50)


def points(page):
    """How many points the chart holds, line by line."""
    return page.evaluate("document.getElementById('chart').data?.map((line) => line.x.length) ?? []")


def drawn(page):
    until(page, "document.getElementById('chart').data?.length > 0")


def text(page, selector):
    return page.locator(selector).inner_text()


def step(page):
    return text(page, "#f-step")


def test_store_aggregation_and_keys_are_chosen(visit, tmp_path):
    written(tmp_path / "trips", 600)
    written(tmp_path / "other", 120, ["uptown"])
    page = visit([tmp_path / "trips", tmp_path / "other"])
    drawn(page)
    assert text(page, "#chart-title") == "trips, count"
    assert "2024-01-01 10:00" in text(page, "#freshness")
    assert page.locator("#top li").count() == len(ZONES)
    page.locator("#agg").select_option("fare")
    until(page, "document.getElementById('chart-title').textContent.startsWith('fare, mean')")
    page.locator("#key").fill("so")
    page.locator("#suggestions li", has_text="soho").click()
    until(page, "document.getElementById('chart').data[0].name === 'soho'")
    page.locator("#top button", has_text="harlem").click()
    until(page, "document.getElementById('chart').data.length === 2")
    assert page.locator("#chosen li").count() == 2
    page.get_by_role("button", name="Remove soho").click()
    until(page, "document.getElementById('chart').data[0].name === 'harlem'")
    page.locator("#agg").select_option("ends")
    until(page, "document.getElementById('chart').data.length === 2")
    assert page.evaluate("document.getElementById('chart').data.map((line) => line.name)") == ["harlem · min", "harlem · max"]
    page.locator("#store").select_option("other")
    until(page, "document.querySelectorAll('#top li').length === 1")
    assert "uptown" in text(page, "#top")
    assert "combines" in text(page, "#f-combines")
    assert text(page, "#f-took").endswith("ms")


def test_zooming_refines_the_step_and_live_leads_back(visit, tmp_path):
    written(tmp_path / "trips", 1440, ZONES[:3])
    page = visit(tmp_path / "trips", "#span=all")
    drawn(page)
    before = step(page)
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    until(page, "(before) => document.getElementById('f-step').textContent !== before", arg=before)
    until(page, "document.getElementById('f-step').textContent === '1m'")
    assert page.locator("#live").get_attribute("aria-pressed") == "false"
    box = page.locator("#chart .nsewdrag").first.bounding_box()
    shown = page.evaluate("document.getElementById('chart').layout.xaxis.range[0]")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    until(page, "(shown) => document.getElementById('chart').layout.xaxis.range[0] > shown", arg=shown)  # panned: later
    page.locator("#chart").focus()
    page.keyboard.press("l")
    until(page, "(before) => document.getElementById('f-step').textContent === before", arg=before)
    page.locator("#chart").focus()
    page.keyboard.press("+")
    until(page, "document.getElementById('live').getAttribute('aria-pressed') === 'false'")


def test_the_page_follows_the_watermark_by_itself(visit, tmp_path):
    store = written(tmp_path / "trips", 60, ZONES[:3])
    page = visit(tmp_path / "trips", "#span=all")
    drawn(page)
    assert "01:00" in text(page, "#freshness")
    before = max(points(page))
    store.write(slices(ZONES[:3], 60, 90), query="q", batch=4, watermark=T0 + 90 * MINUTE)
    until(page, "document.getElementById('freshness').textContent.includes('01:30')")
    until(page, "(before) => Math.max(...document.getElementById('chart').data.map((l) => l.x.length)) > before", arg=before)


def test_an_empty_store_waits_and_then_shows(visit, tmp_path):
    store = empty(tmp_path / "trips")
    page = visit(tmp_path / "trips", allowed=["409"])
    until(page, "document.getElementById('freshness').textContent === 'waiting for the first slice'")
    assert "No slice is complete yet" in text(page, "#empty")
    assert page.locator("#chart").is_hidden()
    store.write(slices(ZONES, 0, 30), query="q", batch=0, watermark=T0 + 30 * MINUTE)
    drawn(page)
    assert page.locator("#empty").is_hidden()


def test_a_store_that_vanishes_is_said_so_and_found_again(visit, tmp_path):
    written(tmp_path / "trips", 60)
    page = visit(tmp_path / "trips", allowed=["404"])
    drawn(page)
    shutil.move(tmp_path / "trips", tmp_path / "away")
    until(page, "!document.getElementById('problem').hidden")
    assert "no longer there" in text(page, "#problem")
    assert text(page, "#freshness") == "store can't be read"
    shutil.move(tmp_path / "away", tmp_path / "trips")
    until(page, "document.getElementById('problem').hidden")
    assert "01:00" in text(page, "#freshness")


def test_a_thousand_keys_are_found_by_their_beginning(visit, tmp_path):
    written(tmp_path / "trips", 20, [f"card-{i:04d}" for i in range(1000)], batches=1)
    page = visit(tmp_path / "trips")
    drawn(page)
    page.locator("#key").focus()
    until(page, "document.querySelectorAll('#suggestions li').length === 51")
    assert "more: type the beginning of one" in text(page, "#suggestions li.more")
    page.keyboard.type("card-077")
    until(page, "document.querySelectorAll('#suggestions li').length === 10")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('chart').data?.[0].name === 'card-0771'")
    assert page.locator("#top li").count() == 12


def test_the_token_is_asked_for(visit, tmp_path):
    written(tmp_path / "trips", 60)
    page = visit(tmp_path / "trips", token="open-sesame", allowed=["401"])
    page.locator("#token").fill("wrong-token")
    page.get_by_role("button", name="Open").click()
    until(page, "document.getElementById('token-why').textContent.includes('not one of this server')")
    page.locator("#token").fill("open-sesame")
    page.get_by_role("button", name="Open").click()
    drawn(page)
    assert page.locator("#token-form").is_hidden()


NAMELESS = """
[...document.querySelectorAll('button, input, select, [role=img]')].filter((e) => e.offsetParent !== null).filter((e) =>
  !(e.innerText || '').trim() && !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby') && !e.labels?.length
).map((e) => e.outerHTML.slice(0, 80))
"""
# WCAG AA: text against what is behind it, at least 4.5 to 1.
LOW_CONTRAST = """(() => {
  const rgb = (t) => { const n = t.match(/[\\d.]+/g).map(Number); return n.length === 4 && n[3] === 0 ? null : n; };
  const part = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (c) => .2126 * part(c[0]) + .7152 * part(c[1]) + .0722 * part(c[2]);
  const behind = (e) => (e ? rgb(getComputedStyle(e).backgroundColor) ?? behind(e.parentElement) : [255, 255, 255]);
  const has = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const written = (e) => e.offsetParent !== null && !e.closest('#chart') && has(e);
  return [...document.querySelectorAll('header *, main *, footer *')].filter(written).map((e) => {
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
    return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 80)];
  }).filter(([ratio]) => ratio < 4.5);
})()"""


@pytest.mark.parametrize(("size", "scheme"), [((1366, 900), "light"), ((1366, 900), "dark"), ((390, 844), "light")])
def test_it_fits_and_can_be_read_and_operated(visit, tmp_path, size, scheme):
    written(tmp_path / "trips", 600)
    page = visit(tmp_path / "trips", "#key=soho&key=harlem&span=6h", size, scheme)
    drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing to scroll sideways
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(LOW_CONTRAST) == []
    if (folder := os.environ.get("SASH_SHOTS")) is not None:
        page.screenshot(path=f"{folder}/{size[0]}-{scheme}.png", full_page=True)
