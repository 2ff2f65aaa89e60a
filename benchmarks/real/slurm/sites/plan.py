"""Plan of the runs: workloads for development and for judgement, each with a change."""

from __future__ import annotations

from collections import ChainMap
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
CHANGES = {
    "mixed": ("nodes:c:4", "limit:batch:0.125"),
    "preempt": ("qos:normal:MaxTRESPerUser:none", "move:n[52-59]:main:"),
    "gpus": ("twice:daemon", "maintenance:a[0-2]:5400:9000:1200"),
}
"""Changes of the judged workloads, by shape."""


def _judged(tens: int, *shapes: str) -> dict[str, str]:
    return {
        f"{shape}-{10 * tens + unit}": change
        for shape in shapes
        for unit, change in enumerate(CHANGES[shape], start=1)
    }


JUDGED = {
    "Judged": _judged(1, *CHANGES),
    "Judged later": _judged(2, *CHANGES),
    "Judged third": _judged(3, *CHANGES),
    "Judged last": _judged(4, "gpus"),
    "Judged fifth": _judged(4, "mixed"),
}
"""Workloads of each judgement, on which nothing is developed before it: shape and seed, change."""
WORKLOADS = dict(ChainMap(DEVELOPED, *JUDGED.values()))
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
        for group in (DEVELOPED, *JUDGED.values())
        for changed in (False, True)
        for workload in group
        if workload in workloads
    ]
