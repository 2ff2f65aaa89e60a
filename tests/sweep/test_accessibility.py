"""Pages for people: a checker of accessibility finds nothing, a phone need not scroll sideways."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sim
from sim.describe import Dataset, describe
from sim.describe.page import page
from sweep.questions.ui import index
from sweep.store.sweep_summaries import summarize
from tests.axe import violations
from tests.mlflow_ui import browser
from tests.sweep.small import Command

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
DAG = [{"name": "a", "durations_s": [3.0, 4.0]},
       {"name": "b", "durations_s": [5.0], "parents": ["a"]}]  # fmt: skip


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    with browser() as tab:
        yield tab


def check(tab: Any, file: Path) -> None:
    tab.set_viewport_size({"width": 1280, "height": 800})
    tab.goto(file.as_uri())
    assert violations(tab) == []
    assert tab.locator("h1").count() == tab.locator("main").count() == 1
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(file.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_index_and_comparison(tab: Any, fake: Command) -> None:
    names = [fake("policy=fifo,las").folder.name, fake("policy=fifo", "name=mine").folder.name]
    fake.verb("report", *names)
    links = [("http://localhost/#/run", "MLflow")]
    rows = [(summary, links) for summary in summarize(fake.results)]
    server = {"token": "t", "id": "s", "version": 1}
    file = fake.results / "index.html"
    file.write_text(index.to_html(fake.results, rows, "http://localhost/", server))
    check(tab, file)
    check(tab, next((fake.results / "comparisons").glob("*.html")))


def test_description(tab: Any, tmp_path: Path) -> None:
    jobs = [{"submit_s": 60.0 * n, "template": "t", "stages": DAG} for n in range(20)]
    workload = sim.Workload.from_jobs(jobs)
    mine, other = (Dataset.from_workload(name, workload) for name in ("mine", "other"))
    (tmp_path / "describe.html").write_text(page(describe(mine, [other])))
    check(tab, tmp_path / "describe.html")
