"""The model of Slurm with the phases that a run had: ``python -m benchmarks.real.slurm.phases``.

As shipped, each run of the kept jobs of seconds is simulated with drawn phases of poll, cycle and
clock, and with those of its log.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import sim
from benchmarks.real import page
from benchmarks.real.slurm import keep
from policies.backfill.slurm import Slurm
from sim.engine.plan import Plan, World
from sim.engine.simulate import simulate
from sweep.questions.backtest.audit import audit
from sweep.questions.backtest.compare import Comparison, compare
from sweep.questions.backtest.logged_jobs import logged_jobs

N_RUNS = 20
JITTER_S = 0.02


@dataclass(frozen=True)
class InPhase(Slurm):
    """The model of Slurm with phases near given ones: of poll and cycle, and the clock, s."""

    phases_s: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def prepare(self, world: World, plan: Plan) -> object:
        """Set the phases."""
        memory = super().prepare(world, plan)
        assert plan.replan is not None
        draws = world.rng("near the phases of a log")
        poll_s, cycle_s, clock_s = (
            max(phase + draws.uniform(-JITTER_S, JITTER_S), 0.0) for phase in self.phases_s
        )
        plan.replan = replace(
            plan.replan, poll_phase_s=poll_s, plan_phase_s=cycle_s, clock_s=clock_s
        )
        return memory


def phases_s(log: Path, interval_s: float) -> tuple[float, float, float]:
    """Return the phases of poll and cycle of a run at real time, and its clock, from its log, s."""
    with gzip.open(f"{log}.csv.gz", "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    starts = {
        kind: [float(row["start_s"]) for row in rows if row["started_by"] == kind]
        for kind in ("sched", "backfill")
    }
    with gzip.open(f"{log}.jobcomp.txt.gz", "rt") as lines:
        text = lines.read()
    submits = {
        int(name): datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()
        for name, time in re.findall(r"Name=j(\d+) .*?SubmitTime=(\S+)", text)
    }
    zeros = [submits[int(row["job"])] - float(row["submit_s"]) for row in rows]
    clock_s = (max(zeros) + min(zeros) + 1) / 2  # submissions are in whole seconds there
    return (
        circular_mean(starts["sched"], 1.0),
        circular_mean(starts["backfill"], interval_s),
        3600.0 + clock_s % 3600.0,
    )


def circular_mean(times_s: Sequence[float], period_s: float) -> float:
    """Return the mean phase of some times in a period, s."""
    turns = np.exp(2j * np.pi * np.array(times_s) / period_s)
    return float(np.angle(turns.mean()) * period_s / (2 * np.pi) % period_s)


def comparison(log: Path, n_cpus: int, policy: Slurm) -> Comparison:
    """Compare a run with simulations of it, to the millisecond."""
    workload = sim.read_trace("table", f"{log}.csv.gz")
    cluster = sim.Cluster.slots(n_cpus)
    jobs = logged_jobs(workload, audit(workload, cluster))
    runs = [simulate(workload, cluster, policy, seed=i, record="jobs") for i in range(N_RUNS)]
    starts, ends = (
        np.stack([getattr(run, column)[jobs.job] for run in runs])
        for column in ("job_start", "job_finish")
    )
    return compare(jobs, starts, ends)


def main() -> None:
    """Print errors with drawn phases and with those of the log, a line a run."""
    index = json.loads((page.RUNS / keep.INDEX).read_text())
    for run in index["runs"]:
        name = run.rpartition("-")[0]
        if not re.fullmatch(r"seconds\d-backfill-basic", name):
            continue
        log, n_cpus = page.RUNS / run, keep.n_cpus(page.RUNS, name)
        for policy in (Slurm(), InPhase(phases_s=phases_s(log, Slurm().interval_s))):
            result = comparison(log, n_cpus, policy)
            kind = "drawn" if type(policy) is Slurm else "of the log"
            print(f"{run:28}{kind:12}{result.error:+8.1%}{result.mae:8.1%}", end="")
            print(f"{result.waited_within_10pct:8.1%}", flush=True)


if __name__ == "__main__":
    main()
