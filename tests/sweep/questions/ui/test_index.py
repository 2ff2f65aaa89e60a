"""The page of all sweeps."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sweep.questions.ui import index
from sweep.store.journal import Journal
from sweep.store.sweep_summaries import summarize
from tests.sweep.small import Command, set_json


class Links(HTMLParser):
    """Collects the targets of a page's links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def page_of(results: Path, mlflow: str = "", **runs: str) -> str:
    rows = [
        (summary, [(runs[summary.sweep], "MLflow")] if summary.sweep in runs else [])
        for summary in summarize(results)
    ]
    return index.to_html(results, rows, mlflow)


def test_newest_sweep_first_with_verdict_and_links(fake: Command) -> None:
    first = fake("policy=fifo,las").folder
    second = fake("policy=fifo", "name=mine").folder
    entries = [{"sentence": f"At {n}: las <is> best."} for n in range(6)]
    set_json(first, "verdict.json", entries)
    fake.verb("report", first.name, second.name)
    page = page_of(fake.results, "http://x/#/all", **{first.name: "http://x/#/one"})
    assert re.findall(r'<tr role="row"[^>]* data-sweep="(.*?)"', page) == [second.name, first.name]
    assert "At 2: las &lt;is&gt; best." in page
    assert "At 3" not in page
    assert "and 3 more in the report" in page
    assert ">2<span" in page
    links = Links(page).links
    assert "http://x/#/all" in links
    assert links.index("http://x/#/one") > links.index(f"sweeps/{first.name}/report.html")
    inside = [link for link in links if not link.startswith(("http", "#"))]
    assert len(inside) == 9
    for link in inside:
        file, _, anchor = link.partition("#")
        assert (fake.results / file).is_file()
        assert not anchor or f'id="{anchor}"' in (fake.results / file).read_text()


def test_a_file_has_nothing_that_needs_a_server(fake: Command) -> None:
    fake("policy=fifo")
    body = page_of(fake.results).partition("<body")[2].partition("<script>")[0]
    assert not re.search(r"token|<form|<dialog|live|delete ", body)
    assert 'placeholder="add a tag"' not in body


def test_only_failures_have_a_colour(fake: Command) -> None:
    fake("policy=fifo")
    Journal(fake.results, "b-12345678").append("begin", cells=7, todo=7, cached=[], argv=[])
    page = page_of(fake.results)
    assert "<span>stopped after 0 of 7 cells</span>" in page
    assert "<span>finished</span>" in page
    assert 'class="failed"' not in page
    folder = fake("policy=las").folder
    (folder / "verdict.json").write_text("damaged")
    assert '<span class="failed">damaged: `python -m sweep report las' not in page
    assert '<span class="failed">damaged: `' in page_of(fake.results)


def test_an_empty_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = {
        "results": "python -m sweep",
        "my runs": "python -m sweep 'paths.results=my runs'",
        "a,b": """python -m sweep 'paths.results='"'"'a,b'"'"''""",
    }
    for name, command in commands.items():
        page = page_of(tmp_path / name)
        assert "<p>No sweeps yet." in page
        assert f"<pre><code>{command}</code></pre>" in unescape(page)
        assert "appear here" not in page  # a file does not follow
