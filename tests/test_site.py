"""The docs as a site: it builds without a warning, has every page and every public name, and opens without an error."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="mkdocs-material, of the extra docs, is not installed")
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(made)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_every_page_of_the_docs_is_on_the_site(site):
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= {page.stem for page in site.glob("*.html")}
    linked = set(re.findall(r"href=\"?([\w-]+)\.html", (site / "index.html").read_text()))
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= linked, "a page is not in the navigation"


def test_every_link_of_the_site_leads_somewhere(site):
    missing = set()
    for page in site.rglob("*.html"):
        text = page.read_text()
        for target in re.findall(r"(?:href|src)=\"?([^\s\">]+)", text):
            path = target.partition("#")[0].partition("?")[0]
            if path and not re.match(r"[a-z]+:", path) and page.name != "404.html" and not (page.parent / path).exists():
                missing.add(f"{page.name}: {target}")
    assert not missing


def test_the_site_needs_no_network(site):
    asked = {
        found
        for page in site.rglob("*.html")
        for found in re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?://[^\s\">]+)", page.read_text())
    }
    assert not asked


def test_the_reference_has_every_public_name(site):
    from tools import reference

    for module in reference.MODULES:
        name = module.partition(".")[2] or module
        page = (site / "reference" / f"{name}.html").read_text()
        for public in reference.public(module):
            assert f'id="{public.lower()}"' in page or f"id={public.lower()}" in page, f"{module}.{public}"


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_pages_open_without_an_error_and_without_scrolling_sideways(site, width, height):
    if CHROMIUM is None:
        pytest.skip("needs chromium, which is not installed here")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    said = []
    with driver.sync_playwright() as running:
        try:
            browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        except driver.Error as error:
            pytest.skip(f"chromium can't be started here: {error.message.splitlines()[0]}")
        page = browser.new_page(viewport={"width": width, "height": height})
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else said.append(request.url))
        for name in ("index", "algorithms", "reference/wheel"):
            page.goto(f"file://{site}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, name
        page.keyboard.press("/")
        page.keyboard.type("watermark")
        page.wait_for_selector(".md-search-result__item", state="attached", timeout=20_000)
        browser.close()
    assert not said
