"""The documentation builds without a warning, and its pages ask nobody for anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.axe import violations

ROOT = Path(__file__).resolve().parents[2]
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
CHROMIUM = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as ``make docs`` does, into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout + done.stderr == ""
    return folder


class _Fetched(HTMLParser):
    """Addresses that a browser fetches for a page, and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        place = values.get(FETCHED.get(tag, ""))
        if place:
            self.fetched.append(place)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")


@pytest.mark.long
def test_pages_fetch_nothing_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 80
    for page in pages:
        parsed = _Fetched()
        parsed.feed(page.read_text())
        assert parsed.fetched
        for place in parsed.fetched + parsed.links:
            if place in parsed.links and place.startswith(("http://", "https://", "#")):
                continue
            path = place.partition("#")[0].partition("?")[0]
            file = site / path[1:] if path.startswith("/") else page.parent / path
            assert file.exists(), f"{page.relative_to(site)}: {place}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?https?:", style.read_text()), style


def test_links_of_the_repository_exist() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("policies/**/*.md")]
    assert len(pages) > 20
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", text):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)}: {link}"


def test_reference_lists_options_commands_and_metrics(site: Path) -> None:
    policies = (site / "reference" / "policies.html").read_text()
    assert {"wing_oracle/agg", "SLearn"} <= set(re.findall(r"<code>([\w/]+)</code>", policies))
    assert "--fail-fast" in (site / "reference" / "commands.html").read_text()
    assert "jct_speedup_mean" in (site / "reference" / "metrics.html").read_text()
    assert str(ROOT) not in policies


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """Serve the site to this machine alone."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_in_a_browser(served: str) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium (apt-get install chromium)")
    from playwright.sync_api import Request, sync_playwright

    requested: list[str] = []
    errors: list[str] = []

    def note(request: Request) -> None:
        requested.append(request.url)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        page = browser.new_page(color_scheme="dark")
        page.on("request", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        for name in ("index", "reference/policies", "reproductions/index"):
            answer = page.goto(f"{served}{name}.html")
            assert answer is not None
            assert answer.ok
        for name, width in (("reproductions/alibaba-ranking", 1280), ("tutorial", 390)):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{served}{name}.html")
            page.locator(".md-code__nav[role], .md-typeset__scrollwrap[role]").first.wait_for()
            assert violations(page, "dark", "light") == []
        page.set_viewport_size({"width": 1280, "height": 800})
        page.emulate_media(color_scheme="dark")
        page.locator("body[data-md-color-scheme=slate]").wait_for()
        page.locator("label[for=__search].md-header__button, .md-search__input").last.click()
        page.keyboard.type("capacity")
        page.locator(".md-search-result__item").first.wait_for()
        browser.close()
    assert requested
    assert not [url for url in requested if not url.startswith((served, "data:", "blob:"))]
    assert not errors
