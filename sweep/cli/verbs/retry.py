"""Run a sweep that is over again: its failed cells, and whatever changed since."""

from __future__ import annotations

import argparse

from sweep.cli import drive
from sweep.cli.again import NOTHING_ELSE, request_of
from sweep.cli.command import Command, python_path

USAGE = "[SWEEP] [launcher=... tracking=... paths.results=DIR max_failures=N]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failed cell")
    parser.epilog = NOTHING_ELSE


def run(command: Command) -> int:
    """Run it; 1 if cells failed again."""
    _, request = request_of(command)
    return drive.run(request, python_path(request.options))
