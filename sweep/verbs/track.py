"""Log a sweep that is over to MLflow: what is there already stays as it is."""

from __future__ import annotations

import argparse

from sim.errors import InputError
from sweep import say, tracked
from sweep.command import Command
from sweep.journal import Journal
from sweep.stored import NOTHING_ELSE, request_of

USAGE = "[SWEEP] [tracking.uri=URI] [paths.results=DIR]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.epilog = NOTHING_ELSE


def run(command: Command) -> int:
    """Log it; 1 if the server can't be reached."""
    from sweep.tracking import TrackingDown

    folder, request = request_of(command)
    target = tracked.target_of(request.settings)
    if target is None:
        raise InputError("tracking=none logs nowhere; give tracking=mlflow")
    try:
        tracked.log(folder, request.settings, say.note)
    except TrackingDown as down:
        say.note(f"error: {down}")
        return 1
    Journal(folder.results, folder.sweep).append("tracked", tracked=target)
    print(f"{folder.sweep} is in MLflow: {say.ui_command(request.settings)}")
    return 0
