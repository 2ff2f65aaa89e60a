"""Simulation of a workload on a cluster under a policy."""

from __future__ import annotations

from typing import Literal

from sim.cluster.cluster import Cluster
from sim.engine.clock import run_on_own_clock
from sim.engine.plan import Scheduler, State
from sim.engine.simulate import simulate as run
from sim.result import Result
from sim.workload.workload import Workload


def simulate(
    workload: Workload,
    cluster: Cluster,
    policy: Scheduler,
    *,
    seed: int = 0,
    record: Literal["jobs", "tasks"] = "tasks",
    state: State | None = None,
) -> Result:
    """Run `workload` on `cluster` under `policy`.

    A run is a pure function of its arguments: the same bits on every machine and in every process.
    The times of the cluster (outages, reservations, slow periods) count from the first submission.
    Where that is far from 0, as in epoch seconds, the run has a clock of its own
    (`sim.workload.transform.origin_s`), so that its results don't depend on the epoch.

    Parameters
    ----------
    workload : Workload
        The jobs that are submitted.
    cluster : Cluster
        The cluster that they run on.
    policy : Scheduler
        The scheduling policy, e.g. ``policies.build("sjf")``.
    seed : int
        Seed of the policy's random streams.
    record : {"jobs", "tasks"}
        "tasks" records when and where each task ran, which metrics need; "jobs" does not, and
        saves 20 bytes and some 10 ns a task.
    state : State, optional
        What ran before the scheduler begins, and where (`sim.state`), on the workload's clock.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If a demand, a gang or a queue can never fit, before anything runs.
    PolicyError
        If the policy fills a column with invalid values.
    DeadlockError
        If jobs are left that can never go on.
    """
    own = None if state is None else state.later(-workload.origin_s)
    fields = run_on_own_clock(run, workload, cluster, policy, seed=seed, record=record, state=own)
    return Result(**fields)
