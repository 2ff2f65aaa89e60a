"""The third week as a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.lineage.worth import Past
from sim.schema import INPUT_MODES, JOB_EDGE_KINDS
from sim.synth.cosmos import names
from sim.synth.cosmos.measure import wanted_got
from sim.synth.cosmos.month import POLL, Month

if TYPE_CHECKING:
    from sim.workload import Workload


def workload(month: Month, scale: float, seed: int, rounds: int | None = None) -> Workload:
    """Return the jobs of the third week; see `sim.synth.cosmos.synthesize`."""
    from sim.workload import Workload

    third = month.week(0, 1)
    rows = np.flatnonzero(third)
    first = int(rows[0])  # the rows of a week are next to each other
    inside = third[month.up] & third[month.down]
    loads = month.downloads
    own = third[loads.job]
    kinds = list(JOB_EDGE_KINDS)
    n = len(rows)
    past = _past(month)
    known, learnt = past.until(0.0)
    truth = past.columns(rounds=rounds)
    return Workload.from_tables(
        jobs={
            "job_id": names.job_ids(rows),
            "submit_s": month.submit_s[rows],
            "template": names.templates(month, rows),
            "user": names.users(month, rows),
            "queue": names.queues(month, rows),
            "priority": month.priority[rows],
            "input_mode": names.category(month.mode[rows], list(INPUT_MODES)),
            "poll_lag_s": month.lag_s[rows],
            **{name: column[rows] for name, column in truth.items()},
        },
        stages={
            "job": np.arange(n, dtype=np.int32),
            "n_tasks": np.ones(n, dtype=np.int32),
            "demand_tokens": month.tokens[rows].astype(np.float64),
            "duration_s": month.duration_s[rows],
        },
        job_edges={
            "upstream": (month.up[inside] - first).astype(np.int32),
            "downstream": (month.down[inside] - first).astype(np.int32),
            "kind": names.category(
                np.where(month.hard[inside], kinds.index("hard"), kinds.index("soft")), kinds
            ),
        },
        downloads={
            "job": (loads.job[own] - first).astype(np.int32),
            "time_s": loads.time_s[own],
            "n": loads.n[own].astype(np.int32),
        },
        history={
            "submit_s": month.submit_s[known],
            "finish_s": month.finish_s[known],
            "n_tasks": np.ones(len(known), dtype=np.int32),
            "mean_task_s": month.duration_s[known],
            "user": names.users(month, known),
            "template": names.templates(month, known),
            **learnt.columns(0.0, rounds),
        },
        meta={
            "name": "synth-cosmos",
            "quantum": {"tokens": 1.0},
            "queue_share": month.shares,
            "wanted, got": wanted_got(month, scale),
            "synth": {
                "generator": "cosmos",
                "scale": float(scale),
                "seed": int(seed),
                "organisations": len(month.shares),
                "rounds": rounds,
                "source": "Chung et al., OSDI 2020",
            },
        },
    )


def _past(month: Month) -> Past:
    loads = month.downloads
    return Past(
        month.submit_s,
        month.finish_s,
        month.tokens * month.duration_s,
        month.up,
        month.down,
        month.hard,
        month.mode[month.down] == POLL,
        loads.job,
        loads.time_s,
        loads.n,
    )
