"""Maximum parallelism of DAGs (Tian et al., SoCC 2019, §4.2)."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I8
from sim.dags.graphs import Graphs
from sim.dags.levels import longest_path_levels


def width(graphs: Graphs) -> I8:
    """Count the most stages of each job that may run at one time.

    That is the exact width of the order that the edges make: the largest set of stages without a
    path between any two. The widest level is a lower bound of it, often too low.

    Returns
    -------
    (J,) int64
        From 1 to the number of stages. Takes up to n² / 8 bytes for a job of n stages.

    Raises
    ------
    InputError
        If the edges of a job form a cycle.
    """
    from sim.dags.kernels import width as kernel

    widths = np.empty(graphs.n_jobs, dtype=np.int64)
    levels = longest_path_levels(graphs)
    kernel.widths(
        graphs.job_stage0,
        graphs.order,
        graphs.edge0,
        graphs.edge_child,
        graphs.n_parents,
        levels,
        widths,
    )
    return widths
