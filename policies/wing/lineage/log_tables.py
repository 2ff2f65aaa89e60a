"""Log writer: the log tables that a data platform would have recorded for jobs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from policies.wing.lineage.files import DOWNLOAD, OPERATION_NAMES, READ, WRITE
from policies.wing.lineage.logs import Logs
from policies.wing.lineage.worth import JobGraph
from sim.base.arrays import I1, I4, I8
from sim.base.table_files import write_tables


def operations_log(graph: JobGraph, ids: pa.Array) -> pa.Table:
    """Build a log of operations, with the columns of `lineage.files`, ordered by time.

    A job reads its inputs when it is submitted, and writes one file when it ends.
    """
    jobs, nobody = np.arange(len(ids)), np.full(len(graph.download_job), len(ids))
    job = np.concatenate([graph.down, jobs, nobody])
    file = np.concatenate([graph.up, jobs, graph.download_job])
    count = (len(graph.up), len(ids), len(nobody))
    kind = np.repeat(np.array([READ, WRITE, DOWNLOAD]), count)
    n = np.concatenate([np.ones(count[0] + count[1], np.int64), graph.n_downloads])
    time = np.concatenate([graph.submit_s[graph.down], graph.finish_s, graph.download_s])
    order = np.lexsort((kind, time))
    return pa.table(
        {
            "time_s": time[order],
            "job": _coded(job[order], pa.concat_arrays([ids, pa.array([""])])),
            "operation": _coded(kind[order], pa.array(OPERATION_NAMES)),
            "file": _coded(file[order], pc.binary_join_element_wise("out/", ids, "")),
            "n": n[order].astype(np.int32),
        }
    )


def write_logs(logs: Logs, folder: str | os.PathLike[str]) -> list[Path]:
    """Write logs as ``operations.parquet`` and ``jobs.parquet``, as `read_logs` reads them."""
    ids = pa.concat_arrays([logs.jobs["job_id"].combine_chunks(), pa.array([""])])
    table = pa.table(
        {
            "time_s": logs.time_s,
            "job": _coded(np.where(logs.job < 0, logs.n_jobs, logs.job), ids),
            "operation": _coded(logs.operation, pa.array(OPERATION_NAMES)),
            "file": _coded(logs.file, logs.files),
            "n": logs.n,
        }
    )
    return write_tables({"operations": table, "jobs": logs.jobs}, folder)[1]


def _coded(codes: I8 | I4 | I1, values: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values)
