"""Building blocks of verbs: their record, ``key=value`` options, and printing of workloads."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.base.losses import sentence

if TYPE_CHECKING:
    from sim.workload.workload import Workload

# entries of a loader's report that are printed in another way
_TOTALS = ("jobs", "stages", "tasks", "edges", "account", "bad_examples", "warnings")


@dataclass(frozen=True)
class Verb:
    """A verb of ``python -m sim``; `run` prints its results, and raises errors.

    `run` may return an exit code; None is 0.
    """

    name: str
    help: str  # its line in the list of verbs
    about: str  # first paragraph of its own ``--help``
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


def add_repeatable(
    parser: argparse.ArgumentParser,
    flag: str,
    metavar: str,
    help_text: str,
    dest: str | None = None,
) -> None:
    """Add a repeatable flag; its values are a list."""
    text = f"{help_text}; may be repeated"
    parser.add_argument(flag, metavar=metavar, action="append", default=[], dest=dest, help=text)


def parse_pairs(pairs: Iterable[str], flag: str) -> dict[str, Any]:
    """Parse ``key=value`` texts; a value is JSON if it parses, else a string."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise InputError(f"{flag} takes key=value, not {pair!r}")
        if key in values:
            raise InputError(f"{flag} gives {key!r} twice")
        try:
            values[key] = json.loads(text)
        except ValueError:
            values[key] = text
    return values


def print_workload(workload: Workload, name: str = "") -> None:
    """Print the size of a workload, and the work and rows that its loader dropped or changed.

    `name` is that of the log, if it was read from one.
    """
    submit_s = workload.jobs["submit_s"]
    span = submit_s[-1].as_py() - submit_s[0].as_py() if workload.n_jobs else 0.0
    print(
        f"{workload.n_jobs:,} jobs, {workload.n_stages:,} stages, {workload.n_tasks:,} tasks, "
        f"{workload.stage_edges.num_rows:,} stage edges, submitted over {span:,.0f} s"
    )
    report = workload.meta.get("report", {})
    print_counts({rule: n for rule, n in report.items() if rule not in _TOTALS})
    print_account(workload, name)


def print_account(workload: Workload, name: str = "") -> None:
    """Print which shares of a log are left out or changed, and what else to know of it."""
    report = workload.meta.get("report", {})
    loss = sentence(name or "the log", report.get("account", {}), report.get("bad_examples", {}))
    for line in filter(None, (loss, *report.get("warnings", ()))):
        print(line)


def print_counts(report: Mapping[str, Any]) -> None:
    """Print non-zero counts by rule, one line each."""
    for line in count_lines(report):
        print(line)


def count_lines(report: Mapping[str, Any], indent: str = "  ") -> list[str]:
    """Return non-zero counts by rule, one line each."""
    lines: list[str] = []
    for rule, count in report.items():
        if isinstance(count, Mapping):
            if any(count.values()):
                lines += [f"{indent}{rule}:", *count_lines(count, indent + "  ")]
        elif isinstance(count, (list, tuple)):
            lines += [f"{indent}{rule}: {item}" for item in count]
        elif count:
            shown = f"{count:,}" if isinstance(count, (int, float)) else count
            lines.append(f"{indent}{rule}: {shown}")
    return lines
