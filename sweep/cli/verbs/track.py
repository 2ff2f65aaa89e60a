"""Log a sweep that is over to MLflow: what is there already stays as it is."""

from __future__ import annotations

import argparse

from sim.base.errors import InputError
from sweep.cli import say
from sweep.cli.again import NOTHING_ELSE, request_of
from sweep.cli.command import Command
from sweep.store.journal import Journal
from sweep.track import hand_over

USAGE = "[SWEEP] [tracking.uri=URI] [paths.results=DIR]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.epilog = NOTHING_ELSE


def run(command: Command) -> int:
    """Log it; 1 if the server can't be reached."""
    from sweep.track import TrackingDown

    folder, request = request_of(command)
    target = hand_over.target_of(request.settings)
    if target is None:
        raise InputError("tracking=none logs nowhere; give tracking=mlflow")
    try:
        hand_over.log(folder, request.settings, say.note)
    except TrackingDown as down:
        say.note(f"error: {down}")
        return 1
    Journal(folder.results, folder.sweep).append("tracked", tracked=target)
    print(f"{folder.sweep} is in MLflow: {say.ui_command(request.settings)}")
    return 0
