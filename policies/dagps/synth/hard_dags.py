"""Streams of jobs of equal work whose order of tasks matters: worst cases of DAGPS, or drawn DAGs.

Grandl et al., *Do the hard stuff first* (DAGPS, MSR-TR-2016-19), Figs. 2 and 17 to 19: DAGs on
which a scheduler that looks only at ready tasks, or only at the critical path, takes a multiple of
the optimum. The paper has one of each on one machine; a stream of them is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import numpy as np

from policies.dagps.synth.drawn_dag import Dag, to_workload
from sim.base import maths
from sim.base.arrays import F8
from sim.base.parameters import Between, Count, Positive, Share, Whole, checked
from sim.base.random import Stream, stream
from sim.workload.workload import Workload

RESOURCES = ("cpu", "mem", "disk", "net")
QUANTUM = 1e-4
LONG_S, SHORT = 100.0, 0.01
"""Duration of the long tasks of the paper's DAGs, s; ε, of a short task relative to it."""
RED_TASKS, CHAIN = 10, 10
"""Tasks of a group of Fig. 17 (k), with as many groups as resources; pairs of Fig. 18 (n)."""
MEAN_DEMAND, MIN_DEMAND = 0.2, 0.01
"""Mean demand of a drawn stage before demands are cut to a machine, and least demand."""
MAX_TASKS = 8
"""Maximum number of tasks of a drawn stage; they are uniform from 1."""
DURATION_SIGMA = 1.0
"""Spread of the logarithm of the durations of drawn stages."""
WORK_S = 400.0
"""Work of a drawn job, machine seconds of all resources together, so 100 of each on average."""

Stage = tuple[str, int, float, dict[str, float], tuple[str, ...]]
"""Name, number of tasks, duration in long tasks, demands as fractions of a machine, parents."""


def fig2() -> list[Stage]:
    """Long tasks t0, t2 and t4 can run together, once t1 and t3 are out of the way."""
    e = SHORT
    return [
        ("t0", 1, 1, {"cpu": 0.4, "mem": 0.5}, ()),
        ("t1", 1, e, {"cpu": 0.85}, ()),
        ("t2", 1, 1 - 4 * e, {"cpu": 0.4, "mem": 0.5}, ("t1",)),
        ("t3", 1, e, {"cpu": 0.2, "mem": 0.6}, ()),
        ("t4", 1, 1 - 2 * e, {"cpu": 0.2}, ("t3",)),
    ]


def fig17() -> list[Stage]:
    """In each group one red task, the last in order, unlocks the next group."""
    stages: list[Stage] = []
    parents: tuple[str, ...] = ()
    for g, resource in enumerate(RESOURCES):
        stages.append((f"B{g}", RED_TASKS - 1, 1, {resource: 1.0}, parents))
        stages.append((f"R{g}", 1, 1, {resource: 1.0}, parents))
        parents = (f"R{g}",)
    return stages


def fig18() -> list[Stage]:
    """Each long task waits for a short one that takes the whole machine."""
    stages: list[Stage] = []
    e = 1 / (100 * CHAIN)
    for i in range(1, CHAIN + 1):
        stages.append((f"W{i}", 1, e, {"cpu": 1.0}, ()))
        stages.append((f"L{i}", 1, 1 - 2 * (i - 1) * e, {"cpu": 1 / CHAIN}, (f"W{i}",)))
    return stages


