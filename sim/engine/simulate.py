"""The simulation of one run: alternate the kernel and the policy."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.cluster.cluster import Cluster
from sim.engine.allocation import provisioned
from sim.engine.kernels.run import bind_variant
from sim.engine.plan import Scheduler, State
from sim.engine.record import Run
from sim.engine.session import Session, begin_run
from sim.workload.workload import Workload


def simulate(
    workload: Workload,
    cluster: Cluster,
    policy: Scheduler,
    *,
    seed: int = 0,
    record: Literal["jobs", "tasks"] = "tasks",
    state: State | None = None,
) -> Run:
    """Run `workload` on `cluster` under `policy`; see `sim.simulation.simulate`."""
    session = Session(workload, cluster, policy, seed=seed, record=record, state=state)
    _alternate(session, policy)
    return session.finish()


def _alternate(session: Session, policy: Scheduler) -> None:
    world, plan, memory = session.opened[:3]
    for batch in session.instants():
        policy.react(memory, batch, world, plan)


def variant(workload: Workload, cluster: Cluster, policy: Scheduler) -> frozenset[str]:
    """Return the features of the event loop that such runs compile and use."""
    cluster = provisioned(workload, cluster, policy)
    return begin_run(workload, cluster, policy, 0, record_tasks=True).features


def compile_ahead(workload: Workload, cluster: Cluster, policy: Scheduler) -> None:
    """Compile or load all kernels of such a run, and run nothing."""
    cluster = provisioned(workload, cluster, policy)
    opened = begin_run(workload, cluster, policy, 0, record_tasks=True)
    bind_variant(opened.features, opened.arrays, np.zeros(0, dtype=np.int32))
