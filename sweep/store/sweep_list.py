"""List of sweeps in a results folder; resolves a name or an id prefix to one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sim.base.errors import InputError, did_you_mean
from sweep.store.journal import Journal

CELLS = "cells.parquet"
MAX_NAMED = 8


@dataclass(frozen=True)
class SweepEntry:
    """A sweep of a folder of results."""

    sweep: str  # its id, ``<name>-<digest>``
    started_s: float  # last start, s since 1970
    requested_s: float  # last start or later request of the fully cached sweep
    is_finished: bool

    @property
    def name(self) -> str:
        """Name of the sweep: ``name=``, else its experiment, else ``sweep``."""
        return self.sweep.rpartition("-")[0]


def sweeps(results: Path) -> list[SweepEntry]:
    """List all sweeps of a results folder by their last start or request, latest last."""
    finished = {file.parent.name: file for file in (results / "sweeps").glob(f"*/{CELLS}")}
    journals = {file.stem: file for file in (results / "journal").glob("*.jsonl")}
    entries = []
    for sweep in sorted({*finished, *journals}):
        times = Journal(results, sweep).start_times_s() if sweep in journals else None
        if times is None:  # its folder was copied here
            times = ((finished.get(sweep) or journals[sweep]).stat().st_mtime,) * 2
        entries.append(SweepEntry(sweep, *times, sweep in finished))
    return sorted(entries, key=lambda entry: entry.requested_s)


def find(results: Path, word: str | None) -> SweepEntry:
    """Find a sweep by id, by name (the latest of that name), or by the beginning of its id.

    None means the one started last, whatever became of it.
    """
    entries = sweeps(results)
    if not entries:
        raise InputError(f"no sweeps in {results}; paths.results=DIR names another folder")
    if word is None:
        return entries[-1]
    matches = [entry for entry in entries if entry.sweep == word]
    matches = matches or [entry for entry in entries if entry.name == word][-1:]
    matches = matches or [entry for entry in entries if entry.sweep.startswith(word)]
    if len(matches) != 1:
        several = f" ({len(matches)} ids begin with it)" if matches else ""
        ids = [entry.sweep for entry in reversed(entries)]
        suggestion = did_you_mean(word, [*dict.fromkeys(entry.name for entry in entries), *ids])
        rest = f" and {len(ids) - MAX_NAMED} more: `list`" if len(ids) > MAX_NAMED else ""
        valid = ", ".join(ids[:MAX_NAMED])
        raise InputError(f"unknown sweep {word!r}{several}; {suggestion}valid: {valid}{rest}")
    return matches[0]
