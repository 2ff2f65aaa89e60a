"""Pods of a Kubernetes cluster with shared GPUs: Alibaba's cluster-trace-gpu-v2023.

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023 (Weng et al., *Beware of
fragmentation: scheduling GPU-sharing workloads with fragmentation gradient descent*, ATC 2023).
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, Mask
from sim.base.parameters import checked
from sim.base.reading import (
    Field,
    Layout,
    OnBadRow,
    column_names,
    count_rule,
    no_job_left,
    open_text,
    read_columns,
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
_MAY_LACK = ("gpu_spec", "qos", "pod_phase")
PRIORITY = {"Guaranteed": 3.0, "LS": 2.0, "Burstable": 1.0, "BE": 0.0}
"""Of each quality of service; of one that is not listed, 0."""


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
) -> Workload:
    """Read the list of pods: a job of one task for each, for as long as the pod had its machine.

    A task demands ``cpu`` (cores), ``mem`` (GiB) and ``gpu``: a part of one for a pod that shares
    it, or whole ones. ``runs_on`` of ``stages`` are the models of GPU that the pod allows. The
    quality of service is the queue, and gives the priority (`PRIORITY`). Jobs are sorted by
    creation, and times are shifted so that the first comes at 0. The cluster of the same trace is
    ``cluster=k8s_gpu2023``.

    Parameters
    ----------
    path : path-like
        ``openb_pod_list_*.csv``, plain or gzipped (told by content), with its line of names.
    on_bad_row : {"error", "skip"}
        Lines with another number of fields, text where there should be a number, or more than 1000
        milli of a GPU: raise, or leave out and count.
    state : {"all", "completed"}
        Keep pods however they ended, or only those of phase Succeeded.

    Returns
    -------
    Workload
        ``meta["report"]`` counts by rule what was ``dropped`` (pods that were never scheduled, are
        not deleted, were deleted before they were scheduled, or ask for parts of several GPUs; a
        name that an earlier line has; not completed, if asked), ``filled`` in (quality of service
        unknown) and ``noticed`` (no milli of its one GPU, so none).

    Raises
    ------
    InputError
        With file, line and rule: "no header", "missing column", "empty file", "no job left", and
        those of `sim.base.reading.read_blocks`.
    """
    names = column_names(path, ",", [name for name in _FIELDS if name not in _MAY_LACK])
    bad: dict[str, int] = {}
    fields = {name: field for name, field in _FIELDS.items() if name in names}
    with open_text(path) as stream:
        pods = read_columns(path, stream, Layout(names, skip_lines=1), fields, on_bad_row, bad)
    n_rows = len(pods["name"]) + sum(bad.values())
    report: dict[str, Any] = {"rows": n_rows, "bad_rows": bad, "dropped": {}}
    report |= {"filled": {}, "noticed": {}}
    kept = _kept(pods, state == "completed", report["dropped"])
    rows = np.flatnonzero(kept)
    if not len(rows):
        raise no_job_left(path, {**bad, **report["dropped"]})
    rows = rows[np.argsort(pods["creation_time"][rows], kind="stable")]
    pods = {
        k: v[rows] if isinstance(v, np.ndarray) else v.take(pa.array(rows)) for k, v in pods.items()
    }
    created_s = pods["creation_time"]
    qos = _words(pods, "qos")
    count_rule(report["filled"], "qos unknown: 'default'", _equal(qos, ""))
    levels = [PRIORITY.get(name, 0.0) for name in qos.dictionary.to_pylist()]
    idle = (pods["num_gpu"] == 1) & (pods["gpu_milli"] == 0)
    count_rule(report["noticed"], "one GPU, but no milli of it: none", idle)
    return Workload.from_tables(
        jobs={
            "job_id": pods["name"],
            "submit_s": created_s - created_s[0],
            "queue": pc.if_else(_equal(qos, ""), "default", qos.cast(pa.string())),
            "priority": np.array(levels)[qos.indices.to_numpy()],
        },
        stages={
            "job": np.arange(len(rows), dtype=np.int32),
            "n_tasks": np.ones(len(rows), dtype=np.int32),
            "duration_s": pods["deletion_time"] - pods["scheduled_time"],
            "demand_cpu": pods["cpu_milli"] / 1000,
            "demand_mem": pods["memory_mib"] / 1024,
            "demand_gpu": pods["num_gpu"] * pods["gpu_milli"] / 1000,
            "runs_on": _words(pods, "gpu_spec"),
        },
        meta={
            "name": "k8s_gpu2023",
            "quantum": {"cpu": 1e-3, "mem": 2.0**-10, "gpu": 1e-3},
            "offset_s": float(created_s[0]),
            "report": {**report, "jobs": len(rows)},
        },
    )


def _kept(pods: dict[str, Any], completed: bool, dropped: dict[str, int]) -> Mask:
    """Tell which pods ran, and count why others did not."""
    began, ended = pods["scheduled_time"], pods["deletion_time"]
    again = np.ones(len(began), dtype=bool)
    codes = pods["name"].dictionary_encode().indices.to_numpy()
    again[np.unique(codes, return_index=True)[1]] = False
    rules = {
        "name of an earlier line": again,
        "never scheduled": np.isnan(began),
        "not deleted yet": np.isnan(ended),
        "deleted before it was scheduled": ended < began,
        "parts of several GPUs": _parts_of_several(pods["num_gpu"], pods["gpu_milli"]),
    }
    if completed:
        rules["not completed"] = ~_equal(_words(pods, "pod_phase"), "Succeeded")
    return valid_rows(rules, dropped)


def _parts_of_several(num_gpu: F8, gpu_milli: F8) -> Mask:
    return (num_gpu > 1) & (gpu_milli < 1000)


def _words(pods: dict[str, Any], name: str) -> pa.DictionaryArray:
    column = pods.get(name)
    if column is None:
        column = pa.array([""] * len(pods["name"]), pa.string())
    return column.fill_null("").dictionary_encode().cast(CATEGORY)


def _equal(words: pa.DictionaryArray, text: str) -> Mask:
    equal: Mask = (
        pc.equal(words.cast(pa.string()), text).to_numpy(zero_copy_only=False).astype(bool)
    )
    return equal
