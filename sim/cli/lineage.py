"""Find dependencies between jobs in the logs of what read and wrote which file.

Prints what it found and writes it as Parquet, with one HTML page, into a folder: who depends on
whom, what each job is worth to all that is downstream, what is predictable, and what to mend. Or
writes the jobs of a window as a workload, which a sweep schedules by what the logs before it show.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, unknown
from sim.cli import Verb, add_many, parse_pairs, print_counts, print_workload

if TYPE_CHECKING:
    from sim.base.reading import OnBadRow
    from sim.lineage.logs import Logs
    from sim.lineage.profile import Options
    from sim.lineage.store import Store

_EXAMPLE = """examples:
  python -m sim lineage operations.parquet --jobs jobs.parquet --out profile
  python -m sim lineage operations.parquet --jobs jobs.parquet --out profile --value jobs
  python -m sim lineage events.jsonl --out profile           # OpenLineage events
  python -m sim lineage operations.csv --jobs jobs.csv --out profile --set periodic_cv=0.05
  python -m sim lineage events.jsonl --workload week --begin 2020-03-16 --end 2020-03-23"""

DAY_S = 86_400.0
PEAK = 0.6
"""Of a cluster, what requests take at most (OSDI 2020, Fig. 7): what is proposed for one's own."""
LEAST = 0.2
"""Of that cluster, what the largest job shall fit."""


def add_arguments(parser: argparse.ArgumentParser, *, also_window: bool = False) -> None:
    """Declare the verb's arguments; `also_window`: those of a workload, too."""
    parser.add_argument(
        "operations",
        metavar="OPERATIONS",
        help="log of operations on files (Parquet or CSV), or OpenLineage events (JSON lines)",
    )
    parser.add_argument("--jobs", metavar="JOBS", help="log of jobs; OpenLineage needs none")
    parser.add_argument(
        "--out", metavar="PROFILE", required=not also_window, help="folder to write to"
    )
    if also_window:
        parser.add_argument(
            "--workload", metavar="DIR", help="write the jobs of a window as a workload, to sweep"
        )
        for flag, what in (("--begin", "beginning"), ("--end", "end")):
            parser.add_argument(
                flag, metavar="T", type=_time,
                help=f"the window's {what}: s, as in the logs, or a date and time (UTC)",
            )  # fmt: skip
    parser.add_argument(
        "--window-days", metavar="T", type=float, help="a read's write is at most so old; 30"
    )
    parser.add_argument(
        "--omega-days", metavar="W", type=float, help="how long downstream jobs count; 7"
    )
    parser.add_argument(
        "--learn-days", metavar="D", type=float, help="recurrence is learnt from so many; all"
    )
    parser.add_argument(
        "--value", metavar="WHAT", default="downloads",
        help="what a job is worth: downloads (of its output), jobs (1 each), compute "
        "(resource-time), or a column of the log of jobs; downloads",
    )  # fmt: skip
    what = "another option or threshold of Table 1, e.g. hard_share=0.9"
    add_many(parser, "--set", "KEY=VALUE", what, "settings")
    parser.add_argument(
        "--strict", action="store_true", help="end at the first bad row instead of counting it"
    )


def run(args: argparse.Namespace) -> None:
    """Profile, print, write."""
    window = (args.workload, args.begin, args.end)
    if None in window and any(part is not None for part in window):
        raise InputError("--workload DIR, --begin T and --end T go together", rule="wrong option")
    if args.out is None and args.workload is None:
        raise InputError("give --out PROFILE, or --workload DIR, or both", rule="wrong option")
    logs = _read(args)
    options = build_options(args, float(logs.column("submit_s")[0]) if logs.n_jobs else 0.0)
    if args.out is not None:
        from sim.lineage.profile import profile  # late: `--help` answers at once

        print_profile(profile(logs, options), args.out)
    if args.workload is not None:
        _write_window(logs, options, args)


def _write_window(logs: Logs, options: Options, args: argparse.Namespace) -> None:
    from sim.lineage.window import workload  # as above

    week = workload(logs, args.begin, args.end, options)
    week.write(args.workload)
    print_workload(week)
    for what, share in week.meta["known"].items():
        print(f"  {what}: {100 * share:.1f} %")
    if not week.downloads.num_rows:
        print("no downloads of what its jobs made: there is no value to attain; --value jobs?")
    print(f"written to {args.workload}")
    sized = ""
    held = week.stages["demand_tokens"].to_numpy()
    if (held != 1).any():  # a slot each is not what they hold
        tokens = math.ceil(max(week.meta["peak_tokens"] / PEAK, held.max() / LEAST))
        sized = f" cluster=cosmos cluster.queues.mode=global cluster.shape.tokens={tokens}"
    print(
        f"next: python -m sweep policy=priority,wing_agg trace=parquet trace.path={args.workload}"
        f"{sized} capacity=1.0,0.4,{LEAST}"
    )


def _time(text: str) -> float:
    """Read a time: a number of seconds, or ISO 8601, as UTC if it names no zone."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of seconds nor a time such as 2020-03-16T12:00"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def print_profile(store: Store, folder: str) -> None:
    """Print a profile, and write it to a folder."""
    from sim.lineage.page import text_lines, write_page  # late: `--help` answers at once

    print("\n".join(text_lines(store)))
    if store.report:
        print("odd in the logs")
        print_counts(store.report)
    for path in (*store.write(folder), write_page(store, folder)):
        print(f"written to {path}")


def _read(args: argparse.Namespace) -> Logs:
    from sim.lineage.logs import read_logs  # late: `--help` answers at once
    from sim.lineage.openlineage import is_openlineage, read_events

    strict: OnBadRow = "error" if args.strict else "skip"
    if is_openlineage(args.operations):
        if args.jobs is not None:
            raise InputError("OpenLineage events tell of jobs too; leave --jobs out")
        return read_events(args.operations, strict)
    if args.jobs is None:
        raise InputError("--jobs JOBS is needed: the log of jobs", rule="missing file")
    return read_logs(args.operations, args.jobs, strict, extra_columns(args))


def extra_columns(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the columns of the log of jobs that the arguments ask for beyond its own."""
    from sim.lineage.profile import VALUES  # late: `--help` answers at once

    return () if args.value in VALUES else (args.value,)


def build_options(args: argparse.Namespace, begin_s: float) -> Options:
    """Return what the arguments ask for, of logs that begin at a time."""
    from sim.lineage.profile import Options  # late: `--help` answers at once
    from sim.lineage.templates import Thresholds

    given: dict[str, Any] = {"value": args.value}
    for flag, name in (("window_days", "window_s"), ("omega_days", "omega_s")):
        if getattr(args, flag) is not None:
            given[name] = getattr(args, flag) * DAY_S
    if args.learn_days is not None:
        given["learn_s"] = (begin_s, begin_s + args.learn_days * DAY_S)
    limits = {f.name for f in dataclasses.fields(Thresholds)}
    plain = {"similarity", "exact_jobs", "jobs_per_cut"}
    chosen: dict[str, Any] = {}
    for key, value in parse_pairs(args.settings, "--set").items():
        if key not in limits | plain:
            raise InputError(unknown("option", key, sorted(limits | plain)), rule="wrong option")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"--set {key} takes a number, not {value!r}", rule="wrong option")
        (chosen if key in limits else given)[key] = value
    return Options(**given, thresholds=Thresholds(**chosen))


LINEAGE = Verb(
    "lineage", "find dependencies between jobs in provenance logs, and what they are worth",
    __doc__, _EXAMPLE, partial(add_arguments, also_window=True), run,
)  # fmt: skip
