"""Find dependencies between jobs in logs of file reads and writes.

With --out, prints a profile and writes it as Parquet files with one HTML page: dependencies, the
value of each job including everything downstream, predictability, and problems to fix. With
--workload, writes the jobs of a time window as a workload for a sweep, with the logs before the
window as its history.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, unknown
from sim.cli import Verb, add_repeatable, parse_pairs, print_counts, print_workload

if TYPE_CHECKING:
    from policies.wing.lineage.logs import Logs
    from policies.wing.lineage.options import Options
    from policies.wing.lineage.store import Store
    from sim.base.reading import OnBadRow

_EXAMPLE = """examples:
  python -m sim lineage operations.parquet --jobs jobs.parquet --out profile
  python -m sim lineage operations.parquet --jobs jobs.parquet --out profile --value jobs
  python -m sim lineage events.jsonl --out profile           # OpenLineage events
  python -m sim lineage operations.csv --jobs jobs.csv --out profile --set periodic_cv=0.05
  python -m sim lineage events.jsonl --workload week --begin 2020-03-16 --end 2020-03-23"""

DAY_S = 86_400.0
PEAK = 0.6
"""Peak share of a cluster that requests take (OSDI 2020, Fig. 7), for the proposed cluster size."""
MIN_CAPACITY = 0.2
"""Smallest proposed capacity; the largest job must fit into it."""


def add_arguments(parser: argparse.ArgumentParser, *, with_window: bool = False) -> None:
    """Add the verb's arguments; `with_window` adds those for a workload."""
    parser.add_argument(
        "operations",
        metavar="OPERATIONS",
        help="log of file operations (Parquet or CSV), or OpenLineage events (JSON, in a file or "
        "a folder)",
    )
    parser.add_argument(
        "--jobs",
        metavar="JOBS",
        help="log of jobs (Parquet or CSV); not needed with OpenLineage events",
    )
    parser.add_argument(
        "--out", metavar="PROFILE", required=not with_window, help="folder to write a profile to"
    )
    if with_window:
        parser.add_argument(
            "--workload",
            metavar="DIR",
            help="folder to write the jobs of a time window to, as a workload",
        )
        for flag, bound in (("--begin", "begin"), ("--end", "end")):
            parser.add_argument(
                flag, metavar="T", type=_time,
                help=f"{bound} of the window: seconds, as in the logs, or a date and time (UTC)",
            )  # fmt: skip
    parser.add_argument(
        "--window-days",
        metavar="T",
        type=float,
        help="maximum age of a file when it is read, days; default: 30",
    )
    parser.add_argument(
        "--omega-days",
        metavar="W",
        type=float,
        help="time after a job's end in which downstream jobs count, days; default: 7",
    )
    parser.add_argument(
        "--learn-days",
        metavar="D",
        type=float,
        help="learn recurrence from the first D days of the log; default: all",
    )
    parser.add_argument(
        "--value", metavar="VALUE", default="downloads",
        help="value of a job: downloads (of its output), jobs (1 each), compute (resource-time), "
        "or a column of the log of jobs; default: downloads",
    )  # fmt: skip
    help_text = "another option or threshold, e.g. hard_share=0.9, partitions=inside"
    add_repeatable(parser, "--set", "KEY=VALUE", help_text, "settings")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="stop at the first bad row instead of skipping and counting it",
    )


def run(args: argparse.Namespace) -> None:
    """Build a profile, a workload or both; print and write them."""
    window = (args.workload, args.begin, args.end)
    if None in window and any(part is not None for part in window):
        raise InputError(
            "--workload DIR, --begin T and --end T must be given together", rule="wrong option"
        )
    if args.out is None and args.workload is None:
        raise InputError("give --out PROFILE, or --workload DIR, or both", rule="wrong option")
    logs = _read(args)
    options = build_options(args, float(logs.column("submit_s")[0]) if logs.n_jobs else 0.0)
    if args.out is not None:
        from policies.wing.lineage.profiling import profile  # late: `--help` answers at once

        print_profile(profile(logs, options), args.out)
    if args.workload is not None:
        _write_window(logs, options, args)


