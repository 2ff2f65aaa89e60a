"""Plan of the runs: workloads for development and for judgement, each with a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.real.slurm.sites import export

DEVELOPED = {
    "mixed-1": "maintenance:c[0-3],f0:5400:8400:1800",
    "preempt-1": "nodes:n:8",
    "gpus-1": "limit:day:0.0625",
}
"""Workloads on which readers and models are developed: shape and seed, and the change."""
JUDGED = {
    "mixed-11": "nodes:c:4",
    "mixed-12": "limit:batch:0.125",
    "preempt-11": "qos:normal:MaxTRESPerUser:none",
    "preempt-12": "move:n[52-59]:main:",
    "gpus-11": "twice:daemon",
    "gpus-12": "maintenance:a[0-2]:5400:9000:1200",
}
"""Workloads on which nothing is developed."""
JUDGED_LATER = {
    "mixed-21": "nodes:c:4",
    "mixed-22": "limit:batch:0.125",
    "preempt-21": "qos:normal:MaxTRESPerUser:none",
    "preempt-22": "move:n[52-59]:main:",
    "gpus-21": "twice:daemon",
    "gpus-22": "maintenance:a[0-2]:5400:9000:1200",
}
"""Others, with the same changes, for what was mended after the first judgement."""
WORKLOADS = DEVELOPED | JUDGED | JUDGED_LATER
N_RUNS = 2
STEPS, FREE, WHAT_IF, NEAREST = "site steps", "site free", "site what-if", "site nearest"
"""Parts of the table of the page: what is judged."""
KEPT = Path(__file__).resolve().parents[4] / "tests" / "real" / "sites"
"""Folder of the runs in the project."""


@dataclass(frozen=True)
class SiteRun:
    """A run: a workload, with its change or without, and which of the repetitions."""

    workload: str
    changed: bool
    number: int

    @property
    def stem(self) -> str:
        """Name of the run."""
        return f"{self.workload}-{'changed' if self.changed else 'base'}-{self.number}"

    @property
    def change(self) -> str:
        """The change; "" for none."""
        return WORKLOADS[self.workload] if self.changed else ""

    def folder(self, out: Path) -> Path:
        """Return where the run's files lie."""
        return out / self.stem

    def is_done(self, out: Path) -> bool:
        """Tell whether the run is finished; ``run.json`` is written last."""
        return (self.folder(out) / export.ABOUT).exists()


def planned(workloads: Sequence[str], n_runs: int = N_RUNS) -> list[SiteRun]:
    """Return the runs in their order: first one of each workload, then with its change."""
    return [
        SiteRun(workload, changed, number)
        for number in range(1, n_runs + 1)
        for group in (DEVELOPED, JUDGED, JUDGED_LATER)
        for changed in (False, True)
        for workload in group
        if workload in workloads
    ]
