"""Asking again for a sweep that is over, from its own configuration."""

from __future__ import annotations

from sim.base.errors import InputError
from sweep.cli.command import Command, ask
from sweep.grid.options import Options
from sweep.grid.overrides import parse
from sweep.grid.request import Request
from sweep.grid.settings import is_about_running
from sweep.store.folder import SweepFolder

NOTHING_ELSE = (
    "The sweep is asked for again as config.yaml in its folder says; only where and how it runs "
    "can be given. Relative paths in it are taken from the current folder."
)


def request_of(command: Command) -> tuple[SweepFolder, Request]:
    """Find the sweep that a command names, and ask for its grid again."""
    if len(command.names) > 1:
        raise InputError(f"name one sweep, not {' '.join(command.names)}")
    given = parse(command.overrides, Options().names_swept)
    for one in given:
        if not is_about_running(one.key):
            raise InputError(f"{one.text}: {NOTHING_ELSE}")
    paths = [one.text for one in given if one.key == "paths.results"]
    results = Command(tuple(paths), (), command.flags).results()
    folder = SweepFolder.find(results, command.names[0] if command.names else None)
    config = folder.config()
    words = [*config["words"], *(one.text for one in given)]
    if not paths:
        words.append(f"paths.results='{folder.results}'")
    fail_fast = getattr(command.flags, "fail_fast", False)
    return folder, ask(words, config["config_dirs"], fail_fast=fail_fast)
