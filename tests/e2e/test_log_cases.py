"""Losses of a log are told by every command, at every run, cached or not."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sim.base.losses import left_out_share, sentence
from sim.traces import read_trace
from tests.sim.traces.test_cases import cases, log_path

QUICK = ("S04",)
"""Cases of the short lane; the others run in the long one."""
ROOT = Path(__file__).resolve().parents[2]


def command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "400"}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def options(case: dict[str, Any]) -> list[str]:
    """Return the options of a case's reader as words of a sweep."""
    words = []
    for name, value in case.get("options", {}).items():
        pairs = value.items() if isinstance(value, dict) else [("", value)]
        words += [f"+trace.{'.'.join(filter(None, (name, key)))}={v}" for key, v in pairs]
    return [word.replace("+trace.columns", "trace.columns") for word in words]


def parameters() -> list[Any]:
    read = [(name, case) for name, case in cases() if "error" not in case and "either" not in case]
    return [
        pytest.param(case, id=name, marks=() if name.startswith(QUICK) else pytest.mark.long)
        for name, case in read
    ]


@pytest.mark.e2e
@pytest.mark.parametrize("case", parameters())
@pytest.mark.long
def test_a_loss_is_told_by_every_command_at_every_run(case: dict[str, Any], tmp_path: Path) -> None:
    path = log_path(case)
    workload = read_trace(case["format"], path, **case.get("options", {}))
    report = workload.meta["report"]
    loss = sentence(path.name, report["account"], report.get("bad_examples", {}))
    lines = [line for line in (loss, *report.get("warnings", ())) if line]
    words = [f"trace={case['format']}", f"trace.path={path}", "policy=fifo", *options(case)]
    cluster = case.get("cluster", ["cluster.count=1000"])
    more = [*cluster, "launcher=inline", "tracking=none", "paths.results=results"]
    is_refused = left_out_share(report["account"], with_wasted=False) > 0.5
    is_refused &= case.get("options", {}).get("on_bad_row") != "skip"
    for verb in (["sweep"], ["sweep", "backtest"]):
        if verb[1:] and not _is_recorded(workload):
            continue
        for _ in range(2):  # fresh, and cached
            done = command(*verb, *words, *more, folder=tmp_path)
            if is_refused:
                assert done.returncode == 2
                assert "left out" in done.stderr
                continue
            assert done.returncode == 0, done.stderr
            output = _folded(done.stderr + done.stdout)
            assert all(_folded(line) in output for line in lines), output
            _check_answer(tmp_path / done.stdout.splitlines()[-1], case, workload.n_jobs, lines)
    described = command(
        "sim", "describe", f"{case['format']}:{path}", *_pairs(case), folder=tmp_path
    )
    assert described.returncode == 0, described.stderr
    if case["format"] == "alibaba2018":  # the study keeps stages that never ended: other details
        lines = [loss.partition(":")[0]]
    assert all(_folded(line) in _folded(described.stdout) for line in lines), described.stdout


def _check_answer(folder: Path, case: dict[str, Any], n_jobs: int, lines: list[str]) -> None:
    answer = json.loads((folder / "answer.json").read_text())
    (entry,) = answer["read"]
    assert entry["trace"] == case["format"]
    assert entry["jobs"] == n_jobs
    assert all(line.removesuffix(".") in entry["sentence"] for line in lines)
    assert all(any(line.removesuffix(".") in sure for sure in answer["How sure"]) for line in lines)
    page = _folded(html.unescape((folder / "report.html").read_text()))
    assert all(_folded(line).removesuffix(".") in page for line in lines)
    if entry["left_out_share"] > 0.05:
        assert "is left out" in " ".join(answer["Answer"])


def _pairs(case: dict[str, Any]) -> list[str]:
    pairs = [f"{name}={json.dumps(value)}" for name, value in case.get("options", {}).items()]
    return [word for pair in pairs for word in ("--option", pair)]


def _is_recorded(workload: Any) -> bool:
    columns = workload.jobs.column_names
    return (
        workload.n_jobs > 1
        and not workload.meta.get("submit_is_start")
        and "recorded_start_s" in columns
        and workload.jobs["recorded_start_s"].null_count < workload.n_jobs
    )


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text)
