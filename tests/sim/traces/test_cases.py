"""Small logs with faults seen in public reports: each is read right, or refused with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import sim
from sim.base.losses import sentence
from sim.check.account import check_account
from sim.workload.workload import Workload

CASES = Path(__file__).resolve().parents[2] / "cases"
LINEAGE = ("O01_ol_order", "O02_ol_zones", "O04_ol_gz")
"""Logs of reads and writes: tests/policies/wing/lineage has them."""


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the expectations of all cases, each with an id."""
    for name, expected in yaml.safe_load((CASES / "logs.yaml").read_text()).items():
        for number, case in enumerate(expected if isinstance(expected, list) else [expected]):
            yield f"{name}-{number}", {"folder": CASES / "logs" / name, **case}


def log_path(case: Mapping[str, Any]) -> Path:
    """Return the path of a case's log."""
    if "file" in case:
        return Path(case["folder"] / case["file"])
    (file,) = (f for f in sorted(case["folder"].iterdir()) if f.name != "expected.txt")
    return Path(file)


def test_every_case_is_listed() -> None:
    listed = {case["folder"].name for _, case in cases()} | {*LINEAGE}
    assert listed == {folder.name for folder in (CASES / "logs").iterdir()}


@pytest.mark.parametrize(("name", "case"), list(cases()), ids=[name for name, _ in cases()])
def test_case(name: str, case: dict[str, Any]) -> None:
    result = _read(case)
    if isinstance(result, Workload):
        assert "error" not in case, f"{name} was read"
        _check(result, case)
        return
    refusal = case.get("error", case.get("either", {}).get("error"))
    assert refusal is not None, f"{name}: {result}"
    assert re.search(refusal, str(result)), f"{name}: {result}"
    assert result.file is not None


def _read(case: Mapping[str, Any]) -> Workload | sim.InputError:
    try:
        return sim.read_trace(case["format"], log_path(case), **case.get("options", {}))
    except sim.InputError as error:
        return error


def _check(workload: Workload, case: Mapping[str, Any]) -> None:
    account = check_account(workload)
    actual = {
        "jobs": workload.n_jobs,
        "stages": workload.n_stages,
        "tasks": workload.n_tasks,
        "edges": workload.stage_edges.num_rows + workload.job_edges.num_rows,
        "task_s": float(workload.tasks["duration_s"].to_numpy().sum()),
        "cpu_s": account.get("cpu_s", {}).get("workload", 0.0),
        "gpu_s": account.get("gpu_s", {}).get("workload", 0.0),
        "log_cpu_s": account.get("cpu_s", {}).get("log", 0.0),
    }
    for key, value in actual.items():
        if key in case:
            assert value == pytest.approx(case[key]), key
    if "durations_s" in case:
        first = workload.stage_task0[:-1]
        assert workload.tasks["duration_s"].to_numpy()[first].tolist() == case["durations_s"]
    for column in ("requested_s", "submit_s"):
        if column in case:
            assert workload.jobs[column].to_pylist() == case[column]
    start_s = workload.jobs["recorded_start_s"].to_numpy() if _has(workload, "start") else None
    if start_s is not None:
        finish_s = workload.jobs["recorded_finish_s"].to_numpy()
        assert not (finish_s < start_s).any()
        assert not (start_s < workload.jobs["submit_s"].to_numpy() - 1).any()
    if "told" in case:
        report = workload.meta["report"]
        loss = sentence("log", report["account"], report.get("bad_examples", {}))
        text = " ".join([loss, *report.get("warnings", ())])
        assert re.search(case["told"], text, re.DOTALL), text
    assert np.isfinite(workload.tasks["duration_s"].to_numpy()).all()


def _has(workload: Workload, event: str) -> bool:
    return f"recorded_{event}_s" in workload.jobs.column_names
