"""Which modules the results in a cache came from: a table a digest, kept once for all cells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sim.base import files

_SHORT = 12
"""Hex digits of a module's digest that are kept: they explain, and are never gone by."""

MOST_NAMED = 3


class KeptSources:
    """Tables of sources under ``<results>/cache/sources``, by their digests."""

    def __init__(self, results: Path) -> None:
        self._folder = results / "cache" / "sources"
        self._known: dict[str, Mapping[str, str]] = {}

    def keep(self, digest: str, table: Mapping[str, str]) -> None:
        """Keep the table of a digest, unless it is there."""
        if digest not in self._known:
            self._known[digest] = _shortened(table)
            if not self._file(digest).exists():
                files.write_json(self._file(digest), self._known[digest])

    def changes(self, old: object, table: Mapping[str, str]) -> list[str]:
        """Name the modules by which a table differs from the one of the digest `old`."""
        before, now = self._table(old), _shortened(table)
        names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        if not before or not names:
            return ["sources"]
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        return [f"sources: {', '.join((*names[:MOST_NAMED], *more))}"]

    def _table(self, digest: object) -> Mapping[str, str]:
        """Read the table of a digest; an empty one if there is none, or an older version's."""
        if not isinstance(digest, str):
            return {}
        if digest not in self._known:
            kept = files.read_json(self._file(digest))
            self._known[digest] = kept if isinstance(kept, dict) else {}
        return self._known[digest]

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"


def _shortened(table: Mapping[str, str]) -> dict[str, str]:
    return {name: digest[:_SHORT] for name, digest in table.items()}
