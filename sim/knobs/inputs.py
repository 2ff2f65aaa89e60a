"""Where the inputs of jobs lie."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sim.base.random import stream
from sim.knobs.parts import rebuilt
from sim.workload.schema import INPUT_HOME, REMOTE_FACTOR

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def place_inputs(workload: Workload, remote_factor: float = 1.0, seed: int = 0) -> Workload:
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
    if not (math.isfinite(remote_factor) and remote_factor >= 1):
        raise InputError(f"remote_factor must be finite and at least 1, not {remote_factor!r}")
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
    knob = {"place_inputs": float(remote_factor), "seed": int(seed)}
    return rebuilt(workload, stages, knob)
