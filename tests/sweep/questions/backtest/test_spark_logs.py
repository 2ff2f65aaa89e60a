"""Backtests of kept logs of a real Spark, from the command line."""

from __future__ import annotations

import json

import pytest

from tests.conftest import ROOT
from tests.sweep.small import Command


@pytest.mark.parametrize("variant", ["fifo", "fair"])
def test_a_backtest_names_the_policy_that_spark_was_told_to_use(
    command: Command, variant: str
) -> None:
    log = ROOT / "tests" / "real" / "spark" / f"spark-{variant}-2-1.gz"
    words = (f"trace.path={log}", "trace.read_as=jobs", "policy=fifo,fair,srpt", "runs=3")
    ran = command("backtest", "trace=spark_eventlog", *words)
    assert ran.code == 0, ran.err
    record = json.loads((ran.folder / "backtest.json").read_text())
    assert record["nearest"] == variant
    assert "16 slots" in record["cluster"]
