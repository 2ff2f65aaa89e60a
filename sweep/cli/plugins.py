"""Verb ``plugins``: what installed packages add, and what of it is broken."""

from __future__ import annotations

import argparse

import policies
from sim import evaluators, metrics, synth, traces, transforms
from sim.base import entry_points
from sim.base.entry_points import KINDS, Entry
from sim.base.errors import InputError, unknown
from sim.base.text import printable, table_lines
from sim.cli import main
from sweep.cli import verbs
from sweep.cli.command import Command

HEADER = ("kind", "name", "package", "version")
_NAMES = (
    *(policies.names, traces.names, synth.names, transforms.names, evaluators.names),
    *(metrics.FAMILIES.names, main.installed, verbs.names),
)
"""Functions that compare the names of plug-ins with those of the core, which are used."""


def plugins_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.usage = f"{parser.prog} [KIND ...]"
    parser.epilog = f"Kinds: {', '.join(KINDS)}. The exit code is 1 if one is broken or not used."


def plugins(command: Command) -> int:
    """List what installed packages add: policies, readers, verbs and others; name broken ones."""
    kinds = command.names or KINDS
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(unknown("kind", kind, KINDS), rule="unknown kind")
    entries = [(kind, e) for kind in kinds for e in entry_points.installed(kind).values()]
    rows = [[kind, entry.name, entry.package, entry.version] for kind, entry in entries]
    print("\n".join(table_lines(HEADER, rows)))
    for names in _NAMES:
        names()
    broken = [reason for kind, entry in entries if (reason := _broken(kind, entry))]
    lines = entry_points.unused() + broken
    for line in lines:
        print(printable(line))
    return int(bool(lines))


def _broken(kind: str, entry: Entry) -> str:
    """Import a plug-in; return the reason why it can't be used, empty if it can."""
    try:
        if kind == policies.registry.KIND:
            policies.spec(entry.name)
        elif kind == verbs.KIND:
            verbs.function(entry.name)
        else:
            entry_points.load(kind, entry.name)
    except InputError as error:
        return error.message
    return ""
