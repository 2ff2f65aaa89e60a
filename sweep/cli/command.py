"""Parse a command line: a verb, its words and flags; build the request for a grid."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sim.base.errors import InputError, did_you_mean
from sweep import driver
from sweep.cli import verbs
from sweep.grid import remote_results
from sweep.grid.options import Options
from sweep.grid.overrides import Assignment, parse
from sweep.grid.request import Request, is_run_setting
from sweep.store import sync
from sweep.store.folder import SweepFolder

REQUEST_IS_FIXED = (
    "The sweep is requested again from config.yaml in its folder; only keys that say where and how "
    "it runs may be given. Its relative paths start at the current folder."
)


@dataclass(frozen=True)
class Command:
    """A command line, split."""

    overrides: tuple[str, ...]  # words of the form ``key=value`` (or ``~key``)
    names: tuple[str, ...]  # all other words: sweeps, cells
    flags: argparse.Namespace  # what the verb's flags say

    @property
    def shows_config(self) -> bool:
        """True if the composed configuration is to be shown, and nothing run."""
        return bool(self.flags.cfg or self.flags.resolve or self.flags.info)

    def request(self) -> Request:
        """Build the request for the grid that the overrides describe."""
        return driver.make_request(
            self.grid_words(), self.flags.config_dir, fail_fast=self.flags.fail_fast
        )

    def grid_words(self) -> tuple[str, ...]:
        """Return the words that describe a grid; refuse others."""
        if self.names:
            word = self.names[0]
            if word in verbs.names():
                raise InputError(f"{word}: one verb at a time", rule="grammar")
            raise InputError(
                f"{word!r} is neither a verb nor key=value, e.g. policy=fifo,sjf; "
                f"{did_you_mean(word, verbs.names())}`python -m sweep --help` shows both",
                rule="grammar",
            )
        return self.overrides

    def results(self, *also: str, fetches: bool = True) -> Path:
        """Folder of all results, for verbs that read finished sweeps.

        They take no key but ``paths.results`` and those in `also`. What changed in an object store
        is fetched now, unless the verb does it later.
        """
        options = Options()
        folder = str(options.compose()["paths"]["results"])
        takes = ("paths.results=DIR", *(f"{key}=..." for key in also))
        for assignment in parse(self.overrides, options.names_swept):
            if assignment.key == "paths.results":
                folder = str(assignment.value)
            elif assignment.key not in also:
                only = " and ".join(takes) if also else f"{takes[0]} alone"
                raise InputError(f"{assignment.text}: this verb takes {only}")
        results = remote_results.working_folder(folder)
        return sync.fetch(results) if fetches else results

    def assignments(self, *keys: str) -> list[Assignment]:
        """Return the assignments of some keys, the last of each."""
        lines = parse(self.overrides, Options().names_swept)
        return list({line.key: line for line in lines if line.key in keys}.values())

    def sweep(self) -> str | None:
        """Return the sweep on the command line; None for the latest."""
        if len(self.names) > 1:
            raise InputError(f"name one sweep, not {' '.join(self.names)}")
        return self.names[0] if self.names else None


class Parser(argparse.ArgumentParser):
    """Argument parser that raises InputError instead of exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message."""
        hints = [way for flag, way in _HYDRA_FLAGS.items() if flag in re.split(r"[\s=]", message)]
        ways = "; ".join([*hints, f"see `{self.prog} --help`"])
        raise InputError(f"{message}; {ways}", rule="grammar")


_HYDRA_FLAGS = {
    "--config-name": "experiment=NAME names a grid",
    "--config-path": "--config-dir DIR adds a folder of options",
    "--run": "leave it out: what is given runs",
    "--hydra-help": "`python -m sweep --help` has all keys",
    "--shell-completion": "`python -m sweep completion bash` prints the script",
    "--package": "--cfg job shows all",
}
"""Flags of Hydra, and what to write instead."""


def split(parser: argparse.ArgumentParser, words: Sequence[str]) -> Command:
    """Parse a verb's words by its flags."""
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    # argparse would take ~key for a flag and split key=value
    flags = parser.parse_intermixed_args(list(words))
    overrides = tuple(word for word in flags.words if "=" in word or word.startswith("~"))
    names = tuple(word for word in flags.words if word not in overrides)
    return Command(overrides, names, flags)


def run_settings(command: Command, reason: str) -> list[Assignment]:
    """Return the assignments of a command; refuse keys that do not say where or how it runs."""
    assignments = parse(command.overrides, Options().names_swept)
    for assignment in assignments:
        if not is_run_setting(assignment.key):
            raise InputError(f"{assignment.text}: {reason}")
    return assignments


def repeat_request(command: Command) -> tuple[SweepFolder, Request]:
    """Find the sweep that a command names, and build the request for it again."""
    sweep = command.sweep()
    overrides = run_settings(
        command,
        "the sweep is requested again from config.yaml in its folder; give only keys that say "
        "where and how it runs, such as launcher=",
    )
    paths = [word.text for word in overrides if word.key == "paths.results"]
    results = Command(tuple(paths), (), command.flags).results()
    folder = driver.open_intact(results, sweep)
    words = [word.text for word in overrides]
    fail_fast = getattr(command.flags, "fail_fast", False)
    return folder, driver.repeat_request(folder, words, fail_fast=fail_fast)


def add_grid_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of verbs that describe a grid."""
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of your own options (DIR/policy/mine.yaml); may be given again",
    )
    parser.add_argument(
        "--fail-fast", action="store_true", help="stop at the first failed cell (max_failures=1)"
    )
    parser.add_argument(
        *("-m", "--multirun"),
        action="store_true",
        help="as Hydra has it; not needed, since a comma list sweeps in any case",
    )


def add_config_flags(parser: argparse.ArgumentParser) -> None:
    """Add Hydra's flags that show the composed configuration and run nothing."""
    parser.add_argument(
        *("-c", "--cfg"), choices=("job", "all"), help="show the composed configuration"
    )
    for flag in ("--resolve", "--info"):
        parser.add_argument(flag, action="store_true", help="the same as --cfg job")
