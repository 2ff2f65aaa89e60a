"""Overhead of a sweep beyond its simulations, compared with Hydra's multirun and Ray Tune.

Run as ``python -m benchmarks.sweep``. Costs a cell are slopes: the time of many cells less that of
a few, over the difference, so that starting Python and Ray, which happens once, is left out (and
shown by itself). All but memory is wall time: other work on the machine makes it longer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from benchmarks.common import (
    NAP,
    ROOT,
    Row,
    children_cpu_s,
    row,
    run_child,
    scratch,
    show,
    write_options,
    write_tiny,
)
from benchmarks.sweep_code import BURN, HYDRA, PLAIN_BURN, SIMULATION, STATE, TUNE, WEIGH
from sim import Workload

MANY, FEW = 2000, 100
TUNE_NEEDS = ("fsspec", "pandas", "requests")  # what `ray[tune]` brings
N_TASKS_LARGE = 17_000_000  # of 12 bytes
RUN_BYTES = 21
"""Of a task, while it is simulated: when it began and ended (8 each) and where it ran (4)."""


def main() -> int:
    """Measure, and print what was wanted beside it."""
    with scratch() as name:
        folder = Path(name)
        write_tiny(folder / "tiny")
        write_options(folder / "user", {"nap": NAP, "burn": BURN, "weigh": WEIGH})
        _sweep(folder, "first", "tiny", "policy=random")  # compiles the kernels
        rows = _overhead(folder) + _cached(folder) + _scaling(folder) + _memory(folder)
    return show("sweep", rows)


def _overhead(folder: Path) -> list[Row]:
    """Compare what a cell costs beyond simulating here, in Hydra's multirun and in Ray Tune."""
    tiny = str(folder / "tiny")
    alone = run_child(SIMULATION.format(folder=tiny))["seconds"]
    wholes, cells = [], []
    for turn in range(3):
        few = _sweep(folder, f"few{turn}", "tiny", "policy=random", f"seed=range(0,{FEW})")
        many = _sweep(folder, f"many{turn}", "tiny", "policy=random", f"seed=range(0,{MANY})")
        wholes.append(many)
        cells.append(1e3 * ((many - few) / (MANY - FEW) - alone))
    multirun = 1e3 * (_multirun(folder) - alone)
    rows = [
        row(f"a cell beyond its simulation, of {MANY:,}", cells, "ms", at_most=3),
        row("a job of Hydra's multirun, of 20", multirun, "ms"),
        row("Hydra's multirun / ours", [multirun / cell for cell in cells], "×"),
        row(f"{MANY:,} cells, from start to end", wholes, "s"),
    ]
    missing = [name for name in TUNE_NEEDS if find_spec(name) is None]
    if missing:
        print(f"Ray Tune is left out: {', '.join(missing)} of ray[tune] not installed")
        return rows
    tune = 1e3 * (run_child(TUNE.format(folder=tiny, out=str(folder / "tune")))["seconds"] - alone)
    value = [tune / cell for cell in cells]
    return [
        *rows,
        row("a trial of Ray Tune, of 10", tune, "ms"),
        row("Ray Tune / ours", value, "×"),
    ]


def _cached(folder: Path) -> list[Row]:
    """Give the same command again: it has nothing to do but to say so."""
    _sweep(folder, "demo")
    walls, cpus = [], []
    for _ in range(5):
        before = children_cpu_s()
        walls.append(_sweep(folder, "demo"))
        cpus.append(children_cpu_s() - before)
    again = _sweep(folder, "many0", "tiny", "policy=random", f"seed=range(0,{MANY})")
    return [
        row("the demonstration again, all cached: wall", walls, "s", at_most=3),
        row("the demonstration again, all cached: CPU", cpus, "s"),
        row(f"{MANY:,} cells again, all cached: wall", again, "s"),
    ]


def _scaling(folder: Path) -> list[Row]:
    """Two workers beside one, on cells that take a second: of waiting, and of computing.

    What waits does not depend on what else the machine does. What computes is shown beside two
    plain processes that compute as much, which is what the machine gives just then.
    """
    naps = [_a_cell(folder, "nap", workers) for workers in (1, 2)]
    burns = [_a_cell(folder, "burn", workers) for workers in (1, 2)]
    plain = [_plain_burn(n) for n in (1, 2)]
    return [
        row("two workers / one, cells that wait 1 s", naps[0] / naps[1], "×", at_least=1.8),
        row("two workers / one, cells that compute 1 s", burns[0] / burns[1], "×"),
        row("two plain processes / one, the same", 2 * plain[0] / plain[1], "×"),
    ]


