"""What the stages of synthesized DAGs have: tasks, a duration, demands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import Graphs
from sim.synth.alibaba2018.joint import draw_jointly
from sim.synth.alibaba2018.tables import Tables
from sim.workload.schema import DEMAND_PREFIX


def draw_attributes(
    tables: Tables, graphs: Graphs, seed: int, joint: bool = False, most_tasks: int | None = None
) -> dict[str, NDArray[Any]]:
    """Draw what each stage has, each attribute on its own or all of them jointly."""
    sources = tables.attributes
    if most_tasks is not None:
        sources["n_tasks"] = sources["n_tasks"].up_to(most_tasks)
    if not joint:
        drawn = {
            name: table.draw(stream(seed, "synth", "alibaba2018", name).random(graphs.n_stages))
            for name, table in sources.items()
        }
    elif tables.joint is None:
        raise InputError(
            "the tables don't tell what attributes have to do with each other (joint); fit them "
            "from a workload whose jobs have dependencies, or take joint=false",
            rule="no joint",
        )
    else:
        drawn = draw_jointly(tables.joint, sources, graphs, seed)
    columns: dict[str, NDArray[Any]] = {
        "n_tasks": drawn["n_tasks"].astype(np.int32),
        "duration_s": drawn["duration_s"],
    }
    for name in tables.demand:
        columns[DEMAND_PREFIX + name] = drawn[f"demand {name}"]
    return columns
