"""Servers of the UI, started as by ``make ui``, and a browser to test them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ports import any_port

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE_MS = 180_000


@dataclass(frozen=True)
class Served:
    """A running UI: its process, MLflow's port, the printed address, and its log."""

    pid: int
    port: int
    address: str
    log: Path


@contextmanager
def served(results: Path, work: Path) -> Iterator[Served]:
    """Serve `results` from the folder `work`; wait until the server answers."""
    port, log = any_port(), work / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "sweep", "ui", str(results), "--port", str(port)],
            cwd=work,
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
        (address,) = (
            w for w in log.read_text().split() if w.startswith(f"http://127.0.0.1:{port}/")
        )
        yield Served(process.pid, port, address, log)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=120)


@contextmanager
def browser() -> Iterator[Any]:
    """Yield an empty page of a browser; skip the test without Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        try:
            page = started.new_page(viewport={"width": 1500, "height": 900})
            page.set_default_timeout(PATIENCE_MS)
            yield page
        finally:
            started.close()