def _write_window(logs: Logs, options: Options, args: argparse.Namespace) -> None:
    from policies.wing.lineage.window import workload  # as above

    window_workload = workload(logs, args.begin, args.end, options)
    window_workload.write(args.workload)
    print_workload(window_workload)
    for label, share in window_workload.meta["known"].items():
        print(f"  {label}: {100 * share:.1f} %")
    if not window_workload.downloads.num_rows:
        print("no downloads of its jobs' output, so jobs have no value; try --value jobs")
    print(f"written to {args.workload}")
    cluster_options = ""
    tokens_held = window_workload.stages["demand_tokens"].to_numpy()
    if (tokens_held != 1).any():  # jobs hold other amounts than one slot
        tokens = math.ceil(
            max(window_workload.meta["peak_tokens"] / PEAK, tokens_held.max() / MIN_CAPACITY)
        )
        cluster_options = (
            f" cluster=cosmos cluster.queues.mode=global cluster.shape.tokens={tokens}"
        )
    print(
        f"next: python -m sweep policy=priority,wing_agg trace=parquet trace.path={args.workload}"
        f"{cluster_options} capacity=1.0,0.4,{MIN_CAPACITY}"
    )


def _time(text: str) -> float:
    """Parse a time: a number of seconds, or ISO 8601, in UTC unless it has a time zone."""
    from policies.wing.lineage.times import seconds  # as above

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return seconds(text)[0]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of seconds nor a time such as 2020-03-16T12:00"
        ) from None


def print_profile(store: Store, folder: str) -> None:
    """Print a profile, and write it to a folder."""
    from policies.wing.lineage.page import text_lines, write_page  # late: `--help` answers at once

    if store.notes:
        print("\n".join((*store.notes, "")))
    print("\n".join(text_lines(store)))
    if store.report:
        print("anomalies in the logs")
        print_counts(store.report)
    for path in (*store.write(folder), write_page(store, folder)):
        print(f"written to {path}")


def _read(args: argparse.Namespace) -> Logs:
    # late: `--help` answers at once
    from policies.wing.lineage.files import is_parquet
    from policies.wing.lineage.logs import read_logs
    from policies.wing.lineage.openlineage import is_openlineage, read_events
    from sim.base.reading import first_line

    strict: OnBadRow = "error" if args.strict else "skip"
    wrappers = parse_pairs(args.settings, "--set").get("wrappers", "leave_out")
    if wrappers not in ("leave_out", "keep"):
        raise InputError(
            f"--set wrappers must be leave_out or keep, not {wrappers!r}", rule="wrong option"
        )
    if is_openlineage(args.operations):
        if args.jobs is not None:
            raise InputError("OpenLineage events describe jobs too; leave --jobs out")
        return read_events(args.operations, strict, wrappers)
    if args.jobs is None:
        text = "--jobs JOBS is needed: the log of jobs"
        if Path(args.operations).is_file() and not is_parquet(args.operations):
            text += (
                f"; {args.operations} begins with {first_line(args.operations)[:60]!r}, and is no "
                "JSON as OpenLineage events, which tell of jobs too"
            )
        raise InputError(text, rule="missing file")
    return read_logs(args.operations, args.jobs, strict, extra_columns(args))


def extra_columns(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the extra columns of the log of jobs that the arguments need."""
    from policies.wing.lineage.local_value import VALUES  # late: `--help` answers at once

    return () if args.value in VALUES else (args.value,)


def build_options(args: argparse.Namespace, begin_s: float) -> Options:
    """Build the profile's options from the arguments, for logs that begin at `begin_s`."""
    from policies.wing.lineage.options import Options  # late: `--help` answers at once
    from policies.wing.lineage.templates import Thresholds, varying_patterns

    options: dict[str, Any] = {"value": args.value}
    for flag, name in (("window_days", "window_s"), ("omega_days", "omega_s")):
        if getattr(args, flag) is not None:
            options[name] = getattr(args, flag) * DAY_S
    if args.learn_days is not None:
        options["learn_s"] = (begin_s, begin_s + args.learn_days * DAY_S)
    threshold_names = {f.name for f in dataclasses.fields(Thresholds)}
    option_names = {"similarity", "exact_jobs", "jobs_per_cut"}
    known = threshold_names | option_names | {*_WORDS}
    threshold_options: dict[str, Any] = {}
    for key, value in parse_pairs(args.settings, "--set").items():
        if key not in known:
            raise InputError(unknown("option", key, sorted(known)), rule="wrong option")
        if key == "varying":
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                text = f"--set varying takes text or a list of texts, not {value!r}"
                raise InputError(text, rule="wrong option")
            options[key] = varying_patterns(value)
        elif key in _WORDS:
            if key != "wrappers":  # that is the reader's
                options[key] = value
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"--set {key} takes a number, not {value!r}", rule="wrong option")
        else:
            (threshold_options if key in threshold_names else options)[key] = value
    return Options(**options, thresholds=Thresholds(**threshold_options))


_WORDS = ("fill", "partitions", "varying", "wrappers")
"""Options that are no numbers."""


VERB = Verb(
    "lineage", "find dependencies between jobs in provenance logs, and their value",
    __doc__, _EXAMPLE, partial(add_arguments, with_window=True), run,
)  # fmt: skip
