"""Run a grid (the default): simulate what is not cached; tabulate, report and track it all."""

from __future__ import annotations

import argparse

from sweep.cli import drive
from sweep.cli.command import Command, add_grid_flags, python_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    add_grid_flags(parser)


def run(command: Command) -> int:
    """Run the grid; 1 if cells failed."""
    request = command.request()
    return drive.run(request, python_path(request.options))
