"""Speed of DAGPS's offline schedules on one core, and the loss with fewer candidates.

Run as ``python -m benchmarks.dagps``. The DAGs are drawn: stages in seven layers, each with one to
three parents in the layers above, lognormal sizes and durations, demands of four resources with a
coefficient of variation near 1 (Grandl et al., *Do the hard stuff first*, §2.3, Table 1). Demands
are scaled so that the work takes between a quarter and twice as long as the critical path, log-
uniformly: where one of the two is much greater, any schedule is good.
"""

from __future__ import annotations

import sys
from statistics import median
from typing import Any

import numpy as np

import sim
from benchmarks.common import cpu_seconds, row, show
from policies.dagps.build_schedule import MAX_CANDIDATES, build_schedule, heft_schedule
from policies.dagps.dag import demand_quanta, one_job
from sim.bounds import bound_arrays
from sim.workload.columns import Columns

RESOURCES = ("cpu", "mem", "disk", "net")
CLUSTER = sim.Cluster.machines(50, **dict.fromkeys(RESOURCES, 1000.0))
DEPTH = 7


def dag(
    n_tasks: int, seed: int, paired: float = 0.0, equal_tasks: bool = True, depth: int = DEPTH
) -> sim.Workload:
    """Draw one job of `n_tasks` tasks with `depth` stages on its longest path.

    `paired` is the share of one-to-one edges. With `equal_tasks` the tasks of a stage have equal
    durations.
    """
    rng = np.random.default_rng([seed, n_tasks, depth])
    n_stages = int(rng.integers(2 * depth, 5 * depth))
    layer = np.sort(np.concatenate([np.arange(depth), rng.integers(0, depth, n_stages - depth)]))
    share = rng.lognormal(0, 1.2, n_stages)
    size = np.maximum(1, (share / share.sum() * n_tasks).astype(int))
    size[int(np.argmax(size))] += n_tasks - size.sum()
    amounts = rng.lognormal(0, 0.8, (n_stages, len(RESOURCES)))
    stages: list[dict[str, Any]] = []
    for s in range(n_stages):
        length = float(np.round(rng.lognormal(3, 1), 3))
        durations = [length] * int(size[s])
        if not equal_tasks:
            durations = np.round(length * rng.lognormal(0, 0.4, int(size[s])), 3).tolist()
        parents = {}
        if layer[s]:
            just_above = np.flatnonzero(layer == layer[s] - 1)
            above = np.flatnonzero(layer < layer[s])
            some = [rng.choice(just_above), *rng.choice(above, int(rng.integers(0, 3)))]
            parents = {
                f"s{p}": "one_to_one" if rng.random() < paired else "barrier" for p in set(some)
            }
        stages.append({"name": f"s{s}", "durations_s": durations, "parents": parents})
    target_ratio = float(np.exp(rng.uniform(np.log(0.25), np.log(2.0))))
    for _ in range(5):  # the other demands make up for those clipped at the size of a machine
        amounts = np.clip(amounts, 1, 900)
        for stage, row_ in zip(stages, amounts.tolist(), strict=True):
            stage["demand"] = dict(zip(RESOURCES, row_, strict=True))
        job = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
        bounds = bound_arrays(job.columns, CLUSTER)
        amounts *= target_ratio * bounds["cp_len"][0] / bounds["twork"][0]
    return job


def seconds(jobs: list[sim.Workload], **options: int | str | None) -> list[float]:
    """Time one schedule of each job."""
    for job in jobs:
        _ = job.columns
    return [cpu_seconds(lambda job=job: build_schedule(job, CLUSTER, **options)) for job in jobs]


def heft_seconds(jobs: list[sim.Workload]) -> list[float]:
    """Time one HEFT schedule of each job."""
    elapsed_s = []
    for job in jobs:
        columns = job.columns

        def run(columns: Columns = columns) -> None:
            demand, capacity = demand_quanta(columns, CLUSTER)
            heft_schedule(one_job(columns, demand, 0, columns.task_duration), capacity)

        elapsed_s.append(cpu_seconds(run))
    return elapsed_s


def spans(jobs: list[sim.Workload], **options: int | str | None) -> np.ndarray:
    """Return the makespan of each job's schedule, s."""
    return np.array([build_schedule(job, CLUSTER, **options).makespan_s for job in jobs])


def main() -> int:
    """Measure speed by size and kind, and the loss of each number of candidates."""
    seconds([dag(50, 0)])  # compiles
    small = [dag(1000, seed) for seed in range(25)]
    rows = [row("1,000 tasks, a profile a stage", seconds(small), "s", at_most=0.3)]
    uneven = [dag(1000, seed, equal_tasks=False) for seed in range(9)]
    rows.append(row("... a duration of its own for each task", seconds(uneven), "s"))
    paired = [dag(1000, seed, paired=0.3) for seed in range(9)]
    rows.append(row("... 30 % of the edges one-to-one", seconds(paired), "s"))
    rows.append(row("... HEFT, one schedule, for comparison", heft_seconds(small), "s"))
    last = 0.0
    for n in (250, 500, 1000, 2000, 4000, 8000):
        elapsed_s = seconds([dag(n, seed) for seed in range(15)])
        grows = f" ({median(elapsed_s) / last:.1f} × the half)" if last else ""
        rows.append(row(f"{n:,} tasks{grows}", elapsed_s, "s"))
        last = median(elapsed_s)
    rows.append(row("5,000 tasks", seconds([dag(5000, s) for s in range(9)]), "s", at_most=3))
    everything = spans(small, max_candidates=None)
    for n in (1, 8, 16, 32, 64, 128):
        lost = (spans(small, max_candidates=n) / everything - 1) * 100
        default = ", the default" if n == MAX_CANDIDATES else ""
        label = f"longer with {n} candidates than with all{default} (mean)"
        rows.append(row(label, float(lost.mean()), "%"))
    return show("dagps", rows)


if __name__ == "__main__":
    sys.exit(main())
