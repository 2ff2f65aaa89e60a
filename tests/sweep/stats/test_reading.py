"""Losses of logs in a sweep's sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.base.reading import Account
from sweep.stats.reading import readings, with_caveats

CONFIG = {"trace": {"march": {"path": "/logs/march.txt", "format": "sacct"}, "drawn": {}}}


def workload(trace: str, lost_s: float, *warnings: str) -> dict[str, Any]:
    account = Account({"cpu_s": np.array([1000.0 - lost_s, lost_s])})
    if lost_s:
        account.leave_out("never ended", np.array([False, True]))
    entries = account.entries({"cpu_s": 1000.0 - lost_s, "jobs": 1})
    report: dict[str, Any] = {"account": entries}
    if warnings:
        report["warnings"] = list(warnings)
    return {"trace": trace, "n_jobs": 1, "meta": {"report": report}}


def test_a_loss_is_named_with_its_file_share_and_rule() -> None:
    (log,) = readings(CONFIG, {"inputs": [workload("march", 985.0, "its clock jumps")]})
    assert log.as_json() == {
        "trace": "march",
        "jobs": 1,
        "left_out_share": 0.985,
        "sentence": "march.txt: 98.5 % of the log's CPU time is left out: never ended (98.5 %). "
        "march.txt: its clock jumps.",
    }
    assert log.caveat == "98 % of the log's work is left out"


def test_of_several_draws_the_one_with_the_largest_loss_is_told() -> None:
    inputs = [workload("march", 10.0), workload("march", 40.0), workload("march", 0.0)]
    (log,) = readings(CONFIG, {"inputs": inputs})
    assert log.left_out_share == 0.04
    assert log.caveat == ""


def test_a_trace_that_was_drawn_has_no_log() -> None:
    drawn = {"trace": "drawn", "n_jobs": 5, "meta": {"name": "drawn"}}
    assert readings(CONFIG, {"inputs": [drawn]}) == []


def test_a_verdict_carries_a_large_loss_and_no_small_one() -> None:
    logs = readings(CONFIG, {"inputs": [workload("march", 100.0), workload("april", 10.0)]})
    assert with_caveats(["srpt is best.", "Next."], logs) == [
        "srpt is best; but march: 10 % of the log's work is left out.",
        "Next.",
    ]
    assert with_caveats(["srpt is best."], logs[:1]) == [
        "srpt is best; but 10 % of the log's work is left out."
    ]
    assert with_caveats(["srpt is best."], logs[1:]) == ["srpt is best."]
