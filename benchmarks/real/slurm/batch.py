"""Many runs in a fixed order, several clusters side by side; finished ones are kept."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.real.slurm.workloads import JUDGES, LAST_JUDGES, LATER_JUDGES, NAMES

SCHEDULERS = ("builtin", "backfill", "backfill_short")
N_RUNS = 5
N_TRIES = 5


class Planned(Protocol):
    """A run that can be made: its name, its folder, and if it is there."""

    @property
    def stem(self) -> str:
        """Name of the run."""

    def folder(self, out: Path) -> Path:
        """Return where the run's files lie."""

    def is_done(self, out: Path) -> bool:
        """Tell whether the run is finished."""


Process = subprocess.Popen[bytes]
R = TypeVar("R", bound=Planned)


@dataclass(frozen=True)
class Run:
    """One run: a workload, the name of its settings, and which of the repetitions it is."""

    workload: str
    settings: str
    number: int

    @property
    def stem(self) -> str:
        """Name of the run's files, without their endings."""
        return f"{self.workload}-{self.settings}-{self.number}"

    def folder(self, out: Path) -> Path:
        """Return where the run's files lie."""
        return out / self.workload / self.settings / str(self.number)

    def is_done(self, out: Path) -> bool:
        """Tell whether the run is finished; the settings are written last."""
        return (self.folder(out) / f"{self.stem}.json").exists()


def planned(workloads: Sequence[str], n_runs: int, settings: Sequence[str] = ()) -> list[Run]:
    """Return the runs in their order: of named settings, or those that are repeated.

    The latter begin with two of each on the workloads for development, then on the others, then
    with multifactor priorities; then come the repetitions that are left, in the same order.
    """
    mine = [w for w in NAMES if w in workloads]
    if settings:
        numbers = range(1, n_runs + 1)
        return [Run(w, name, i) for i in numbers for name in settings for w in mine]
    judges = JUDGES + LATER_JUDGES + LAST_JUDGES
    groups = [[w for w in mine if w not in judges], [w for w in mine if w in judges]]
    first, later = range(1, min(n_runs, 2) + 1), range(3, n_runs + 1)
    return [
        Run(workload, f"{scheduler}-{priority}", number)
        for numbers in (first, later)
        for priority in ("basic", "multifactor")
        for group in groups
        for number in numbers
        for scheduler in SCHEDULERS
        for workload in group
    ]


def make(
    runs: Sequence[R], begin: Callable[[R], Process], out: Path, at_once: int,
    until_s: float, between_s: float = 0.0,
) -> int:  # fmt: skip
    """Make the runs that are missing, `at_once` at a time; return how many are missing still.

    None begins after `until_s`, in seconds since the epoch, nor within `between_s` of the one
    before; those that run then end by themselves. A run that fails is tried `N_TRIES` times, later
    ones after all others. On an interruption the running ones are ended, with their clusters.
    """
    waiting = [(run, 1) for run in runs if not run.is_done(out)]
    running: dict[Process, tuple[R, int]] = {}
    begun_s = -math.inf
    try:
        while waiting or running:
            for process in [process for process in running if process.poll() is not None]:
                run, trial = running.pop(process)
                outcome = "FAILED" if process.returncode else "done"
                print(time.strftime("%X"), run.stem, outcome, flush=True)
                if process.returncode and trial < N_TRIES:
                    waiting.append((run, trial + 1))
            if time.time() > until_s:
                waiting.clear()
            is_time = time.monotonic() >= begun_s + between_s
            if waiting and len(running) < at_once and is_time:
                run, trial = waiting.pop(0)
                running[begin(run)] = run, trial
                begun_s = time.monotonic()
            time.sleep(1.0)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return sum(not run.is_done(out) for run in runs)


def begin(run: Run, log: Path | None, out: Path) -> Process:
    """Begin a run as a process of its own."""
    command = ["benchmarks.real.slurm", "one", run.workload, run.settings, str(run.number)]
    command += ["--out", str(out), *(["--log", str(log)] if log else [])]
    return start(run, out, command)


def start(run: Planned, out: Path, command: Sequence[str]) -> Process:
    """Start a module with its words; its output goes into the run's folder."""
    folder = run.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "run.log").open("ab") as output:
        return subprocess.Popen([sys.executable, "-m", *command], stdout=output, stderr=output)