def _memory(folder: Path) -> list[Row]:
    """Memory that a sweep adds for a workload of 200 MB, with one worker and with more.

    Summed over all processes of the sweep, each page counted once (its proportional set size), and
    all that the object store takes, whoever has mapped it; at moments when every worker has the
    workload and none is within a run: what a run holds of its own, while it lasts, is a row by
    itself.
    """
    megabytes = _write_large(folder / "large") / 1e6
    rows = [row("a large workload", megabytes, "MB")]
    for workers in (1, 2, 4):
        tiny, large = (_weigh(folder, size, workers) / 1e6 for size in ("tiny", "large"))
        label = f"memory that it adds to a sweep by {workers} worker{'s' if workers > 1 else ''}"
        rows.append(row(label, large - tiny, "MB", at_most=1.25 * megabytes))
    state = run_child(STATE.format(folder=str(folder / "large")))["bytes"]
    return [*rows, row("what a run holds of its own, a task", state, "bytes", at_most=RUN_BYTES)]


def _sweep(folder: Path, results: str, trace: str = "", *words: str) -> float:
    """Run a sweep over a small workload, or the demonstration; return its wall time, s."""
    options = [
        *(["trace=parquet", f"trace.path={folder / trace}", "cluster.count=2"] if trace else []),
        *words,
    ]
    command = [sys.executable, "-m", "sweep", *options, f"paths.results={folder / results}"]
    begin = time.perf_counter()
    done = subprocess.run(
        [*command, "tracking=none"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr + done.stdout)
    return time.perf_counter() - begin


def _multirun(folder: Path) -> float:
    script = folder / "multirun.py"
    script.write_text(HYDRA.format(folder=str(folder / "tiny")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    seconds = []
    for n in (2, 22):
        command = [sys.executable, str(script), "--multirun", f"+seed=range(0,{n})"]
        command += [f"hydra.sweep.dir={folder / 'multirun'}", "hydra.verbose=false"]
        begin = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
        seconds.append(time.perf_counter() - begin)
    return (seconds[1] - seconds[0]) / 20


def _own(folder: Path, policy: str, workers: int) -> list[str]:
    where = ["--config-dir", str(folder / "user")]
    return [*where, f"policy={policy}", f"launcher.workers={workers}"]


def _a_cell(folder: Path, policy: str, workers: int) -> float:
    """Return how long a cell takes with so many workers."""
    words = _own(folder, policy, workers)
    few = _sweep(folder, f"{policy}-few{workers}", "tiny", *words, "seed=range(0,2)")
    many = _sweep(folder, f"{policy}-many{workers}", "tiny", *words, "seed=range(0,22)")
    return (many - few) / 20


def _plain_burn(n: int) -> float:
    begin = time.perf_counter()
    all_of_them = [subprocess.Popen([sys.executable, "-c", PLAIN_BURN]) for _ in range(n)]
    for workload in all_of_them:
        workload.wait()
    return time.perf_counter() - begin


def _weigh(folder: Path, trace: str, workers: int) -> float:
    """Return the most that a sweep's processes ever held together, bytes."""
    notes = folder / f"notes-{trace}-{workers}"
    notes.mkdir()
    os.environ |= {"WEIGH_INTO": str(notes), "WEIGH_WORKERS": str(workers)}
    seeds = f"seed=range(0,{3 * workers})"
    _sweep(folder, f"weigh-{trace}-{workers}", trace, *_own(folder, "weigh", workers), seeds)
    return max(float(path.read_text()) for path in notes.glob("[0-9]*"))


def _write_large(folder: Path) -> int:
    """Write a workload of 200 MB whose tasks all differ; return the bytes of its columns."""
    import numpy as np

    n_jobs = 1000
    value = N_TASKS_LARGE // n_jobs
    rows = np.arange(n_jobs, dtype=np.int32)
    tasks = {
        "stage": np.repeat(rows, value),
        "duration_s": np.random.default_rng(0).uniform(0.5, 1.5, n_jobs * value),
    }
    Workload.from_tables(
        jobs={"job_id": [str(j) for j in rows], "submit_s": np.arange(n_jobs, dtype=float)},
        stages={"job": rows, "name": ["s"] * n_jobs, "n_tasks": np.full(n_jobs, value, "i4")},
        tasks=tasks,
    ).write(folder)
    return sum(column.nbytes for column in tasks.values())


if __name__ == "__main__":
    sys.exit(main())
