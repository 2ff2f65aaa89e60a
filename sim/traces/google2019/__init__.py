"""Reader of Google's cluster traces of 2019 (clusterdata-2019): events of jobs and their tasks.

Source: https://github.com/google/cluster-data, ``clusterdata_trace_format_v3.proto`` (Tirmazi et
al., *Borg: the next generation*, EuroSys 2020).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.parameters import checked
from sim.base.reading import BadRows, OnBadRow, no_job_left
from sim.traces.google2019.events import COLLECTIONS, INSTANCES, Events, read_events
from sim.traces.google2019.lives import FROM_BEFORE, Lives, lives_of
from sim.traces.table.build import Options, build_workload, report_of
from sim.traces.table.raw import RawTable, to_log
from sim.workload.workload import Workload

ALLOC = "alloc sets: tasks in them have requests of their own"
_UNITS = {**dict.fromkeys(("submit_s", "start_s", "end_s"), "us"), "run_s": "s", "mem": "GiB"}
_ALLOC_SET = 1.0


@checked
def read(path: str | os.PathLike[str], *, on_bad_row: OnBadRow = "error") -> Workload:
    """Read events: a collection is a job, its instances are tasks.

    A task runs as long as all its runs together, from SCHEDULE to EVICT, FAIL, FINISH, KILL or
    LOST, or to the next SUBMIT if that is missing; the gaps between them are left out. It demands
    its last request: ``cpu`` and ``mem``, both as shares of the largest machine, so
    ``cluster=fractions``. Instances of alloc sets are left out. Tasks need not start together. A
    job waits for the jobs after which it is to start (``start_after_collection_ids``). Its priority
    is Borg's; the user is a hash.

    Parameters
    ----------
    path : path-like
        Folder of ``instance_events*`` and ``collection_events*``, as BigQuery or the bucket has
        them (JSON, Parquet) or exports them (CSV), plain or compressed; or one file of instance
        events.
    on_bad_row : {"error", "skip"}
        Events with missing or invalid values: raise, or drop and count.

    Returns
    -------
    Workload
        ``meta["report"]`` counts by rule ``dropped`` (instances that never started, or still ran or
        waited to run again when the log ended) and ``noticed`` (started before the trace began: run
        time from then; several runs, or one without an end).

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "not JSON", "not Parquet", "missing column",
        "missing value", "wrong type", "no job left".
    """
    bad, noticed = BadRows(), dict[str, int]()
    instances = read_events(path, INSTANCES, on_bad_row, bad)
    if not len(instances):
        raise no_job_left(path, bad)
    lives = lives_of(instances, noticed)
    collections = read_events(path, COLLECTIONS, on_bad_row, bad)
    columns = _columns(lives, collections)
    name_of = dict(zip(columns, columns, strict=True))
    raw = RawTable(columns, name_of, False, bad, (), [])
    report = report_of(raw, noticed)
    log = to_log(path, raw, _UNITS, None, {}, noticed)
    is_alloc = lives.kind == _ALLOC_SET
    options = Options(False, "job", "worker", False, "submit")
    workload = build_workload(path, log, bad, report, options, {ALLOC: is_alloc})
    return workload.with_meta({"name": "google2019"})


def _columns(lives: Lives, collections: Events) -> dict[str, pa.Array]:
    """Return a row for each instance, with what its collection has."""
    job = lives.collection
    names = pc.binary_join_element_wise(job, lives.index, "/")
    numbers = {
        "submit_s": lives.submit_us, "start_s": lives.start_us, "end_s": lives.end_us,
        "run_s": lives.run_s, "cpus": lives.cpus, "mem": lives.memory, "priority": lives.priority,
    }  # fmt: skip
    columns: dict[str, pa.Array] = {"job_id": names, "part_of": job}
    columns |= {name: pa.array(column, from_pandas=True) for name, column in numbers.items()}
    if len(collections):
        ids = collections.texts["collection_id"]
        position = pc.index_in(job, value_set=ids, skip_nulls=True)
        columns["user"] = collections.texts["user"].take(position)
        columns["depends_on"] = _first_of_each(job, collections.texts["after"].take(position))
    return columns


def _first_of_each(job: pa.Array, after: pa.Array) -> pa.Array:
    """Return what a job waits for at its first row: one edge for each such job, not one a task."""
    codes = job.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    is_first = np.zeros(len(codes), dtype=bool)
    is_first[np.unique(codes, return_index=True)[1]] = True
    nothing: Any = pa.scalar(None, after.type)
    return pc.if_else(pa.array(is_first), after, nothing)


__all__ = ["ALLOC", "FROM_BEFORE", "read"]
