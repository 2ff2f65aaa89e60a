"""Reader of scientific workflows in WfFormat 1.3 to 1.5: real runs collected by WfCommons.

Source: Coleman et al., *WfCommons: a framework for enabling scientific workflow research and
development*, Future Generation Computer Systems 128 (2022); https://wfcommons.org.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from policies.wing.wfcommons import accounts
from policies.wing.wfcommons.accounts import joined
from policies.wing.wfcommons.instances import Instance, quantum, read_instances
from sim.base.arrays import offsets
from sim.base.parameters import NotNegative, Whole, checked
from sim.base.reading import resolution_s
from sim.workload.amounts import with_account
from sim.workload.workload import Workload

if TYPE_CHECKING:
    from policies.wing.lineage import Logs

__all__ = ["logs", "read"]


@checked
def read(
    path: str | os.PathLike[str],
    *,
    read_as: Literal["dag", "logs"] = "dag",
    every_s: NotNegative = 0.0,
    gap_s: NotNegative = 1.0,
    copies: Whole = 0,
    seed: int = 0,
    rounds: Whole | None = None,
) -> Workload:
    """Read workflows: each as one job, or each of their tasks as a job.

    Parameters
    ----------
    path : path-like
        A file, plain or gzipped JSON, or a folder of ``*.json`` and ``*.json.gz``.
    read_as : {"dag", "logs"}
        ``dag``: a workflow is a job, and a task is a stage of one task that waits for its parents
        and demands ``cpu`` (its ``coreCount``, else its mean use, rounded up) and ``mem`` in GiB.
        An edge counts if ``parents`` or ``children`` state it.
        ``recorded_finish_s`` of ``jobs`` is its recorded makespan after its submission (null:
        unknown); files do not tell when tasks started.
        ``logs``: a task is a job that reads and writes files (`logs`), and dependencies are
        inferred from these; it demands as many ``tokens`` as cores, and is submitted `gap_s` after
        its inputs.
    every_s : float
        Time between the beginnings of workflows that run once, s.
    gap_s : float
        Time between the end of a task and the start of its children, s.
    copies : int
        Number of recurring copies of each workflow, with ``read_as="logs"``: 0 for one run of each,
        without a history. Otherwise copies recur for four weeks, the third of which is the
        workload, with the dependencies and history that the earlier logs show
        (`policies.wing.lineage.workload`); `policies.wing.wfcommons.weeks` says what is drawn for
        that.
    seed : int
        Seed of the draws.
    rounds : int, optional
        Number of downstream hops over which value is aggregated, as a power of two: 2^rounds; by
        default all.

    Returns
    -------
    Workload
        ``meta["report"]`` counts workflows, tasks, edges and files, and edges that one of
        ``parents`` and ``children`` lacks (``noticed``). Without copies it has an ``account``.

    Raises
    ------
    InputError
        With the file and rule: "not JSON", "wrong shape", "old version", "empty workflow",
        "duplicate id", "unknown task", "no run time", "number out of range", "cycle",
        "missing file".
    """
    instances = read_instances(path)
    report: dict[str, Any] = {
        "workflows": len(instances),
        "tasks": sum(i.n_tasks for i in instances),
        "edges": sum(len(i.up) for i in instances),
        "files": sum(len(i.file) for i in instances),
        "noticed": accounts.noticed(instances),
    }
    meta = {"name": "wfcommons", "report": report}
    if read_as == "dag":
        return with_account(_dags(instances, every_s, meta), accounts.account_of_dags(instances))
    from policies.wing.wfcommons import weeks  # loads the profiler, which DAGs do not need

    logs = weeks.OneRun(instances, every_s, gap_s)
    report["edges"] = len(logs.inferred)
    if copies:
        report["warnings"] = accounts.unseen_warning(instances, logs.inferred)
        return weeks.third_week(instances, copies, gap_s, seed, rounds, meta)
    return with_account(
        logs.workload(rounds, meta), accounts.account_of_logs(instances, logs.inferred)
    )


def logs(path: str | os.PathLike[str], *, every_s: float = 0.0, gap_s: float = 1.0) -> Logs:
    """Return the logs that a data platform would have of one run of each workflow.

    A task starts `gap_s` after the end of its last parent, reads its input files then, and writes
    its output files when it ends.
    """
    from policies.wing.wfcommons import weeks  # loads the profiler

    return weeks.OneRun(read_instances(path), every_s, gap_s).logs


def _dags(instances: list[Instance], every_s: float, meta: dict[str, Any]) -> Workload:
    first = offsets(np.array([i.n_tasks for i in instances]))
    job = np.repeat(np.arange(len(instances), dtype=np.int32), np.diff(first))

    def edges(name: str) -> Any:
        parts = (getattr(i, name) + begin for i, begin in zip(instances, first[:-1], strict=True))
        return np.concatenate(list(parts)).astype(np.int32)

    submit_s = every_s * np.arange(len(instances))
    makespan_s = np.array([i.makespan_s for i in instances])
    cores = joined(instances, "cores")
    return Workload.from_tables(
        jobs={
            "job_id": [i.name for i in instances],
            "submit_s": submit_s,
            "template": [i.workflow for i in instances],
            "recorded_finish_s": submit_s + makespan_s,
        },
        stages={
            "job": job,
            "name": [name for i in instances for name in i.task_id],
            "n_tasks": np.ones(len(job), np.int32),
            "duration_s": joined(instances, "duration_s"),
            "demand_cpu": cores,
            "demand_mem": joined(instances, "mem_gib"),
        },
        stage_edges={"parent": edges("up"), "child": edges("down")},
        meta={
            "quantum": {"cpu": quantum(cores), "mem": 1e-6},
            "resolution_s": resolution_s(makespan_s),
            **meta,
        },
    )
