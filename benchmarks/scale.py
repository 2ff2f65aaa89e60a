"""What a sweep of 10,000 cells costs its driver, beside one of 1,000.

Run as ``python -m benchmarks.scale``. The cells take no time and their workload is tiny: what is
measured is the platform. Times are wall time, which other work on the machine makes longer, but
for the plan's, which is one thread's and has no wait in it: of the processor.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import ROOT, Row, cpu_of_children, row, scratch, show, write_tiny

FEW, MANY = 1_000, 10_000
CAPACITIES, POLICIES = "0.5,0.75,1,1.5,2", "fifo,random"
N_SETTINGS = 10
EVERY_S = 0.1


def main() -> int:
    """Measure, and print what was wanted beside it."""
    with scratch() as name:
        folder = Path(name)
        write_tiny(folder / "tiny")
        _sweep(folder, "run", N_SETTINGS)  # compiles the kernels
        rows = _scale(folder)
    return show("scale", rows)


def _scale(folder: Path) -> list[Row]:
    before = cpu_of_children()
    _sweep(folder, "plan", MANY)
    plan = cpu_of_children() - before
    _, few, _ = _sweep(folder, "run", FEW, "paths.results=few")
    whole, many, lines = _sweep(folder, "run", MANY)
    ends = [at for at, line in lines if "cells done" in line]
    again, _, _ = _sweep(folder, "run", MANY)
    # the same seeds again and as many more: for each the nearest that is cached has to be found
    before = cpu_of_children()
    _sweep(folder, "plan", 2 * MANY)
    more = cpu_of_children() - before
    rows = [
        row(f"plan of {MANY:,} cells", plan, "s of CPU", at_most=10),
        row(f"plan of {MANY:,} more, {MANY:,} cached", more, "s of CPU"),
        row(f"the driver's memory, {FEW:,} cells", few / 1e6, "MB"),
        row(f"the driver's memory, {MANY:,} cells", many / 1e6, "MB"),
        row("the second / the first", many / few, "×", at_most=2),
        row("memory for each cell more", (many - few) / (MANY - FEW) / 1e3, "kB", at_most=30),
        row(f"{MANY:,} cells, from start to end", whole, "s"),
        row("of it after the last cell", whole - ends[-1], "s", at_most=60),
        row("longest time without a line of progress", _longest(ends), "s", at_most=10),
        row(f"{MANY:,} cells again, all cached", again, "s"),
    ]
    for granularity in ("policy", "sweep"):
        uri = f"tracking.uri=sqlite:///{folder / granularity}.db"
        seconds, _, _ = _sweep(folder, "track", 0, f"tracking.granularity={granularity}", uri)
        rows.append(row(f"logging them to MLflow, a run a {granularity}", seconds, "s"))
    return rows


def _sweep(
    folder: Path, verb: str, n_cells: int, *words: str
) -> tuple[float, float, list[tuple[float, str]]]:
    """Run a verb over so many cells.

    Returns its wall time, s, the most bytes resident that the driver ever held, and what it said on
    standard error, each line with when, s since its start.
    """
    if n_cells:
        grid: Sequence[str] = [
            *("trace=parquet", f"trace.path={folder / 'tiny'}", "cluster.count=2"),
            *(f"policy={POLICIES}", f"capacity={CAPACITIES}", "baseline=fifo"),
            *(f"seed=range(0,{n_cells // N_SETTINGS})", "tracking=none"),
        ]
    else:
        grid = []
    given = [*words] if any(w.startswith("paths.") for w in words) else [*words, "paths.results=r"]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "sweep", verb, *grid, *given],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    most = [0.0]
    watch = threading.Thread(target=_watch, args=(process, most))
    watch.start()
    assert process.stderr is not None
    lines = [(time.perf_counter() - begin, line.rstrip()) for line in process.stderr]
    code = process.wait()
    seconds = time.perf_counter() - begin
    watch.join()
    if code:
        raise RuntimeError("\n".join(line for _, line in lines))
    return seconds, most[0], lines


def _watch(process: subprocess.Popen[str], most: list[float]) -> None:
    """Note the most memory that a process itself, without its children, holds."""
    page = os.sysconf("SC_PAGE_SIZE")
    statm = Path(f"/proc/{process.pid}/statm")
    while process.poll() is None:
        try:
            most[0] = max(most[0], float(statm.read_text().split()[1]) * page)
        except (OSError, IndexError):
            return
        time.sleep(EVERY_S)


def _longest(times_s: Sequence[float]) -> float:
    return max((b - a for a, b in itertools.pairwise(times_s)), default=0.0)


if __name__ == "__main__":
    sys.exit(main())
