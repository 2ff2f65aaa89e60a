"""Running a grid, running it again, and logging what came of it."""

from __future__ import annotations

import argparse

from sim.base.errors import InputError
from sweep import driver
from sweep import track as tracking
from sweep.cli import outcome
from sweep.cli.command import NOTHING_ELSE, Command, add_grid_flags, asked_again
from sweep.run import notes
from sweep.store.journal import Journal

run_arguments = add_grid_flags


def run(command: Command) -> int:
    """Run a grid (the default): simulate what is not cached; tabulate, report and track it all."""
    request = command.request()
    return outcome.show(driver.run(request), request.settings)


def retry_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    words = "[SWEEP] [launcher=... tracking=... paths.results=DIR max_failures=N]"
    parser.usage = f"{parser.prog} {words} [flags]"
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failed cell")
    parser.epilog = NOTHING_ELSE


def retry(command: Command) -> int:
    """Run a sweep that is over again: its failed cells, and whatever changed since."""
    _, request = asked_again(command)
    return outcome.show(driver.run(request), request.settings)


def track_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.usage = f"{parser.prog} [SWEEP] [tracking.uri=URI] [paths.results=DIR] [flags]"
    parser.epilog = NOTHING_ELSE


def track(command: Command) -> int:
    """Log a sweep that is over to MLflow: what is there already stays as it is."""
    folder, request = asked_again(command)
    target = tracking.target_of(request.settings)
    if target is None:
        raise InputError("tracking=none logs nowhere; give tracking=mlflow")
    try:
        tracking.log(folder, request.settings, notes.note)
    except tracking.TrackingDown as down:
        notes.note(f"error: {down}")
        return 1
    Journal(folder.results, folder.sweep).append("tracked", tracked=target)
    print(f"{folder.sweep} is in MLflow: {outcome.ui_command(request.settings)}")
    return 0
