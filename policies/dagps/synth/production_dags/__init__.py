"""DAGs with the published statistics of a large enterprise's production cluster.

Grandl et al., *Do the hard stuff first* (DAGPS, MSR-TR-2016-19), §2.3: Table 1's variation of
demands, Table 2's shares of work, medians of depth and tasks, degrees; §4.4: the share that splits.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import numpy as np

from policies.dagps.synth.drawn_dag import Dag, to_workload
from policies.dagps.synth.production_dags.dags import CPU_MEM, Assumed, draw_dag, draw_task_s
from policies.dagps.synth.production_dags.structure import draw_structure
from sim.base import maths
from sim.base.arrays import F8
from sim.base.parameters import Between, Count, Factor, NotNegative, Share, Whole, checked
from sim.base.random import stream
from sim.published import numbers
from sim.workload.workload import Workload

QUANTUM = 1e-4
_PAPER = numbers("dagps")
FOUR_RESOURCES = ("cpu", "mem", "disk", "net")
RUN_SIGMA = 0.1
"""Spread of the logarithm of a stage's durations between runs of a program; an assumption."""
TASK_SIGMA = 0.7
"""Spread of the logarithm of task durations within a stage.

The paper has none. The 990 stages of at least eight tasks of TPC-H queries over 2 to 100 GB, on 50
executors of Spark, have 0.69, pooled over tasks (quartiles over stages 0.24, 0.53 and 0.78). It is
0.32 with 2 executors and 0.79 with 100: with more executors, more tasks are the first of their
executor, which take longer.
"""


