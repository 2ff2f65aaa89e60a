"""Verb ``backtest``: what a scheduler did with a log's jobs, against simulated policies."""

from __future__ import annotations

import argparse

from sweep import driver
from sweep.cli import outcome
from sweep.cli.command import Command, add_grid_flags
from sweep.questions.backtest.runs import DEFAULT_RUNS, RUNS, STEPS

_SHORT = {"runs=": f"{RUNS}=", "steps=": f"{STEPS}="}


def backtest_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    words = (
        f"trace=FORMAT trace.path=LOG policy=A,B [runs={DEFAULT_RUNS}] [steps=true] [key=value ...]"
    )
    parser.usage = f"{parser.prog} {words} [flags]"
    add_grid_flags(parser)


def backtest(command: Command) -> int:
    """Audit a log, run policies on its jobs, and say which is nearest to what happened."""
    words = [*map(_whole, command.grid_words())]
    if not any(word.startswith(f"{RUNS}=") for word in words):
        words.append(f"{RUNS}={DEFAULT_RUNS}")
    flags = command.flags
    request = driver.make_request(words, flags.config_dir, fail_fast=flags.fail_fast)
    return outcome.run(request)[1]


def _whole(word: str) -> str:
    """Return a word with its whole key."""
    for short, key in _SHORT.items():
        if word.startswith(short):
            return key + word.removeprefix(short)
    return word
