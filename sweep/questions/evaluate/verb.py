"""Verb ``evaluate``: score candidate policies in files."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator

from sim.base.errors import InputError
from sweep.cli.command import Command
from sweep.grid.options import Options
from sweep.grid.overrides import parse

_NUMBERS = ("budget_s", "memory_mb")
_TEXTS = ("baseline", "metric", "study")
KEYS = ("train", "test", *_TEXTS, *_NUMBERS)


def evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = (
        f"{parser.prog} FILE ... trace=A,B 'train=range(0,5)' ['test=range(100,120)'] "
        "[baseline=POLICY] [metric=NAME] [budget_s=10] [memory_mb=512] [study=FILE] "
        "[key=value ...] [flags]"
    )
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of your own options",
    )
    parser.add_argument("--final", action="store_true", help="score on the test seeds; is counted")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each candidate")
    parser.add_argument(
        "--loop", action="store_true", help="read names of files from standard input, until it ends"
    )
    parser.add_argument("--oracle", action="store_true", help="score candidates that know truths")
    parser.epilog = (
        "Each combination of the other keys is a workload. A candidate runs in a process of its "
        "own, without files, network and truths."
    )


def evaluate(command: Command) -> int:
    """Score a candidate policy in a file beside a baseline, safely, and say where it loses."""
    from sweep.questions.evaluate.evaluator import Evaluator  # brings numba

    own = {word.key: word for word in parse(command.overrides, Options().names_swept)}
    words = [word.text for key, word in own.items() if key not in KEYS]
    if "train" not in own:
        raise InputError("evaluate needs seeds to train on: 'train=range(0,5)'", rule="grammar")
    if not command.names and not command.flags.loop:
        raise InputError("evaluate takes the files of candidates, or --loop", rule="grammar")
    options = {key: own[key].value for key in (*_TEXTS, *_NUMBERS) if key in own}
    evaluator = Evaluator(
        [shlex.join(words)],
        own["train"].values,
        own["test"].values if "test" in own else (),
        oracle=command.flags.oracle,
        config_dir=command.flags.config_dir,
        **options,
    )
    is_scored = True
    for file in _files(command):
        evaluation = evaluator.evaluate(file, final=command.flags.final)
        print(evaluation.as_json() if command.flags.json else f"{file}: {evaluation}", flush=True)
        is_scored &= not evaluation.errors
    evaluator.close()
    return 0 if is_scored else 1


def _files(command: Command) -> Iterator[str]:
    yield from command.names
    if command.flags.loop:
        yield from (line.strip() for line in sys.stdin if line.strip())
