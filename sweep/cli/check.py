"""Verb ``check``: the rules of a plug-in, for a module of one's own beside its options."""

from __future__ import annotations

import argparse

from sim.base.errors import InputError
from sim.cli import parse_pairs
from sim.cli.check import CHECK, add_flags, check_and_print
from sweep.cli.command import Command
from sweep.driver import find_modules
from sweep.grid.options import Options


def check_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} MODULE [--config-dir DIR] [flags]"
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of your own options",
    )
    add_flags(parser)
    parser.epilog = CHECK.about


def check(command: Command) -> int:
    """Check a policy, reader, metric, transform or generator of your own."""
    if len(command.names) != 1 or command.overrides:
        raise InputError("check takes the name of a module, e.g. edf", rule="grammar")
    find_modules(Options.from_folders(command.flags.config_dir))
    options = parse_pairs(command.flags.option, "--option")
    return check_and_print(command.names[0], command.flags.sample, options)
