"""Write the table and the report of a sweep that is over again, from its cells."""

from __future__ import annotations

import argparse

from sim.errors import InputError
from sweep import finish, report
from sweep.cache import Cache
from sweep.command import Command
from sweep.folder import SweepFolder

USAGE = "[SWEEP] [paths.results=DIR]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""


def run(command: Command) -> int:
    """Write it and say where."""
    if len(command.names) > 1:
        raise InputError(f"name one sweep, not {' '.join(command.names)}")
    folder = SweepFolder.find(command.results(), command.names[0] if command.names else None)
    cells, config = folder.cells(), folder.config()
    folder.write_findings(finish.study(cells, config, Cache(folder.results)))
    folder.write_report(cells, config, folder.provenance())
    for name in (report.MARKDOWN, report.HTML):
        print(folder.path / name)
    return 0
