"""Extension of the verb ``report``: with two sweeps, the differences between them."""

from __future__ import annotations

import argparse

from sim.base.errors import InputError
from sweep import driver
from sweep.cli.command import Command
from sweep.questions.compare import comparison


def report_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the second sweep to the verb's usage."""
    parser.usage = (parser.usage or "").replace("[SWEEP]", "[SWEEP [SWEEP]]", 1)
    parser.epilog = (
        f"{parser.epilog} With two sweeps: differences between their requests and between their "
        "cells, matched by label and tested pair by pair, written to comparisons/ in the results. "
        "A difference is no error: the exit code is 0."
    )


def report_compare(command: Command) -> int | None:
    """Compare two sweeps; print the differences, and where their pages are."""
    names = command.names
    if len(names) < 2:
        return None
    if len(names) > 2:
        raise InputError(f"name one sweep, or two to compare, not {' '.join(names)}")
    results = command.results("baseline", "metrics")
    if command.flags.gantt is not None or command.assignments("baseline", "metrics"):
        raise InputError("--gantt, baseline= and metrics= go with one sweep")
    a, b = (driver.open_intact(results, name) for name in names)
    compared = comparison.compare(a, b)
    comparison.print_comparison(compared)
    print()
    for path in comparison.write(compared, b.results):
        print(path)
    return 0
