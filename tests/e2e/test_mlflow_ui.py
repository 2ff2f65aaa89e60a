"""A sweep in MLflow's own UI, as a user sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sweep import report, track
from sweep.questions.ui.mlflow_server import sweep_links
from sweep.store.folder import SweepFolder
from sweep.track import connection
from tests.mlflow_ui import browser, served
from tests.sweep import frames

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SWEEP, SWEPT = "demo-0123", ["policy.las.levels", "trace.jobs"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Track 2 policies × 2 traces × 2 capacities × 2 seeds with a fixed number of jobs."""
    folder = tmp_path_factory.mktemp("results")
    sweep_folder = folder / "sweeps" / SWEEP
    sweep_folder.mkdir(parents=True)
    cells = frames.frame(
        policies=["fifo", "las"],
        traces=["alibaba2018", "google2011"],
        capacities=[0.5, 1.0],
        seeds=[0, 1],
        extra=[{"policy.las.levels": 5, "trace.jobs": 100}],
    )
    report.write(
        SweepFolder(sweep_folder), cells, {"study": None}, {}, swept=SWEPT, baseline="fifo"
    )
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    about = {"swept": SWEPT, "baseline": "fifo"}
    track.track(sweep_folder, cells, {}, {}, lambda rows: [{}] * len(rows), uri, "sweeps", **about)
    return folder


@pytest.fixture(scope="module")
def server(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the results; return the address that is printed."""
    with served(results, tmp_path_factory.mktemp("work")) as ui_server:
        yield ui_server.address


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with browser() as page:
        yield page


def cells(results: Path) -> list[str]:
    with connection.connected(f"sqlite:///{results / 'mlflow.db'}", "") as client:
        return [run.info.run_id for run in client.search_runs(["1"], "tags.kind = 'cell'")]


def test_runs_are_filtered_by_policy_trace_and_capacity(page: Any, server: str) -> None:
    page.goto(server)
    page.get_by_text(SWEEP, exact=True).first.wait_for()
    box = page.get_by_placeholder("metrics.rmse").last
    box.click()
    box.fill("tags.policy = 'las' and tags.trace = 'google2011' and tags.capacity = '0.5'")
    page.wait_for_timeout(300)
    page.keyboard.press("Escape")  # close the completions of the search box
    box.press("Enter")
    page.get_by_text("3 matching runs").wait_for()  # two seeds, and the sweep above them
    page.locator(".ag-row button, [data-component-id*=runnamecellrenderer]").first.click()
    page.get_by_text("las 0.5 seed 1").first.wait_for()
    text = page.locator("body").inner_text()
    assert "las 0.5 seed 0" in text
    assert not [word for word in ("fifo 0.5", "fifo 1", "alibaba2018", "las 1 ") if word in text]


def test_runs_are_compared_by_swept_parameters(page: Any, server: str, results: Path) -> None:
    ids = cells(results)
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


def test_policies_are_compared_over_capacity(page: Any, server: str, results: Path) -> None:
    port = urlsplit(server).port
    assert port
    links = sweep_links(f"sqlite:///{results / 'mlflow.db'}", port)
    (address,) = (link for link, word in links[SWEEP] if word == "compare")
    page.goto("about:blank")
    page.goto(address)
    page.get_by_text("Comparing 4 Runs").first.wait_for()
    page.get_by_role("link", name="jct_mean_s", exact=True).first.wait_for()
    assert page.get_by_text("Model registry").count()  # not the pages on language models
    rows = page.locator("tr, [role=row]").all_text_contents()
    for name in ("Run Name", "policy", "trace", "seeds", "sweep", "trace.jobs"):
        assert any(row.startswith(name) for row in rows), name
    metrics = [text for text in page.get_by_role("link").all_text_contents() if "jct_" in text]
    assert metrics[0] == "jct_mean_s"  # the means are above the ends of intervals
    page.get_by_role("link", name="jct_mean_s", exact=True).first.click()
    page.get_by_text("(step=100)").first.wait_for()  # its history, by capacity in per cent
