"""Reader of Alibaba's cluster-trace-gpu-v2023: pods of a Kubernetes cluster with shared GPUs.

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023 (Weng et al., *Beware of
fragmentation: scheduling GPU-sharing workloads with fragmentation gradient descent*, ATC 2023).
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import Mask
from sim.base.parameters import checked
from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    column_names,
    count_rule,
    no_job_left,
    open_text,
    read_columns,
    resolution_s,
    valid_rows,
)
from sim.workload.schema import CATEGORY
from sim.workload.workload import Workload

_TIME = Field("number", high=1e12)
_FIELDS = {
    "name": Field(required=True),
    "cpu_milli": Field("whole", required=True),
    "memory_mib": Field("whole", required=True),
    "num_gpu": Field("whole", required=True),
    "gpu_milli": Field("number", required=True, high=1000),
    "gpu_spec": Field(),
    "qos": Field(),
    "pod_phase": Field(),
    "creation_time": Field("number", required=True, high=1e12),
    "deletion_time": _TIME,
    "scheduled_time": _TIME,
}
_TIMES = ("creation_time", "scheduled_time", "deletion_time")
_OPTIONAL = ("gpu_spec", "qos", "pod_phase")
PRIORITY = {"Guaranteed": 3.0, "LS": 2.0, "Burstable": 1.0, "BE": 0.0}
"""Priority by quality of service; 0 for any other."""


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
) -> Workload:
    """Read the list of pods: each becomes a job of one task, which lasts as long as the pod ran.

    A task demands ``cpu`` (cores), ``mem`` (GiB) and ``gpu``: a fraction of one if the pod shares a
    GPU, or whole ones. ``runs_on`` of ``stages`` has the GPU models that the pod accepts. The
    quality of service is the queue, and determines the priority (`PRIORITY`). ``recorded_start_s``
    and ``recorded_finish_s`` of ``jobs`` are when the pod was scheduled and deleted. Jobs are
    sorted by creation, and times are shifted so that the first is 0. The cluster of the same trace
    is ``cluster=k8s_gpu2023``.

    Parameters
    ----------
    path : path-like
        ``openb_pod_list_*.csv``, plain or gzipped (detected from content), with its header line.
    on_bad_row : {"error", "skip"}
        Lines with a wrong number of fields, text where a number is expected, or more than 1000
        milli of a GPU: raise, or drop and count.
    state : {"all", "completed"}
        Keep all pods, or only those of phase Succeeded.

    Returns
    -------
    Workload
        ``meta["resolution_s"]`` is the resolution of the times. ``meta["report"]`` counts by rule
        ``dropped`` (pods that were never scheduled, are not
        deleted, were deleted before they were scheduled, or request parts of several GPUs; a name
        that is on an earlier line too; with ``state="completed"``, pods that did not succeed),
        ``filled`` (quality of service unknown) and ``noticed`` (one GPU, but 0 milli of it: none).

    Raises
    ------
    InputError
        With file, line and rule: "no header", "missing column", "empty file", "no job left", and
        those of `sim.base.reading.read_blocks`.
    """
    names = column_names(path, ",", [name for name in _FIELDS if name not in _OPTIONAL])
    bad = BadRows()
    fields = {name: field for name, field in _FIELDS.items() if name in names}
    with open_text(path) as stream:
        pods = read_columns(path, stream, Layout(names, skip_lines=1), fields, on_bad_row, bad)
    n_rows = len(pods["name"]) + sum(bad.values())
    report: dict[str, Any] = {"rows": n_rows, "bad_rows": bad, "dropped": {}}
    report |= {"filled": {}, "noticed": {}}
    rows = np.flatnonzero(_runnable(pods, state == "completed", report["dropped"]))
    if not len(rows):
        raise no_job_left(path, {**bad, **report["dropped"]})
    rows = rows[np.argsort(pods["creation_time"][rows], kind="stable")]
    pods = {
        k: v[rows] if isinstance(v, np.ndarray) else v.take(pa.array(rows)) for k, v in pods.items()
    }
    created_s, begin_s, end_s = (pods[name] for name in _TIMES)
    qos = _categories(pods, "qos")
    count_rule(report["filled"], "qos unknown: 'default'", _equal(qos, ""))
    levels = [PRIORITY.get(name, 0.0) for name in qos.dictionary.to_pylist()]
    idle = (pods["num_gpu"] == 1) & (pods["gpu_milli"] == 0)
    count_rule(report["noticed"], "one GPU, but 0 milli of it: none", idle)
    return Workload.from_tables(
        jobs={
            "job_id": pods["name"],
            "submit_s": created_s - created_s[0],
            "queue": pc.if_else(_equal(qos, ""), "default", qos.cast(pa.string())),
            "priority": np.array(levels)[qos.indices.to_numpy()],
            "recorded_start_s": begin_s - created_s[0],
            "recorded_finish_s": end_s - created_s[0],
        },
        stages={
            "job": np.arange(len(rows), dtype=np.int32),
            "n_tasks": np.ones(len(rows), dtype=np.int32),
            "duration_s": end_s - begin_s,
            "demand_cpu": pods["cpu_milli"] / 1000,
            "demand_mem": pods["memory_mib"] / 1024,
            "demand_gpu": pods["num_gpu"] * pods["gpu_milli"] / 1000,
            "runs_on": _categories(pods, "gpu_spec"),
        },
        meta={
            "name": "k8s_gpu2023",
            "quantum": {"cpu": 1e-3, "mem": 2.0**-10, "gpu": 1e-3},
            "offset_s": float(created_s[0]),
            "resolution_s": resolution_s(created_s, begin_s, end_s),
            "report": {**report, "jobs": len(rows)},
        },
    )


def _runnable(pods: dict[str, Any], completed: bool, dropped: dict[str, int]) -> Mask:
    """Mark the pods that ran; count the others by rule."""
    _, begin_s, end_s = (pods[name] for name in _TIMES)
    is_repeated = np.ones(len(begin_s), dtype=bool)
    codes = pods["name"].dictionary_encode().indices.to_numpy()
    is_repeated[np.unique(codes, return_index=True)[1]] = False
    rules = {
        "name of an earlier line": is_repeated,
        "never scheduled": np.isnan(begin_s),
        "not deleted yet": np.isnan(end_s),
        "deleted before it was scheduled": end_s < begin_s,
        "parts of several GPUs": (pods["num_gpu"] > 1) & (pods["gpu_milli"] < 1000),
    }
    if completed:
        rules["not completed"] = ~_equal(_categories(pods, "pod_phase"), "Succeeded")
    return valid_rows(rules, dropped)


def _categories(pods: dict[str, Any], name: str) -> pa.DictionaryArray:
    column = pods.get(name)
    if column is None:
        column = pa.array([""] * len(pods["name"]), pa.string())
    return column.fill_null("").dictionary_encode().cast(CATEGORY)


def _equal(categories: pa.DictionaryArray, text: str) -> Mask:
    equal = pc.equal(categories.cast(pa.string()), text).to_numpy(zero_copy_only=False)
    return np.asarray(equal, dtype=bool)
