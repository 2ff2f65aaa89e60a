"""Conditions of a workload and its cluster, by which defaults are chosen."""

from __future__ import annotations

import numpy as np

from policies.wing.lineage.worth import COLUMNS
from sim.cluster.fits import has_constraints
from sim.engine.plan import World
from sim.workload.tables import values


def several_resources(world: World) -> bool:
    """Tell whether tasks demand more than one resource of machines."""
    cluster, columns = world.cluster, world.columns
    if cluster.unit:
        return False
    used = {name for r, name in enumerate(columns.resources) if columns.stage_demand[:, r].any()}
    return len(used & set(cluster.resources)) > 1


def holdable(world: World) -> bool:
    """Tell whether machines can be held for a task: without gangs, shares of queues, devices."""
    cluster, columns = world.cluster, world.columns
    is_single = not columns.job_min_tasks.any() and cluster.queue_mode in ("global", "weighted")
    return bool(is_single) and not has_constraints(columns, cluster)


def deadlines(world: World) -> bool:
    """Tell whether some job has a deadline."""
    return bool(np.isfinite(world.columns.job_deadline).any())


def rigid(world: World) -> bool:
    """Tell whether the tasks of each job all start together."""
    columns = world.columns
    n_tasks = np.bincount(columns.stage_job, columns.stage_n_tasks, len(columns.job_submit))
    return bool((columns.job_min_tasks == n_tasks).all())


def past_values(world: World) -> bool:
    """Tell whether the history tells what past jobs were worth downstream."""
    history = world.columns.features.history
    needed = set(COLUMNS)
    has_columns = needed <= set(history.column_names) and history.num_rows > 0
    return has_columns and bool(np.nansum(values(history, "agg_value")) > 0)
