"""The protocol between this process and a scheduler: Arrow IPC streams over two pipes.

Each side writes one stream (Arrow columnar format, IPC streaming). A batch of `FACTS` is what
happened at one instant, one fact a row; the scheduler answers each with one batch of changed
columns of jobs, empty if nothing changes (docs/external_scheduler.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
"""Columns of facts with their types and defaults; one demand a resource comes after them."""

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


class Facts:
    """Batches of a schema, written in place: a batch of few rows costs microseconds.

    The messages of two batches of as many rows differ in their bodies alone, so that head and body
    are made once for each small number of rows.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns of int32 and float64, without nulls.
    """

    FEW_ROWS = 256
    """Largest number of rows of which head and body are kept."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._templates: dict[int, _Template] = {}
        self._last = _template(schema, 0)

    def begin(self, n: int) -> dict[str, NDArray[Any]]:
        """Begin a batch of `n` rows; return its columns, to be filled."""
        template = self._templates.get(n)
        if template is None:
            template = _template(self._schema, n)
            if n <= self.FEW_ROWS:
                self._templates[n] = template
        self._last = template
        return template.columns

    def message(self) -> tuple[bytes, bytearray]:
        """Return head and body of the message of that batch."""
        return self._last.head, self._last.body


class _Template(NamedTuple):
    head: bytes
    body: bytearray
    columns: dict[str, NDArray[Any]]  # views of the body


def _template(schema: pa.Schema, n: int) -> _Template:
    """Make the message of a batch of `n` rows."""
    zeros = [pa.array(np.zeros(n, field.type.to_pandas_dtype())) for field in schema]
    message = pa.record_batch(zeros, schema=schema).serialize().to_pybytes()
    begin = 8 + int.from_bytes(message[4:8], "little")
    body = bytearray(message[begin:])
    columns, offset = {}, 0
    for field in schema:
        dtype = np.dtype(field.type.to_pandas_dtype())
        columns[field.name] = np.frombuffer(body, dtype, n, offset)
        offset += -(-n * dtype.itemsize // 8) * 8  # each buffer begins at a multiple of 8
    return _Template(message[:begin], body, columns)
