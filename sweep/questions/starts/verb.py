"""Verb ``starts``: when the jobs start that wait now."""

from __future__ import annotations

import argparse

from sweep import driver
from sweep.cli import outcome
from sweep.cli.command import Command, add_grid_flags
from sweep.questions.starts.goal import DEFAULT_DRAWS, DEFAULT_MOMENTS, DRAWS, MOMENTS

_SHORT = {"draws=": f"{DRAWS}=", "moments=": f"{MOMENTS}="}


def starts_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    words = (
        f"trace=SITE_queue policy=SITE [draws={DEFAULT_DRAWS}] [moments={DEFAULT_MOMENTS}] "
        "[key=value ...]"
    )
    parser.usage = f"{parser.prog} --config-dir TWIN {words} [flags]"
    add_grid_flags(parser)


def starts(command: Command) -> int:
    """Expect the start of each job that waits now, and say how such forecasts fared in the past."""
    words = [*map(_whole, command.grid_words())]
    if not any(word.startswith(f"{DRAWS}=") for word in words):
        words.append(f"{DRAWS}={DEFAULT_DRAWS}")
    flags = command.flags
    request = driver.make_request(words, flags.config_dir, fail_fast=flags.fail_fast)
    return outcome.run(request)[1]


def _whole(word: str) -> str:
    """Return a word with its whole key."""
    for short, key in _SHORT.items():
        if word.startswith(short):
            return key + word.removeprefix(short)
    return word
