"""Verbs ``gc`` and ``rm``: delete cached cells that no sweep needs; remove sweeps."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from sim.base.errors import InputError
from sim.base.text import table_lines
from sweep.cli.command import Command
from sweep.execution import notes
from sweep.report.wording import joined
from sweep.store import garbage, removal, sweep_list
from sweep.store.garbage import Garbage
from sweep.store.sweep_summaries import size_text, time_text

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
MAX_LINES = 40


def gc_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [--delete] [--keep SIZE] [paths.results=DIR]"
    parser.add_argument("--delete", action="store_true", help="delete it; else it is listed alone")
    parser.add_argument(
        "--keep", metavar="SIZE", default="0", help="keep the newest of it, e.g. 500MB, 10GB"
    )
    parser.epilog = (
        "A sweep needs its cells, finished or not, until `rm` removes it. Nothing is deleted "
        "while a sweep runs on these results."
    )


def gc(command: Command) -> int:
    """List cached cells and copies of traces that no sweep needs, oldest first; or delete them."""
    if command.names:
        raise InputError(f"gc takes no {command.names[0]!r}; `rm SWEEP` removes a sweep")
    results, kept_bytes = command.results(), _size(command.flags.keep)
    items = garbage.find(results)
    n_bytes = sum(item.n_bytes for item in items)
    chosen: list[Garbage] = []
    for item in items:
        if n_bytes <= kept_bytes:
            break
        chosen.append(item)
        n_bytes -= item.n_bytes
    if not chosen:
        print("sweeps need everything that is cached" if not items else "nothing beyond that size")
        return 0
    print("\n".join(_lines(chosen)))
    total = f"{size_text(sum(item.n_bytes for item in chosen))} in all"
    if not command.flags.delete:
        print(f"{total}; nothing was deleted: `gc --delete` does")
        return 0
    n_deleted = garbage.delete(results, chosen)
    left = len(chosen) - n_deleted
    print(f"{total}, deleted" + (f"; {left} can't be read now, and stay" if left else ""))
    return 0


def _lines(items: Sequence[Garbage]) -> list[str]:
    rows = [
        [
            time_text(item.time_s),
            size_text(item.n_bytes),
            notes.count(item.n_cells, "cells") if item.n_cells else "copy of a trace",
        ]
        for item in items[:MAX_LINES]
    ]
    more = [f"and {len(items) - MAX_LINES} more"] if len(items) > MAX_LINES else []
    return [*table_lines(["written", "size", ""], rows), *more]


def _size(text: str) -> int:
    """Parse a size such as ``10GB``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.upper())
    if match is None:
        raise InputError(f"--keep takes a size such as 500MB or 10GB, not {text}", rule="grammar")
    return int(float(match[1]) * _UNITS[match[2]])


def rm_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.usage = f"{parser.prog} SWEEP [SWEEP ...] [paths.results=DIR]"
    parser.epilog = (
        "Its folder, journal, reports, comparisons and timelines go; runs in MLflow stay. Cells "
        "stay cached until `gc --delete`: until then the same command writes the sweep again."
    )


def rm(command: Command) -> int:
    """Remove sweeps by id, name or beginning of an id; their cells stay cached until `gc`."""
    results = command.results()
    if not command.names:
        raise InputError("name the sweep: rm SWEEP", rule="grammar")
    sweeps = dict.fromkeys(sweep_list.find(results, name).sweep for name in command.names)
    for sweep in sweeps:
        pages = removal.pages(results, sweep)
        freed = removal.remove(results, sweep)
        words = [f"{n:,} {kind}{'s' * (n != 1)}" for kind, n in pages.items() if n]
        also = f" with {joined(words)}" if words else ""
        freed_text = f"removed{also}, {size_text(freed)}"
        print(f"{sweep}: {freed_text}; `gc` lists the cells that no sweep needs now")
    return 0
