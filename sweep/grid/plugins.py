"""Plug-ins of sweeps: strategies, and what is added to a finished sweep's folder.

A plug-in is a module, an entry point of the kind ``strategies`` or ``sections``
(`sim.base.entry_points`); one module may be both. It has a number ``ORDER``, and any of these
functions.

Strategies choose the cells to run:

``KEYS``
    Keys of the command line that it takes; ``CHOOSE_SEEDS``: those of them that choose seeds.
``HELP``
    Lines on its keys for ``--help``.
``FILES``
    Files that its strategy makes, in the sweep's folder; ``JOB_FILES``: those of them that it makes
    from the jobs of cells, and not from their metrics.
``take(lines, defaults) -> Goal | None``
    Remove its keys from the assignments; return the goal, None if there is none.
``words(request) -> list[str]``
    Words that it adds to the command line, such as the size of a log's cluster.
``strategy(request) -> Strategy | None``
    The strategy of a request (`sweep.execution.strategy`); None if it is not its own.

Sections add to a finished sweep's folder (`sweep.report.contribution`):

``check(request)``
    Refuse a wrong request before anything runs.
``REPORT_FILES``
    Files that `contribute` writes, made anew with each report.
``TABLES``, ``tables(parts, config, cache) -> Mapping[str, Table | None]``
    Tables by file name, made once from all cells; ``parts()`` reads them, part by part.
``contribute(sweep) -> Contribution``
    What it adds to the report, the verdict and the folder.
``sections(folder, config) -> list[Section]``
    Its sections from the folder's files, for a terminal.
``points(folder) -> Mapping[str, float]``
    Numbers of the whole sweep for MLflow, by name.
``granularity(config) -> str | None``
    What MLflow gets a run of by default: ``cell``, ``policy`` or ``sweep``.
``FRAMES``
    File of a table and its columns by the attribute of `sweep.Sweep` that has it as a data frame.
``browser_command(uri) -> tuple[str, str]``
    Name of its pages on what is tracked there, and the command that opens them in a browser.
``draw(runs)``, ``write_perfetto(run, path)``
    Draw runs of cells (`sweep.driver.captured_run`), one below the other; write one for Perfetto.
``explain(folder, row, other)``
    Compare the run of a cell with that of another: its row, or the policy of one that differs in
    nothing else.
``explain_runs(runs, names) -> list[str]``
    Say in sentences why the first of two runs of the same jobs loses or wins.
``FIELDS``, ``from_others(results, config, provenance) -> Mapping[str, Mapping[str, Any]]``
    Fields of ``verdict.json`` by trace that follow from other sweeps; ``OTHERS`` names them.

A broken plug-in is named in a line and left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from sim.base import entry_points
from sim.base.entry_points import PROJECT, Entry
from sim.base.errors import InputError, summary_line
from sim.base.text import printable

STRATEGIES, SECTIONS = "strategies", "sections"


class PlugIn(NamedTuple):
    """An imported plug-in."""

    entry: Entry
    module: ModuleType


@cache
def installed(kind: str) -> tuple[PlugIn, ...]:
    """Import the plug-ins of a kind, in their order; a broken one is named once and left out."""
    loaded = []
    for name, entry in entry_points.installed(kind).items():
        try:
            loaded.append(PlugIn(entry, entry_points.load(kind, name)))
        except InputError as error:
            _report(error.message)
    return tuple(sorted(loaded, key=lambda p: (getattr(p.module, "ORDER", 0), p.entry.name)))


def results(kind: str, function: str, *arguments: Any) -> Iterator[Any]:
    """Call a function of each plug-in that has it; yield what they return.

    A plug-in of another package that fails is named in a line.
    """
    for plug_in in installed(kind):
        call = getattr(plug_in.module, function, None)
        if call is None:
            continue
        try:
            result = call(*arguments)
        except (InputError, OSError, MemoryError):
            raise
        except Exception as error:
            if plug_in.entry.package == PROJECT:
                raise
            entry = plug_in.entry
            _report(
                f"{kind}: {entry.name!r} of {entry.origin} failed: "
                f"{type(error).__name__}: {summary_line(error)}"
            )
            continue
        yield result


def having(kind: str, function: str) -> ModuleType | None:
    """Return the first plug-in that has a function; None if none has."""
    modules = (plug_in.module for plug_in in installed(kind))
    return next((module for module in modules if hasattr(module, function)), None)


def constants(kind: str, name: str) -> tuple[str, ...]:
    """Return the texts that a constant of each plug-in lists, such as ``FILES``."""
    return tuple(text for p in installed(kind) for text in getattr(p.module, name, ()))


def frames() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return file and columns of the tables in ``FRAMES`` of all plug-ins, by attribute."""
    tables = (getattr(p.module, "FRAMES", {}) for p in installed(SECTIONS))
    return {name: table for by_name in tables for name, table in by_name.items()}


def _report(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
