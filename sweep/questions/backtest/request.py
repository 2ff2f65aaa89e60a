"""Request for a backtest: what the log adds to the command line.

These are words of the command line, so that the sweep is requested again by its own words: the size
of the cluster, and the launch lags.
"""

from __future__ import annotations

import numpy as np

from sim.base.errors import InputError
from sim.workload.workload import Workload
from sweep.execution.inputs import Inputs
from sweep.grid import clusters, grid
from sweep.grid.grid import Cell
from sweep.grid.overrides import quote
from sweep.grid.request import Request
from sweep.questions.backtest.audit import audit
from sweep.questions.backtest.capacity import logged_size
from sweep.questions.backtest.lags import launch_lags_s, stage_lag_s
from sweep.questions.backtest.starts import find_starts, no_starts


def words_of_log(request: Request) -> list[str]:
    """Return the words that the log adds: size and lags of the cluster.

    Those that the request has are left out; with a ``cluster.launch_s``, so is the lag of stages.

    Raises
    ------
    InputError
        If the log does not tell when jobs started.
    """
    cell = grid.build(request).cells[0]
    if cell.cluster["count"] is not None and cell.cluster.get("launch_s") is not None:
        return []
    inputs = Inputs(request.settings.results)
    workload = inputs.workload(inputs.workload_id(cell))
    check_starts(workload, cell)
    words = []
    config = dict(cell.cluster)
    if config["count"] is None:
        if config["shape"] != "slots":
            raise InputError(
                "a backtest on machines needs their number: give cluster.count=N", rule="backtest"
            )
        size = logged_size(workload)
        config |= {"count": size.count, "shape": size.shape}
        words.append(quote("cluster.count", size.count))
        if size.kinds:
            words.append(quote("cluster.shape", size.shape))
    if config.get("launch_s") is None:
        cluster = clusters.build_for(workload, config, 1.0).cluster
        lags_s = launch_lags_s(workload, audit(workload, cluster), float(cluster.total[0]))
        words.append(quote("cluster.launch_s", lags_s))
        if config.get("stage_lag_s") is None and (lag_s := stage_lag_s(workload)):
            words.append(quote("cluster.stage_lag_s", lag_s))
    return words


def check_starts(workload: Workload, cell: Cell) -> None:
    """Refuse a log that does not tell when jobs started."""
    option = f"trace={cell.labels['trace']}"
    if workload.meta.get("submit_is_start"):
        raise InputError(
            f"{option}: the log has no submissions, only starts, so nobody waits in it; a backtest "
            "needs both",
            rule="no recorded start",
        )
    starts = find_starts(workload)
    if np.isnan(starts.start_s).all():
        raise InputError(f"{option}: {no_starts(starts)}", rule="no recorded start")
