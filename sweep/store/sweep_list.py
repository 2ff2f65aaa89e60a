"""Which sweeps there are, which of them was begun last, and which one a word means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sim.base.errors import InputError, did_you_mean
from sweep.store.journal import Journal

CELLS = "cells.parquet"
MOST_NAMED = 8


@dataclass(frozen=True)
class SweepEntry:
    """A sweep of a folder of results."""

    sweep: str  # its id, ``<name>-<digest>``
    begun_s: float  # when it was last begun, s since 1970
    asked_s: float  # the same, or when it was asked for again since, all of it being cached
    is_over: bool

    @property
    def name(self) -> str:
        """What it is called: ``name=``, else its experiment, else ``sweep``."""
        return self.sweep.rpartition("-")[0]


def sweeps(results: Path) -> list[SweepEntry]:
    """All sweeps of a folder of results, the latest begun or asked for last."""
    over = {file.parent.name: file for file in (results / "sweeps").glob(f"*/{CELLS}")}
    begun = {file.stem: file for file in (results / "journal").glob("*.jsonl")}
    found = []
    for sweep in sorted({*over, *begun}):
        times = Journal(results, sweep).start_times_s() if sweep in begun else None
        if times is None:  # a folder that was copied here
            times = ((over.get(sweep) or begun[sweep]).stat().st_mtime,) * 2
        found.append(SweepEntry(sweep, *times, sweep in over))
    return sorted(found, key=lambda known: known.asked_s)


def find(results: Path, word: str | None) -> SweepEntry:
    """Find a sweep by its id, its name (the latest of that name) or how its id begins.

    None means the latest begun, whatever became of it.
    """
    found = sweeps(results)
    if not found:
        raise InputError(f"there is no sweep in {results}; paths.results=DIR names another folder")
    if word is None:
        return found[-1]
    named = [known for known in found if known.sweep == word]
    named = named or [known for known in found if known.name == word][-1:]
    named = named or [known for known in found if known.sweep.startswith(word)]
    if len(named) != 1:
        several = f" ({len(named)} begin like that)" if named else ""
        ids = [known.sweep for known in reversed(found)]
        near = did_you_mean(word, [*dict.fromkeys(known.name for known in found), *ids])
        more = f" and {len(ids) - MOST_NAMED} more: `list`" if len(ids) > MOST_NAMED else ""
        valid = ", ".join(ids[:MOST_NAMED])
        raise InputError(f"unknown sweep {word!r}{several}; {near}valid: {valid}{more}")
    return named[0]
