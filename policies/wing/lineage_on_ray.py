"""Verb ``lineage`` of sweeps: profile logs larger than one machine's memory, on Ray.

Pipeline and result are those of ``python -m sim lineage``. A task reads one file of the operation
log and splits it by file name; a task joins the splits of one number; then blocks of jobs are
valued in parallel. The driver holds the jobs and the dependencies, never an operation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.dependencies import SingleHop, drop_cycles, join, merge
from policies.wing.lineage.job_log import JobLog, read_jobs
from policies.wing.lineage.logs import (
    IDLE_RULE,
    Logs,
    concatenate,
    idle_jobs,
    read_operations,
    split,
)
from policies.wing.lineage.options import Options
from policies.wing.lineage.profiling import profile
from policies.wing.lineage.store import Store
from policies.wing.lineage_verb import add_arguments, build_options, extra_columns, print_profile
from sim.base.errors import InputError
from sim.base.reading import OnBadRow
from sweep.cli.command import Command
from sweep.execution.on_ray import start

PARTS: Final = 64
"""Splits of the log: one must fit into a worker's memory. The result does not depend on it."""


def profile_on_ray(
    operations: Sequence[Path],
    jobs: Path,
    options: Callable[[float], Options],
    n_parts: int = PARTS,
    on_bad_row: OnBadRow = "skip",
    more: Sequence[str] = (),
) -> Store:
    """Profile logs on the running Ray; read `more` columns of the job log."""
    import ray

    log = read_jobs(jobs, on_bad_row, more)
    table, report = log.jobs, log.report
    settings = options(float(table["submit_s"][0].as_py()) if table.num_rows else 0.0)
    if settings.partitions == "inside":
        raise InputError(
            "partitions=inside needs all files of the log at once; use python -m sim lineage",
            rule="wrong option",
        )
    jobs_ref = ray.put(table)
    read: Any = ray.remote(_read).options(num_returns=n_parts + 1, max_retries=0)
    joined = ray.remote(_join).options(max_retries=0)
    read_refs = [read.remote(path, jobs_ref, n_parts, on_bad_row) for path in operations]
    hop_refs = [
        joined.remote(jobs_ref, settings, *(refs[k] for refs in read_refs)) for k in range(n_parts)
    ]
    is_idle = np.ones(table.num_rows, bool)
    notes = list(log.notes)
    for counts, without_operations, part_notes in ray.get([refs[n_parts] for refs in read_refs]):
        is_idle &= without_operations
        notes += part_notes
        for rule, n in counts.items():
            report[rule] = report.get(rule, 0) + n
    if is_idle.any():
        report[IDLE_RULE] = int(is_idle.sum())
    hops = drop_cycles(merge(ray.get(hop_refs)))
    logs = replace(_without_operations(table, report), notes=tuple(notes))
    return profile(logs, settings, hops=hops, block_map=_spread)


def lineage_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} OPERATIONS --jobs JOBS --out PROFILE [flags]"
    add_arguments(parser)
    parser.add_argument("--parts", type=int, default=PARTS, help=f"splits of the log; {PARTS}")
    parser.add_argument("--workers", type=int, help="tasks at once on this machine; one a CPU")
    parser.add_argument("--address", help="of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT")


def lineage(command: Command) -> int:
    """Find dependencies in logs larger than memory, as `python -m sim lineage` does, on Ray."""
    print_profile(_profiled(command.flags), command.flags.out)
    return 0


def _profiled(args: argparse.Namespace) -> Store:
    if args.jobs is None:
        raise InputError("--jobs JOBS is needed: the log of jobs", rule="missing file")
    if args.parts < 1:
        raise InputError(f"--parts must be 1 or more, not {args.parts}", rule="wrong option")
    folder = Path(args.operations)
    files = sorted(folder.glob("*.parquet")) if folder.is_dir() else [folder]
    if not files:
        raise InputError("the folder holds no *.parquet", file=folder, rule="missing file")
    if args.address is None:
        start.start_local(args.workers, start.worker_environment(()))
    else:
        start.join(args.address, start.worker_environment(()))
    import ray

    try:
        return profile_on_ray(
            [path.absolute() for path in files],
            Path(args.jobs),
            lambda begin_s: build_options(args, begin_s),
            args.parts,
            "error" if args.strict else "skip",
            extra_columns(args),
        )
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, InputError):
            raise error.cause from None
        raise
    finally:
        ray.shutdown()


def _read(path: Path, jobs: pa.Table, n_parts: int, on_bad_row: OnBadRow) -> tuple[Any, ...]:
    """Read a part of the log; return its splits, counts of dropped rows, idle jobs and notes."""
    part = read_operations(path, JobLog(jobs, {}), on_bad_row)
    counts = {rule: n for rule, n in part.report.items() if rule != IDLE_RULE}
    return *split(part, n_parts), (counts, idle_jobs(part.n_jobs, part.job), part.notes)


def _join(jobs: pa.Table, settings: Options, *splits: Logs) -> SingleHop:
    logs = concatenate(splits, jobs)
    return join(logs, settings.window_s, find_programs=settings.programs)


def _without_operations(jobs: pa.Table, report: dict[str, int]) -> Logs:
    none = np.empty(0, np.int32)
    no_files = pa.array([], pa.string())
    return Logs(jobs, np.empty(0), none, none.astype(np.int8), none, none, no_files, report)


def _spread(function: Callable[[Any], Any], blocks: Sequence[Any]) -> Iterable[Any]:
    """Call a function with each block, a task each."""
    import ray

    shared = ray.put(function)
    call = ray.remote(_call).options(max_retries=0)
    return ray.get([call.remote(shared, block) for block in blocks])


def _call(function: Callable[[Any], Any], block: Any) -> Any:
    return function(block)
