"""Like tasks that move as one, beside the same tasks that move one by one.

Run as ``python -m benchmarks.batches [--trace FILE]``: the sample of Alibaba's trace from the
shared folder, or a synthesized workload without it. Both sides are the same kernel, without
records, on the same tasks; on one side each task is a run of its own. A ratio is of their CPU
seconds, one after the other, the best of several. Job times are compared to the bit.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import policies
import sim
from benchmarks.common import ROOT, Row, cpu_seconds, row, show
from sim import Workload
from sim.cluster.cluster import Cluster
from sim.engine.kernels.run import DONE, bind_variant
from sim.engine.plan import Scheduler
from sim.engine.session import begin_run

TRACE = ROOT.parent / "shared" / "traces" / "alibaba2018" / "batch_task_6600_jobs.csv.gz"
SLOTS = (290, 435, 1000, 2000, 20_000)
ORDERS, SHARES = ("fifo", "srpt"), ("las", "drf", "fair")
N_USERS = 8
TARGETS = {name: {435: 4, 1000: 15, 2000: 40} for name in ORDERS}
TARGETS |= {name: {435: 3, 1000: 8, 2000: 15} for name in SHARES}
TIMES = 5


def main() -> int:
    """Measure, and print the targets beside the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__)
    parser.add_argument("--trace", type=Path, default=TRACE)
    trace = parser.parse_args().trace
    if trace.exists():
        sample = sim.read_trace("alibaba2018", trace)
    else:
        sample = sim.synthesize("alibaba2018", jobs=6600, seed=0)
    rows = []
    for name in (*ORDERS, *SHARES):
        rows += [_ratio(sample, name, slots) for slots in SLOTS]
    shared = _with_users(sample)
    rows += [
        _ratio(shared, name, slots, f", {N_USERS} users") for name in SHARES for slots in SLOTS
    ]
    rows += [
        _overhead(_all_different(sample), name, slots) for name in ORDERS for slots in SLOTS[:2]
    ]
    return show("batches", rows)


def _ratio(w: Workload, name: str, slots: int, label: str = "") -> Row:
    policy = policies.build(name)
    singly = _one_by_one(w)
    pairs = []
    for _ in range(TIMES):
        single, job_times = _kernel_seconds(singly, slots, policy)
        batched, same_times = _kernel_seconds(w, slots, policy)
        if not np.array_equal(job_times, same_times):
            raise AssertionError(f"{name} on {slots} slots: batches change the schedule")
        pairs.append((single, batched))
    best = min(single for single, _ in pairs) / min(batched for _, batched in pairs)
    target = TARGETS[name].get(slots) if not label else None
    return row(
        f"{name}, {slots} slots{label}: single tasks over batches", best, "×", at_least=target
    )


def _overhead(w: Workload, name: str, slots: int) -> Row:
    """Time a workload whose tasks all differ: batches of one, without any gain."""
    policy = policies.build(name)
    seconds = [_kernel_seconds(w, slots, policy)[0] for _ in range(TIMES)]
    rate = w.n_tasks / min(seconds) / 1e6
    return row(f"{name}, {slots} slots, all durations differ", rate, "M tasks/s")


def _kernel_seconds(w: Workload, slots: int, policy: Scheduler) -> tuple[float, np.ndarray]:
    """Return the CPU time of the event loop, s, and the start and end of each job."""
    opened = begin_run(w, Cluster.slots(slots), policy, 0, record_tasks=False)
    changed, arrays = opened.plan.take_changed(), opened.arrays
    loop, record = bind_variant(opened.features, arrays, changed)
    codes = []
    seconds = cpu_seconds(lambda: codes.append(loop(record, changed, -1)))
    if codes != [DONE]:
        raise AssertionError(f"{policy.name} stopped with {codes}")
    return seconds, np.stack([arrays["out_job_start"], arrays["out_job_finish"]])


def _changed(w: Workload, tables: dict[str, pa.Table]) -> Workload:
    names = ("jobs", "stages", "tasks", "stage_edges")
    return Workload.from_tables(**{name: getattr(w, name) for name in names} | tables)


def _one_by_one(w: Workload) -> Workload:
    """Return the workload with each task as a run of its own."""
    copy = _changed(w, {})
    c = w.columns
    copy.__dict__["columns"] = replace(
        c,
        stage_run0=c.stage_task0,
        run_task0=np.arange(c.n_tasks + 1),
        run_duration=c.task_duration,
    )
    return copy


def _with_users(w: Workload) -> Workload:
    """Return the workload with jobs of several users, each with a queue."""
    index = np.random.default_rng(0).integers(0, N_USERS, w.n_jobs)
    users = pa.array([f"u{i}" for i in index]).dictionary_encode()
    jobs = w.jobs
    for name in ("user", "queue"):
        jobs = jobs.set_column(jobs.schema.get_field_index(name), name, users)
    return _changed(w, {"jobs": jobs})


def _all_different(w: Workload) -> Workload:
    """Return the workload with durations that all differ, by a millionth at most."""
    factor = 1 + 1e-6 * np.random.default_rng(0).random(w.n_tasks)
    stage = pa.array(w.columns.task_stage().astype(np.int32))
    tasks = pa.table({"stage": stage, "duration_s": w.columns.task_duration * factor})
    return _changed(w, {"tasks": tasks})


if __name__ == "__main__":
    sys.exit(main())
