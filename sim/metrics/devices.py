"""Metrics of devices (GPUs): unallocated devices, and fragmentation of the free ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import F8, I8, offsets
from sim.cluster.classes import capacity_in_quanta, quanta_per_device
from sim.engine.plan.choice import Mix
from sim.engine.record import Run
from sim.metrics.common import FRACTION, NAN, Metric

METRICS = {
    "devices_unallocated": Metric(
        "1",
        "lower",
        "share of devices (GPUs) that no task has when the last job comes",
        span=FRACTION,
    ),
    "fragmentation": Metric(
        "1",
        "lower",
        "share of free devices that can't be given to the next task, over arrivals",
        span=FRACTION,
    ),
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute both metrics of a run on machines with devices, if its tasks are recorded."""
    if run.cluster.devices is None or run.task_devices is None:
        return {}
    free, unusable = device_samples(run).T
    total = run.cluster.total[run.cluster.resources.index(run.cluster.devices)]
    has_free = free > 0
    share = unusable[has_free] / free[has_free]
    return {
        "devices_unallocated": float(free[-1] / total),
        "fragmentation": float(share.mean()) if len(share) else NAN,
    }


def device_samples(run: Run) -> F8:
    """Sample, when each job is submitted, the free devices and the unusable ones of them: (L, 2).

    A task holds its devices after its placement and until before its end. Devices are unusable in
    expectation over the next task, drawn uniformly from the workload's
    (`sim.engine.plan.choice.Mix`).
    """
    from sim.metrics.kernels.fragments import replay  # loads numba, not needed to name metrics

    columns, cluster = run.allocated, run.cluster
    quantum = np.ones(len(cluster.resources))
    demand = np.zeros((len(columns.stage_job), len(cluster.resources)), np.int64)
    for r, name in enumerate(cluster.resources):
        if name in columns.resources:
            column = columns.resources.index(name)
            quantum[r], demand[:, r] = columns.quantum[column], columns.stage_demand[:, column]
    assert cluster.devices is not None
    device = cluster.resources.index(cluster.devices)
    per = quanta_per_device(quantum[device])
    capacity = capacity_in_quanta(cluster.capacity, quantum, device)
    device0 = offsets(capacity[:, device] // per)
    code = np.append(cluster.machine_class, 0).astype(np.int64)
    mix = Mix.from_columns(columns, cluster)
    events = _events(run)
    sums = np.zeros((int((events[:, 3] == 0).sum()), 2))
    replay(
        events,
        demand,
        np.ascontiguousarray(np.column_stack([mix.demand, mix.allowed])),
        mix.weight,
        np.column_stack([np.left_shift(1, code), device0]),
        device,
        capacity,
        np.full(int(device0[-1]), per, np.int64),
        sums,
    )
    return sums / per


def _events(run: Run) -> I8:
    """Return machine, stage, devices and sign of ends, samples and starts: by time, then kind."""
    assert run.task_acquired is not None
    assert run.task_finish is not None
    assert run.task_machine is not None
    assert run.task_devices is not None
    ran = np.flatnonzero(run.task_finish > run.task_acquired)
    stage = run.workload.columns.task_stage()[ran]
    submit = run.job_submit[np.isfinite(run.job_submit)]
    sign = np.ones(len(ran), np.int64)  # an integer column, so that the devices' bits stay exact
    task = np.column_stack([run.task_machine[ran], stage, run.task_devices[ran], sign])
    sample = np.zeros((len(submit), 4), np.int64)
    time = np.concatenate([run.task_finish[ran], submit, run.task_acquired[ran]])
    kind = np.repeat([0, 1, 2], [len(ran), len(submit), len(ran)])
    rows: I8 = np.concatenate([task * np.array([1, 1, 1, -1]), sample, task])
    return np.ascontiguousarray(rows[np.lexsort((kind, time))])
