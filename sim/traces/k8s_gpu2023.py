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

from sim.base.arrays import F8, I8, Mask
from sim.base.parameters import checked
from sim.base.reading import (
    Account,
    BadRows,
    Field,
    Layout,
    OnBadRow,
    column_names,
    count_rule,
    distinct_ids,
    no_job_left,
    open_text,
    read_columns,
    repeated_rows,
    resolution_s,
)
from sim.workload.amounts import with_account
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
_BY_OPTION = ("not completed",)
_CENSORED = "censored: not deleted when the log ended"
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
        ``dropped`` (pods that were never scheduled, were not deleted when the log ended, were
        deleted before they were scheduled, or request parts of several GPUs; a line
        that is there twice; with ``state="completed"``, pods that did not succeed),
        ``filled`` (quality of service unknown) and ``noticed`` (one GPU, but 0 milli of it: none;
        names of several pods).

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
    is_repeated = repeated_rows(pods["name"], pods)
    count_rule(report["dropped"], "repeated line", is_repeated)
    pods = _take(pods, np.flatnonzero(~is_repeated))
    account = Account(_amounts(pods))
    rules = _rules(pods, state == "completed")
    rows = np.flatnonzero(account.keep(rules, report["dropped"], _BY_OPTION))
    account.add_bad_rows(bad, _amounts)
    account.warn_of_censored(_CENSORED)
    if not len(rows):
        raise no_job_left(path, bad, report["dropped"])
    pods = _take(pods, rows[np.argsort(pods["creation_time"][rows], kind="stable")])
    created_s, begin_s, end_s = (pods[name] for name in _TIMES)
    job_ids, is_again = distinct_ids(pods["name"])
    count_rule(report["noticed"], "name of an earlier pod: another pod", is_again)
    qos = _categories(pods, "qos")
    count_rule(report["filled"], "qos unknown: 'default'", _equal(qos, ""))
    levels = [PRIORITY.get(name, 0.0) for name in qos.dictionary.to_pylist()]
    idle = (pods["num_gpu"] == 1) & (pods["gpu_milli"] == 0)
    count_rule(report["noticed"], "one GPU, but 0 milli of it: none", idle)
    workload = Workload.from_tables(
        jobs={
            "job_id": job_ids,
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
    return with_account(workload, account, bad)


def _take(pods: dict[str, Any], rows: I8) -> dict[str, Any]:
    """Return some pods."""
    return {
        name: column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))
        for name, column in pods.items()
    }


def _amounts(pods: dict[str, Any]) -> dict[str, F8]:
    """Return what each pod held, times the time it ran, by kind; 0 of one that never ran."""
    _, begin_s, end_s = (pods[name] for name in _TIMES)
    ran_s = np.where(np.isnan(begin_s), 0.0, np.where(end_s >= begin_s, end_s - begin_s, np.nan))
    return {
        "cpu_s": pods["cpu_milli"] / 1000 * ran_s,
        "gpu_s": pods["num_gpu"] * pods["gpu_milli"] / 1000 * ran_s,
        "mem_gib_s": pods["memory_mib"] / 1024 * ran_s,
    }


def _rules(pods: dict[str, Any], completed: bool) -> dict[str, Mask]:
    """Return the rules by which pods are no jobs, and the pods that each excludes."""
    _, begin_s, end_s = (pods[name] for name in _TIMES)
    rules = {
        "never scheduled": np.isnan(begin_s),
        _CENSORED: np.isnan(end_s),
        "deleted before it was scheduled": end_s < begin_s,
        "parts of several GPUs": (pods["num_gpu"] > 1) & (pods["gpu_milli"] < 1000),
    }
    if completed:
        rules[_BY_OPTION[0]] = ~_equal(_categories(pods, "pod_phase"), "Succeeded")
    return rules


def _categories(pods: dict[str, Any], name: str) -> pa.DictionaryArray:
    column = pods.get(name)
    if column is None:
        column = pa.array([""] * len(pods["name"]), pa.string())
    return column.fill_null("").dictionary_encode().cast(CATEGORY)


def _equal(categories: pa.DictionaryArray, text: str) -> Mask:
    equal = pc.equal(categories.cast(pa.string()), text).to_numpy(zero_copy_only=False)
    return np.asarray(equal, dtype=bool)
