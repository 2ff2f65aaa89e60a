"""Transforms of placement: inputs of jobs on machines, jobs in queues."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pyarrow as pa

from sim.base.parameters import Between, Factor, checked
from sim.base.random import stream
from sim.transforms.parts import rebuild
from sim.workload.schema import INPUT_HOME, REMOTE_FACTOR
from sim.workload.tables import with_column
from sim.workload.workload import Workload


@checked
def place_inputs(workload: Workload, remote_factor: Factor = 1.0, seed: int = 0) -> Workload:
    """Spread the input of every stage without parents over the machines, block by block.

    Task i of such a stage reads from machine (a drawn number + i) mod machines, as a file is stored
    in blocks. Stages with parents have no home: their parents may have run anywhere.

    Parameters
    ----------
    workload : Workload
        Workload whose ``stages.input_home`` and ``stages.remote_factor`` are set.
    remote_factor : float
        Factor of the duration of a task that does not run on the machine of its input, at least 1.
    seed : int
        Seed of the machines of the first blocks.

    Raises
    ------
    InputError
        If `remote_factor` is out of its range.
    """
    columns = workload.columns
    is_source = columns.stage_n_barrier + columns.stage_n_o2o == 0
    home = stream(seed, "place_inputs").integers(2**31, size=len(is_source))
    stages = workload.stages
    for column, numbers in (
        (INPUT_HOME, np.where(is_source, home, -1)),
        (REMOTE_FACTOR, np.where(is_source, float(remote_factor), 1.0)),
    ):
        if column.name in stages.column_names:
            stages = stages.drop_columns([column.name])
        stages = stages.append_column(column.name, pa.array(numbers, column.type))
    transform = {"place_inputs": float(remote_factor), "seed": int(seed)}
    return rebuild(workload, transform, stages=stages)


@checked
def deal_queues(
    workload: Workload, n: Annotated[int, Between(1, 127)] = 2, seed: int = 0
) -> Workload:
    """Assign the jobs to `n` queues at random, equally many to each.

    Parameters
    ----------
    workload : Workload
        Workload whose queues are replaced by ``q0``, ``q1``, ...
    n : int
        Number of queues, 1 to 127.
    seed : int
        Seed of the assignment.

    Raises
    ------
    InputError
        If `n` is out of its range.
    """
    assigned = stream(seed, "queues").permutation(workload.n_jobs) % n
    names = pa.array([f"q{i}" for i in range(n)])
    queue = pa.DictionaryArray.from_arrays(pa.array(assigned.astype(np.int32)), names)
    jobs = with_column(workload.jobs, "queue", queue)
    return rebuild(workload, {"queues": n, "seed": int(seed)}, jobs=jobs)
