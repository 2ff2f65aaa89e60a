"""Command line of workloads: ``python -m sim VERB ...``.

Verbs import heavy modules when they run, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from sim.base import entry_points, interrupt
from sim.base.errors import SimError
from sim.cli import Verb
from sim.cli.check import CHECK
from sim.cli.describe import DESCRIBE
from sim.cli.site import SITE
from sim.cli.workloads import BOUND, CONVERT, FIT, SYNTH

VERBS = (CONVERT, SITE, DESCRIBE, SYNTH, FIT, BOUND, CHECK)
"""Verbs in their usual order of use; those of installed packages follow."""
MODULES_FOUND = ()
MODULES_INSTALLED = ("workload_verbs",)  # for sim.base.sources
KIND = "workload_verbs"
"""Kind of `sim.base.entry_points`: modules with a `Verb` named VERB."""
_WRONG_INPUT = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb."""
    args = parser().parse_args(argv)
    try:
        code: int | None = args.run(args)
    except SimError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        interrupt.print_line()
        return interrupt.INTERRUPTED
    return code or 0


def parser() -> argparse.ArgumentParser:
    """Build the parser of all verbs."""
    top = argparse.ArgumentParser(
        prog="python -m sim",
        description="Workloads: convert real traces, describe them, synthesize similar ones, "
        "and compute lower bounds on completion times. Plug-ins of your own: check them.",
        epilog="`python -m sim VERB --help` shows a verb's options and an example; "
        "`python -m sweep --help` explains how to run policies on a workload.",
    )
    verbs = top.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in (*VERBS, *_installed()):
        verb_parser = verbs.add_parser(
            verb.name, help=verb.help, description=verb.about, epilog=verb.example,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        verb.add_arguments(verb_parser)
        verb_parser.set_defaults(run=verb.run)
    return top


def installed() -> list[str]:
    """Return the names of the verbs that packages add to `VERBS`."""
    own = [verb.name for verb in VERBS]
    entry_points.check_shadowed(KIND, own)
    return [name for name in entry_points.installed(KIND) if name not in own]


def _installed() -> Iterator[Verb]:
    """Yield verbs of installed packages; a broken one is named, and left out."""
    for name in installed():
        try:
            yield entry_points.load(KIND, name).VERB
        except SimError as error:
            print(f"warning: {error}", file=sys.stderr)


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return _WRONG_INPUT
