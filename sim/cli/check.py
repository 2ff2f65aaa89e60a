"""Verb ``check``: the rules of a plug-in, for a module of one's own."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.cli import Verb, add_repeatable, parse_pairs

BROKEN = 1
"""Exit code if a rule is broken."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a check: a reader's sample, options of the plug-in."""
    parser.add_argument("--sample", metavar="FILE", help="small file in a reader's format")
    add_repeatable(parser, "--option", "KEY=VALUE", "parameter of the policy, or option")


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("module", metavar="MODULE", help="name of the module, e.g. edf")
    add_flags(parser)


def check_and_print(module: str, sample: str | None, options: Mapping[str, Any]) -> int:
    """Check each plug-in of a module; print what it breaks, and return the exit code."""
    # runs are short: each variant of the event loop would take longer to compile than all of them
    os.environ.setdefault("SIM_VARIANTS", "none")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from sim.check import check_module  # late: `--help` answers at once

    checked = check_module(module, sample=sample, options=options)
    for plug_in in checked:
        print(f"{plug_in.kind} {plug_in.name}: {'broken' if plug_in.broken else 'keeps all rules'}")
        for sentence in plug_in.broken:
            print(f"  {sentence}")
    return BROKEN if any(plug_in.broken for plug_in in checked) else 0


def _check(args: argparse.Namespace) -> int:
    return check_and_print(args.module, args.sample, parse_pairs(args.option, "--option"))


CHECK = Verb(
    "check",
    "check a policy, reader, metric, transform or generator of your own",
    "Checks the plug-ins of a module: invariants of a policy's runs, the account of a reader, the "
    "numbers of a metric, the workload of a transform or generator, and of each that it gives the "
    "same again, in this process and in others. Exit code 1 if a rule is broken, with a sentence "
    "for each.",
    "example: python -m sim check edf\n         python -m sim check durations --sample log.txt",
    _add_check,
    _check,
)
