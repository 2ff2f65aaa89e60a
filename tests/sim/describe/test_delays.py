"""Recorded waits and their reasons."""

from __future__ import annotations

import pytest

from sim.describe import Dataset, describe
from sim.describe.page import text_lines
from tests.sim.describe.workloads import drawn
from tests.sim.traces.test_sacct import load, record
from tests.sim.traces.test_sacct_releases import COLUMNS, row


def test_reasons_are_told_by_jobs_and_wait(tmp_path):
    rows = [
        row("1", "09:00:00", "09:10:00", "Priority"),
        row("2", "09:00:00", "09:20:00", "QOSGrpCpuLimit"),
        row("3", "09:15:00", "09:20:00", "JobHeldUser"),
        row("4", "09:00:00", "09:10:00", "QOSGrpCpuLimit"),
    ]
    log = load(tmp_path, *rows, head=COLUMNS)
    described = describe(Dataset.from_workload("log", log))
    values = {m.key: m.value for m in described.statistics["log"] if m.section == "load"}
    assert values["recorded_wait"] == 900.0
    assert values["before_eligible"] == pytest.approx(900 / 3600)
    assert values["reason_named"] == pytest.approx(3000 / 3600)
    assert values["reason_jobs"] == 3
    assert (values["reason_QOSGrpCpuLimit"], values["reason_JobHeldUser"]) == (2, 1)
    assert values["reason_wait_limit"] == pytest.approx(1800 / 3600)
    assert values["reason_wait_hold"] == pytest.approx(1200 / 3600)
    text = "\n".join(text_lines(described))
    assert "QOSGrpCpuLimit (limit)" in text
    assert "jobs by a last reason that no free room ends" in text


def test_logs_without_reasons_or_starts(tmp_path):
    described = describe(Dataset.from_workload("log", load(tmp_path, record())))
    assert not [m.key for m in described.statistics["log"] if m.key.startswith("reason")]
    described = describe(Dataset.from_workload("drawn", drawn(20, seed=1)))
    assert not [m for m in described.statistics["drawn"] if m.key == "recorded_wait"]
