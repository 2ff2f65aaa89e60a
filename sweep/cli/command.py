"""Reading a command line: a verb, its words, its flags."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sim.base.errors import InputError
from sweep.grid import request
from sweep.grid.options import Options
from sweep.grid.overrides import parse
from sweep.grid.request import Request


@dataclass(frozen=True)
class Command:
    """A command line, split."""

    overrides: tuple[str, ...]  # words of the form ``key=value`` (or ``~key``)
    names: tuple[str, ...]  # all other words: sweeps, cells
    flags: argparse.Namespace  # what the verb's flags say

    def request(self) -> Request:
        """Ask for the grid that the overrides describe."""
        if self.names:
            raise InputError(
                f"{self.names[0]!r} is neither a verb nor key=value, e.g. policy=fifo,sjf; "
                "`python -m sweep --help` shows both",
                rule="grammar",
            )
        return ask(self.overrides, self.flags.config_dir, fail_fast=self.flags.fail_fast)

    def results(self) -> Path:
        """Folder of all results, for verbs that look at sweeps that are over."""
        options = Options()
        folder = str(options.compose()["paths"]["results"])
        for one in parse(self.overrides, options.names_swept):
            if one.key != "paths.results":
                raise InputError(f"{one.text}: this verb takes paths.results=DIR alone")
            folder = str(one.value)
        return Path(folder).expanduser().resolve()


class Parser(argparse.ArgumentParser):
    """Raises InputError where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found."""
        raise InputError(f"{message}; see `{self.prog} --help`", rule="grammar")


def split(parser: argparse.ArgumentParser, words: Sequence[str]) -> Command:
    """Parse a verb's words by its flags."""
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    # words that argparse would take for flags or split: ~key and key=value are ours
    flags = parser.parse_intermixed_args(list(words))
    overrides = tuple(word for word in flags.words if "=" in word or word.startswith("~"))
    names = tuple(word for word in flags.words if word not in overrides)
    return Command(overrides, names, flags)


def ask(
    overrides: Sequence[str], config_dirs: Sequence[str], *, fail_fast: bool = False
) -> Request:
    """Make a request, with the user's modules found."""
    options = Options.of(config_dirs)
    sys.path.extend(folder for folder in python_path(options) if folder not in sys.path)
    return request.read(overrides, options, fail_fast=fail_fast)


def python_path(options: Options) -> list[str]:
    """Folders in which a user's modules may lie: here, the config folders and their parents."""
    folders = [Path.cwd()]
    for folder in options.user_dirs:
        folders += [folder, folder.parent]
    return [str(folder) for folder in dict.fromkeys(folders)]


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