@checked
def synthesize(
    jobs: Count = 2000,
    seed: Whole = 0,
    median_tasks: Factor = _PAPER["dags"]["tasks_p50"],
    recurring: Share = _PAPER["dags"]["recurring"],
    interval_s: NotNegative = 15.0,
    split_io: bool = False,
    task_sigma: Annotated[float, Between(0, 2)] = TASK_SIGMA,
    duration_sigma: Annotated[float, Between(0, 2)] = 1.1,
    source_duration: Factor = 6.0,
    stage_sigma: Annotated[float, Between(0, 2)] = 0.7,
    more_sources: NotNegative = 1.5,
    cut: Share = 0.065,
    cpu_mem: Annotated[float, Between(0.01, 0.3)] = CPU_MEM,
    io_factor: Annotated[float, Between(0.1, 1.5)] = 1.0,
) -> Workload:
    """Synthesize DAGs like those of the paper's private production cluster.

    Published, and compared by `statistics.statistics` (also over Table 1's six resources, with
    `split_io`): the variation of demands among tasks, the distribution of work over the DAG, depth,
    number of tasks, degrees, the shares of DAGs that split into four or more parts and of jobs that
    recur. Assumed, as the paper does not say: mean demands of 12 % of a machine's cpu and memory,
    15 and 9 % of its disk's reads and writes, 12 and 1 % of its network's; durations of stages
    log-normal with a median of 12 s, six times longer where they read the job's input; 15 % of the
    edges within a segment one-to-one, between stages with the same number of tasks, the others
    barriers; Poisson arrivals. Demands for disk and network are those for reading and writing
    together, at most a machine.

    All tasks of a stage have one demand; their durations are log-normal, in random order. A job
    that recurs has the stages, demands and numbers of tasks of an earlier one, drawn uniformly
    among all earlier jobs, so that a few programs recur often; its stages last up to about a fifth
    longer or shorter, and the order of its tasks' durations is redrawn. The first `k` jobs are the
    same for every `jobs`.

    Parameters
    ----------
    jobs : int
        Number of jobs, at least 1.
    seed : int
        Seed of all draws.
    median_tasks : float
        Median number of tasks of a DAG; the paper's is a thousand.
    recurring : float
        Share of the jobs that rerun an earlier one's program.
    interval_s : float
        Mean time between submissions, s; 0 submits all at once.
    split_io : bool
        Separate reads and writes: demands for ``cpu``, ``mem``, ``net_read``, ``net_write``,
        ``disk_read`` and ``disk_write``, rather than for ``cpu``, ``mem``, ``disk`` and ``net``.
    task_sigma : float
        Spread of the logarithm of task durations within a stage; 0: all equal.
    duration_sigma, source_duration, stage_sigma : float
        Spread of the logarithm of stages' durations; factor of the duration of stages that read the
        job's input; spread of the shares of work among stages of a group. Assumptions, as the next.
    more_sources : float
        Stages beyond one that read the job's input, on average.
    cut : float
        Chance that a level of stages waits for everything before it.
    cpu_mem : float
        Mean demand of a task for cpu, and for memory.
    io_factor : float
        Factor of the mean demands for reads and writes.

    Returns
    -------
    Workload
        Demands are fractions of a machine that has 1 of each resource.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    programs = _programs(jobs, seed, recurring)
    assumed = Assumed(duration_sigma, source_duration, stage_sigma, cpu_mem, io_factor)
    drawn: dict[int, Dag] = {}
    dags = []
    for job, program in enumerate(programs):
        if program == job:
            rng = stream(seed, "synth", "production_dags", "program", program)
            structure = draw_structure(rng, more_sources, cut)
            drawn[program] = draw_dag(structure, median_tasks, task_sigma, assumed, rng)
            dag = drawn[program]
        else:
            rng = stream(seed, "synth", "production_dags", "run", job)
            template = drawn[program]
            factor = maths.exp(RUN_SIGMA * rng.normal(size=len(template.duration_s)))
            dag = replace(template, duration_s=template.duration_s * factor)
        dags.append(replace(dag, task_s=draw_task_s(dag, task_sigma, rng)))
    names = tuple(_PAPER["table1"])
    if not split_io:
        names = FOUR_RESOURCES
        dags = [replace(dag, demand=_add_reads_and_writes(dag.demand)) for dag in dags]
    between = stream(seed, "synth", "production_dags", "arrivals").exponential(interval_s, jobs)
    between[0] = 0.0
    return to_workload(
        dags,
        job_id=[f"dag-{job:06d}" for job in range(jobs)],
        template=[f"program-{program:06d}" for program in programs],
        submit_s=np.cumsum(between),
        resources=names,
        quantum=QUANTUM,
        meta={
            "name": "synth-production_dags",
            "synth": {
                "generator": "production_dags",
                "jobs": int(jobs),
                "seed": int(seed),
                "median_tasks": float(median_tasks),
                "recurring": float(recurring),
                "interval_s": float(interval_s),
                "split_io": bool(split_io),
                "task_sigma": float(task_sigma),
                **{name: float(value) for name, value in asdict(assumed).items()},
                "more_sources": float(more_sources),
                "cut": float(cut),
                "source": "Grandl et al., MSR-TR-2016-19, §2.3",
            },
        },
    )


def _add_reads_and_writes(six: F8) -> F8:
    """Add reads and writes: from (g, 6) as in Table 1 to (g, 4) as in `FOUR_RESOURCES`."""
    demand = {name: six[:, i] for i, name in enumerate(_PAPER["table1"])}
    disk = np.minimum(1.0, demand["disk_read"] + demand["disk_write"])
    net = np.minimum(1.0, demand["net_read"] + demand["net_write"])
    return np.stack([demand["cpu"], demand["mem"], disk, net], axis=1)


def _programs(jobs: int, seed: int, recurring: float) -> list[int]:
    """Return the program of each job: that of an earlier job, or the job's own number."""
    rng = stream(seed, "synth", "production_dags", "recurrence")
    u = rng.random((jobs, 2))
    programs: list[int] = []
    for job in range(jobs):
        recurs = job > 0 and u[job, 0] < recurring
        programs.append(programs[int(u[job, 1] * job)] if recurs else job)
    return programs
