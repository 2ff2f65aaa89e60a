"""Troubles of the cluster that no run met are said, once, by trace and kind."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from sweep.stats import troubles
from tests.sweep import frames
from tests.sweep.small import Command

OUTAGES = {"mtbf_s": 1.0, "repair_s": 1.0, "until_s": 1.0}
CONFIG = {"cluster": {"alibaba2018": {"outages": OUTAGES, "slowdowns": None}, "other": None}}


def cells(*, met: list[float | None] | None, makespan: bool = True) -> pa.Table:
    table = frames.frame(policies=["fifo"], capacities=[1.0], seeds=[0, 1], failed=[])
    if met is not None:
        table = table.append_column("outages_met", pa.array(met, pa.float64()))
    return table if makespan else table.drop_columns(["makespan_s"])


@pytest.mark.parametrize("met", [None, [0.0, 0.0], [None, 0.0], [np.nan, None]])
def test_outages_that_no_run_met_are_said(met: list[float | None] | None) -> None:
    assert troubles.unmet(cells(met=met), CONFIG) == [
        "alibaba2018: cluster.outages asks for outages of machines, but none is in any of the 2 "
        "runs: times count from the first submission; see until_s or mtbf_s."
    ]


def test_nothing_is_said_without_cause() -> None:
    assert not troubles.unmet(cells(met=[0.0, 1.0]), CONFIG)
    assert not troubles.unmet(cells(met=[0.0, 0.0], makespan=False), CONFIG)
    without = {"cluster": {"alibaba2018": {"outages": None}, "other": {"outages": OUTAGES}}}
    assert not troubles.unmet(cells(met=None), without)


def test_a_sweep_says_it_in_terminal_and_answer(command: Command) -> None:
    never = "cluster.outages={mtbf_s:1e9,repair_s:1.0,until_s:10.0}"
    ran = command("policy=fifo", never)
    sentence = "asks for outages of machines, but none is in any of the"
    assert sentence in " ".join(ran.out.split())
    answer = json.loads((ran.folder / "answer.json").read_text())
    assert any(sentence in line for line in answer["How sure"])
