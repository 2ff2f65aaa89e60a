"""What somebody sees who opens a sweep in MLflow's own UI."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweep import report, track
from sweep.track import connection
from tests.ports import any_port
from tests.sweep import frames

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SWEEP, SWEPT = "demo-0123", ["policy.las.levels", "trace.jobs"]
CHROMIUM = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE_MS = 180_000


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Track 2 policies × 2 traces × 2 capacities × 2 seeds, the number of jobs fixed."""
    folder = tmp_path_factory.mktemp("results")
    place = folder / "sweeps" / SWEEP
    place.mkdir(parents=True)
    cells = frames.frame(
        policies=["fifo", "las"],
        traces=["alibaba2018", "google2011"],
        capacities=[0.5, 1.0],
        seeds=[0, 1],
        extra=[{"policy.las.levels": 5, "trace.jobs": 100}],
    )
    report.write(place, cells, {"study": None}, {}, swept=SWEPT, baseline="fifo")
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    about = {"swept": SWEPT, "baseline": "fifo"}
    track.track(place, cells, {}, {}, lambda rows: [{}] * len(rows), uri, "sweeps", **about)
    return folder


@pytest.fixture(scope="module")
def server(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the results as ``make ui`` does; give the address that it names."""
    port = any_port()
    log = tmp_path_factory.mktemp("work") / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "sweep.ui", str(results), "--port", str(port)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        for _ in range(1800):
            assert process.poll() is None, log.read_text()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail(f"the server did not start: {log.read_text()}")
        (address,) = (w for w in log.read_text().split() if w.startswith("http://127.0.0.1"))
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


@pytest.fixture(scope="module")
def page(server: str) -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        try:
            page = browser.new_page(viewport={"width": 1500, "height": 900})
            page.set_default_timeout(PATIENCE_MS)
            yield page
        finally:
            browser.close()


def runs(results: Path, kind: str) -> list[str]:
    with connection.connected(f"sqlite:///{results / 'mlflow.db'}", "") as client:
        return [run.info.run_id for run in client.search_runs(["1"], f"tags.kind = '{kind}'")]


@pytest.mark.long
def test_runs_are_filtered_by_policy_trace_and_capacity(page: Any, server: str) -> None:
    page.goto(server)
    page.get_by_text(SWEEP, exact=True).first.wait_for()
    box = page.get_by_placeholder("metrics.rmse").last
    box.click()
    box.fill("tags.policy = 'las' and tags.trace = 'google2011' and tags.capacity = '0.5'")
    page.wait_for_timeout(300)
    page.keyboard.press("Escape")  # what the search box would complete
    box.press("Enter")
    page.get_by_text("3 matching runs").wait_for()  # two seeds, and the sweep above them
    page.locator(".ag-row button, [data-component-id*=runnamecellrenderer]").first.click()
    page.get_by_text("las 0.5 seed 1").first.wait_for()
    text = page.locator("body").inner_text()
    assert "las 0.5 seed 0" in text
    assert not [word for word in ("fifo 0.5", "fifo 1", "alibaba2018", "las 1 ") if word in text]


@pytest.mark.long
def test_runs_are_compared_by_what_was_swept(page: Any, server: str, results: Path) -> None:
    ids = runs(results, "cell")
    base = server.partition("#")[0]
    page.goto(f'{base}#/compare-runs?runs={json.dumps(ids)}&experiments=["1"]')
    page.get_by_text("Comparing 16 Runs").first.wait_for()
    page.get_by_text("Parallel Coordinates").first.wait_for()
    plot = page.locator(".js-plotly-plot .parcoords, .parcoords").first
    plot.wait_for()
    axes = set(plot.locator(".axis-title").all_text_contents())
    assert axes >= {"capacity", "policy"}
    assert axes <= {"policy", "trace", "capacity", "seed", *frames.metrics_of("las", 0.5, 0)}
    details = page.locator("body").inner_text()
    names = [f"{policy} {capacity} seed {s}" for policy in ("fifo", "las")
             for capacity in ("0.5", "1") for s in (0, 1)]  # fmt: skip
    assert [name for name in names if name not in details] == []
    rows = page.locator("tr, [role=row]").all_text_contents()
    for name in ("policy", "trace", "capacity", "seed"):
        assert any(row.startswith(name) for row in rows), name


def test_the_report_opens_from_the_sweeps_run(page: Any, server: str, results: Path) -> None:
    (parent,) = runs(results, "sweep")
    base = server.partition("#")[0]
    page.goto(f"{base}#/experiments/1/runs/{parent}/artifacts")
    page.get_by_text(report.HTML, exact=True).first.click()
    heading = page.frame_locator("iframe").locator("h1")
    heading.wait_for()
    assert SWEEP in heading.inner_text()
