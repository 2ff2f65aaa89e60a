"""Where things are: the inputs of jobs on machines, jobs in queues."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pyarrow as pa

from sim.base.parameters import Between, Factor, checked
from sim.base.random import stream
from sim.transforms.parts import rebuilt
from sim.workload.schema import INPUT_HOME, REMOTE_FACTOR
from sim.workload.tables import with_column
from sim.workload.workload import Workload


@checked
def place_inputs(workload: Workload, remote_factor: Factor = 1.0, seed: int = 0) -> Workload:
    """Spread the input of every stage without parents over the machines, from a drawn one on.

    Task i of such a stage reads from machine (a drawn number + i) mod machines, as a file lies in
    blocks. Stages with parents read from wherever those ran, which is nowhere in particular.

    Parameters
    ----------
    workload : Workload
        Whose ``stages.input_home`` and ``stages.remote_factor`` are set.
    remote_factor : float
        How many times as long a task takes that runs where its input does not lie, 1 or more.
    seed : int
        Seed of where inputs begin.

    Raises
    ------
    InputError
        If `remote_factor` is out of its range.
    """
    columns = workload.columns
    reads = columns.stage_n_barrier + columns.stage_n_o2o == 0
    drawn = stream(seed, "place_inputs").integers(2**31, size=len(reads))
    stages = workload.stages
    for column, numbers in (
        (INPUT_HOME, np.where(reads, drawn, -1)),
        (REMOTE_FACTOR, np.where(reads, float(remote_factor), 1.0)),
    ):
        if column.name in stages.column_names:
            stages = stages.drop_columns([column.name])
        stages = stages.append_column(column.name, pa.array(numbers, column.type))
    transform = {"place_inputs": float(remote_factor), "seed": int(seed)}
    return rebuilt(workload, transform, stages=stages)


@checked
def deal_queues(
    workload: Workload, n: Annotated[int, Between(1, 127)] = 2, seed: int = 0
) -> Workload:
    """Deal the jobs out to `n` queues, evenly and at random.

    Parameters
    ----------
    workload : Workload
        Whose queues are replaced by ``q0``, ``q1``, ...
    n : int
        Number of queues, at least 1.
    seed : int
        Of who is dealt where.

    Raises
    ------
    InputError
        If `n` is out of its range.
    """
    dealt = stream(seed, "queues").permutation(workload.n_jobs) % n
    names = pa.array([f"q{at}" for at in range(n)])
    queue = pa.DictionaryArray.from_arrays(pa.array(dealt.astype(np.int32)), names)
    jobs = with_column(workload.jobs, "queue", queue)
    return rebuilt(workload, {"queues": n, "seed": int(seed)}, jobs=jobs)
