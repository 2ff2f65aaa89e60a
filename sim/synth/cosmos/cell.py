"""The third week as a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.lineage.recorded import POLL
from sim.lineage.worth import Past
from sim.synth.cosmos import names
from sim.synth.cosmos.clock import WEEK_S
from sim.synth.cosmos.measure import wanted_got
from sim.synth.cosmos.month import Month

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def workload(month: Month, scale: float, seed: int, rounds: int | None = None) -> Workload:
    """Return the jobs of the third week; see `sim.synth.cosmos.synthesize`."""
    from sim.lineage.recorded import Recorded, week

    recorded = Recorded(
        past=_past(month),
        duration_s=month.duration_s,
        lag_s=month.lag_s,
        priority=month.priority,
        tokens=month.tokens,
        mode=month.mode,
        template=(month.program + 1, ["", *names.programs(month)]),
        user=(month.user, names.users(month)),
        queue=(month.organisation, list(month.shares)),
        job_ids=names.job_ids,
    )
    meta = {
        "name": "synth-cosmos",
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
    }
    return week(recorded, WEEK_S, rounds, meta)


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
