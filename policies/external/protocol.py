"""The protocol between this process and a scheduler: Arrow IPC streams over two pipes.

Each side writes one stream (Arrow columnar format, IPC streaming). A batch of `FACTS` is what
happened at one instant, one fact a row; the scheduler answers each with one batch of changed
columns of jobs, empty if nothing changes (docs/external_scheduler.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

VERSION = 1
"""Version of the protocol; another one is another schema."""
DEMAND_PREFIX = "demand."


class Fact(IntEnum):
    """Kinds of facts: the events of `sim.plan.Event`, and what describes them."""

    BEGIN = 0  #: the run begins: nothing else is in this batch
    JOB_ARRIVED = 1
    STAGE_DONE = 4
    JOB_DONE = 8
    TIMER = 32
    FAULT = 64
    JOB_FAILED = 128
    STAGE = 1024  #: a stage of the job that arrived
    EDGE = 1025  #: an edge between its stages, from `row` to `child`
    CHANGED = 1026  #: counts of a job in the system that are others than before


COLUMNS: Mapping[str, tuple[str, float]] = {
    "kind": ("i4", Fact.BEGIN),
    "row": ("i4", -1),
    "job": ("i4", -1),
    "child": ("i4", -1),
    "n_tasks": ("i4", 0),
    "left": ("i4", 0),
    "running": ("i4", 0),
    "started": ("i4", 0),
    "user": ("i4", -1),
    "queue": ("i4", -1),
    "time_s": ("f8", 0.0),
    "done_work_s": ("f8", 0.0),
    "priority": ("f8", 0.0),
    "deadline_s": ("f8", np.nan),
    "requested_s": ("f8", np.nan),
    "work_s": ("f8", np.nan),
}
"""Columns of facts with their types and defaults, those of 32 bits first; one demand a resource
comes after them."""

PLAN_COLUMNS = ("key", "run_limit", "start_gate")
"""Columns of jobs that a scheduler may set (`sim.plan.Plan.set_jobs`)."""
TIMER = "timer_s"
"""Column of an answer: when there shall be a TIMER event, in its last row; its job may be -1."""


def facts_schema(resources: Sequence[str], about: Mapping[str, Any]) -> pa.Schema:
    """Return the schema of facts; `about` goes into its metadata, as JSON."""
    types = {"i4": pa.int32(), "f8": pa.float64()}
    fields = [pa.field(name, types[dtype]) for name, (dtype, _) in COLUMNS.items()]
    fields += [pa.field(DEMAND_PREFIX + name, pa.float64()) for name in resources]
    return pa.schema(fields, metadata={"scheduler": json.dumps(about)})
