"""The page of all sweeps."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from sweep.report import index
from tests.sweep.small import Command, set_json


class Links(HTMLParser):
    """Collects the targets of a page's links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def test_newest_sweep_first_with_verdict_and_links(fake: Command) -> None:
    first = fake("policy=fifo,las").folder
    second = fake("policy=fifo", "name=mine").folder
    entries = [{"sentence": f"At {n}: las <is> best."} for n in range(6)]
    set_json(first, "verdict.json", entries)
    fake.verb("report", first.name, second.name)
    page = index.to_html(fake.results, "http://x/#/all", {first.name: "http://x/#/one"})
    assert re.findall(r'<h2 id="sweep-\d+">(.*?)</h2>', page) == [second.name, first.name]
    assert "At 3: las &lt;is&gt; best." in page
    assert "At 4" not in page
    assert "and 2 more sentences in the report" in page
    assert "2 cells" in page
    links = Links(page).links
    assert "http://x/#/all" in links
    assert links.index("http://x/#/one") > links.index(f"sweeps/{first.name}/report.html")
    inside = [link for link in links if not link.startswith(("http", "#"))]
    assert len(inside) == 7
    assert all((fake.results / link.partition("#")[0]).is_file() for link in inside)
    assert "<script" not in page


def test_an_empty_index(fake: Command) -> None:
    assert "No sweeps yet" in index.to_html(fake.results)
