"""Attacks on `verify`: deterministic changes of good archives, each by its kind and name."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sweep.questions.archive import hostile, lies
from tests.sweep.questions.archive.changes import Attack
from tests.sweep.questions.archive.entries import Entries


def all_attacks(bases: dict[str, Entries]) -> Iterator[Attack]:
    """Yield every attack; `bases` are the good archives by name."""
    yield from hostile.addresses()
    yield from hostile.foreign_code()
    yield from lies.lies_in_cells(bases["grid"])
    yield from lies.lies_in_origin(bases["grid"])
    for base in (base for base in bases if base != "own"):
        yield from lies.lies_in_files(base, bases[base])
    yield from lies.lies_in_record(bases["grid"])
    yield from lies.damaged_entries(bases["grid"])