def fig19() -> list[Stage]:
    """Each long task waits for a short one that can't run beside the long one before it."""
    stages: list[Stage] = []
    for i in range(1, 2 * len(RESOURCES) - 1):
        own, before = RESOURCES[(i - 1) // 2], RESOURCES[max(i // 2 - 1, 0)]
        parents = (f"W{i - 1}",) if i > 1 else ()
        stages.append((f"W{i}", 1, SHORT, {before: 0.584}, parents))  # 7/12, above a half
        stages.append((f"L{i}", 1, 1, {own: 0.5, RESOURCES[-1]: 0.166}, (f"W{i}",)))  # below 1/6
    return stages


PAPER: dict[str, Callable[[], list[Stage]]] = {
    "fig2": fig2, "fig17": fig17, "fig18": fig18, "fig19": fig19,
}  # fmt: skip


def paper_dag(stages: Sequence[Stage]) -> Dag:
    """Return one of the paper's DAGs."""
    row = {name: i for i, (name, *_) in enumerate(stages)}
    edges = [(row[p], row[name]) for name, *_, parents in stages for p in parents]
    parent, child = np.array(edges, np.int64).T
    return Dag(
        tuple(row), np.array([n for _, n, *_ in stages], np.int64),
        LONG_S * np.array([s for _, _, s, *_ in stages]),
        np.array([[d.get(r, 0.0) for r in RESOURCES] for *_, d, _ in stages]),
        parent, child, np.zeros(len(edges), bool),
    )  # fmt: skip


def draw_dag(depth: int, width: int, demand_sigma: float, rng: Stream) -> Dag:
    """Draw levels of `width` stages, each of which waits for one stage of the level before."""
    n = depth * width
    n_tasks = rng.integers(1, MAX_TASKS + 1, size=n)
    duration = maths.exp(DURATION_SIGMA * rng.normal(size=n))
    z = rng.normal(size=(n, len(RESOURCES)))
    demand = MEAN_DEMAND * maths.exp(demand_sigma * z - demand_sigma**2 / 2)
    demand = np.clip(demand, MIN_DEMAND, 1.0)
    child = np.arange(width, n)
    parent = (child // width - 1) * width + rng.integers(0, width, size=len(child))
    work = float((n_tasks * duration * demand.sum(axis=1)).sum())
    return Dag(
        tuple(f"S{i + 1}" for i in range(n)), n_tasks.astype(np.int64), duration * WORK_S / work,
        demand, parent, child, np.zeros(len(child), bool),
    )  # fmt: skip


@checked
def synthesize(
    jobs: Count = 60,
    seed: Whole = 0,
    dag: Literal["drawn", "fig2", "fig17", "fig18", "fig19"] = "drawn",
    programs: Count = 10,
    depth: Count = 6,
    width: Count = 4,
    wide: Share = 1.0,
    demand_sigma: Annotated[float, Between(0, 3)] = 0.8,
    at_once: Count = 1,
    load: Positive = 0.6,
    machines: Positive = 1,
) -> Workload:
    """Synthesize jobs of equal work, so that serving short jobs first gains nothing.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    seed : int
        Seed of all draws.
    dag : {"drawn", "fig2", "fig17", "fig18", "fig19"}
        Drawn DAGs (`draw_dag`), or one of the paper's for all jobs.
    programs : int
        Number of different drawn DAGs; each job is a run of one, drawn uniformly.
    depth, width : int
        Levels of a drawn DAG, and stages of a level.
    wide : float
        Share of the drawn programs with `width`; the others are chains of `depth` stages.
    demand_sigma : float
        Spread of the logarithm of the demands of drawn stages, by resource.
    at_once : int
        Number of jobs that are submitted at the same time.
    load : float
        Offered load of the bottleneck resource.
    machines : float
        Number of machines of the cluster, with 1 of each resource.

    Returns
    -------
    Workload
        Demands are fractions of a machine. Arrivals are Poisson, `at_once` jobs each time.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    def rng(*purpose: str | int) -> Stream:
        return stream(seed, "synth", "hard_dags", *purpose)

    if dag == "drawn":
        n_wide = int(np.rint(wide * programs))
        choices = [
            draw_dag(depth, width if p < n_wide else 1, demand_sigma, rng("program", p))
            for p in range(programs)
        ]
        program = rng("jobs").integers(0, programs, size=jobs)
    else:
        choices = [paper_dag(PAPER[dag]())]
        program = np.zeros(jobs, np.int64)
    works = np.array([_work_s(choices[p]) for p in program])
    interval_s = at_once * float(works.mean(axis=0).max()) / (load * machines)
    between = rng("arrivals").exponential(interval_s, -(-jobs // at_once))
    between[0] = 0.0
    return to_workload(
        [choices[p] for p in program],
        job_id=[f"{dag}-{job:06d}" for job in range(jobs)],
        template=[f"{dag}-{p}" for p in program],
        submit_s=np.repeat(np.cumsum(between), at_once)[:jobs],
        resources=RESOURCES,
        quantum=QUANTUM,
        meta={
            "name": f"synth-hard_dags-{dag}",
            "synth": {
                "generator": "hard_dags",
                "jobs": int(jobs),
                "seed": int(seed),
                "dag": dag,
                "interval_s": interval_s,
                "source": "Grandl et al., MSR-TR-2016-19, Figs. 2 and 17 to 19",
            },
        },
    )


def _work_s(dag: Dag) -> F8:
    """Return the work of a DAG by resource, machine seconds."""
    work: F8 = ((dag.n_tasks * dag.duration_s)[:, None] * dag.demand).sum(axis=0)
    return work
