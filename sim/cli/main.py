"""The command line of the simulated world: ``python -m sim VERB ...``.

Each verb is a module of `sim.cli.verbs`; what it needs is imported when it runs, so that ``--help``
answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from sim.base.errors import SimError

VERBS = ("convert", "describe", "synth", "fit", "bound", "lineage")
"""Modules of `sim.cli.verbs`, in the order a person would use them."""

_WRONG_INPUT = 2
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb."""
    args = parser().parse_args(argv)
    try:
        args.run(args)
    except SimError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    return 0


def parser() -> argparse.ArgumentParser:
    """Build the parser of all verbs."""
    top = argparse.ArgumentParser(
        prog="python -m sim",
        description="Workloads: read real traces, synthesize more, measure their lower bounds.",
        epilog="`python -m sim VERB --help` shows a verb's options and an example; "
        "`python -m sweep --help` tells how to run policies on a workload.",
    )
    verbs = top.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in VERBS:
        module = importlib.import_module(f"sim.cli.verbs.{name}")
        verb = verbs.add_parser(
            name,
            help=module.HELP,
            description=module.__doc__,
            epilog=module.EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(verb)
        verb.set_defaults(run=module.run)
    return top


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return _WRONG_INPUT
