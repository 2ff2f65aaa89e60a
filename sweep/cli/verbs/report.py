"""Reports on what is over."""

from __future__ import annotations

import argparse

from sim.base.errors import InputError
from sweep import driver
from sweep import report as reports
from sweep.cli.command import Command
from sweep.report import compare, compare_view
from sweep.store.cache import Cache
from sweep.store.folder import FINDINGS, HTML, MARKDOWN, SweepFolder


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [SWEEP [SWEEP]] [--gantt ROW] [paths.results=DIR] [flags]"
    parser.add_argument(
        "--gantt", type=int, metavar="ROW", help="draw the schedule of this cell (see `show`)"
    )
    parser.epilog = (
        "With two sweeps: what was asked differently, and which cells came out differently, "
        "matched by their labels; written to comparisons/ in the results. That they differ is no "
        "error: the exit code is 0 all the same."
    )


def report(command: Command) -> int:
    """Write the table and the report of a sweep that is over again; or compare two sweeps."""
    if len(command.names) > 2:
        raise InputError(f"name one sweep, or two to compare, not {' '.join(command.names)}")
    results = command.results()
    if len(command.names) == 2:
        if command.flags.gantt is not None:
            raise InputError("--gantt goes with one sweep")
        return _compare(*(SweepFolder.find(results, name) for name in command.names))
    folder = SweepFolder.find(results, command.names[0] if command.names else None)
    cells, config = folder.cells(), folder.config()
    folder.replace(FINDINGS, driver.find(cells, config, Cache(folder.results)))
    gantt = command.flags.gantt
    reports.write_all(folder, cells, config, folder.provenance(), gantt=gantt)
    for name in (MARKDOWN, HTML):
        print(folder.path / name)
    return 0


def _compare(a: SweepFolder, b: SweepFolder) -> int:
    comparison = compare.compare(a, b)
    compare_view.print_comparison(comparison)
    print()
    for path in compare_view.write(comparison, b.results):
        print(path)
    return 0
