"""Simulation of a workload on a cluster under a policy."""

from __future__ import annotations

from typing import Literal

from sim.cluster.cluster import Cluster
from sim.engine.plan import Scheduler
from sim.engine.simulate import simulate as run_of
from sim.result import Result
from sim.workload.workload import Workload


def simulate(
    workload: Workload,
    cluster: Cluster,
    policy: Scheduler,
    *,
    seed: int = 0,
    record: Literal["jobs", "tasks"] = "tasks",
) -> Result:
    """Run `workload` on `cluster` under `policy`.

    A run is a pure function of its arguments: the same bits on every machine and in every process.

    Parameters
    ----------
    workload : Workload
        What is submitted.
    cluster : Cluster
        What it runs on.
    policy : Scheduler
        What decides, e.g. ``policies.build("sjf")``.
    seed : int
        Seed of whatever the policy draws.
    record : {"jobs", "tasks"}
        "tasks" keeps when and where each task ran, which metrics need; "jobs" does without, and
        saves 20 bytes and some 10 ns a task.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If a demand, a gang or a queue can never fit, before anything runs.
    PolicyError
        If the policy fills a column with nonsense.
    DeadlockError
        If jobs are left that can never go on.
    """
    return Result(**vars(run_of(workload, cluster, policy, seed=seed, record=record)))
