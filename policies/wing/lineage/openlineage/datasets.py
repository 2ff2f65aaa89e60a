"""Datasets of events: one for all the names of it, and the change that a run makes to it.

A name is ``namespace/name``. The storage schemes that name one store in several ways are one
(``s3a`` is ``s3``), slashes at an end do not count, and names that a ``symlinks`` facet or a RENAME
with its previous name joins are one dataset.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from sim.base.arrays import I4

WRITE, APPEND, OVERWRITE, CREATE, CLEAR, ALTER, RENAME = (1 << bit for bit in range(7))
"""Changes of a dataset, as bits: several events of a run may name several; `WRITE` is of no kind.
"""
CHANGES: Final = {
    "APPEND": APPEND, "OVERWRITE": OVERWRITE, "CREATE": CREATE, "TRUNCATE": CLEAR, "DROP": CLEAR,
    "ALTER": ALTER, "RENAME": RENAME,
}  # fmt: skip
"""Changes by their names in the ``lifecycleStateChange`` facet."""
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_SCHEME = re.compile(r"(?i)(s3a|s3n|abfss|wasbs)(?=://)")


class MalformedError(Exception):
    """An event lacks a field, which the message names."""


class Datasets:
    """Numbers of datasets, by their names."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._entries: dict[tuple[str, str], int] = {}  # numbers of spellings
        self._joined: list[tuple[int, int]] = []

    def number(self, entry: Any) -> int:
        """Return the number of the dataset that an entry of an event names."""
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise MalformedError("a dataset without a name")
        space = entry.get("namespace")
        spelling = (space if isinstance(space, str) else "", entry["name"])
        number = self._entries.get(spelling)
        if number is None:
            number = self._number.setdefault(_canonical(*spelling), len(self._number))
            self._entries[spelling] = number
        return number

    def named(self, entry: Any) -> tuple[int, int]:
        """Return the number of an entry of an event, and its change; join its other names to it."""
        number = self.number(entry)
        facets = entry.get("facets")
        if not facets or not isinstance(facets, dict):
            return number, WRITE
        symlinks = facets.get("symlinks")
        if isinstance(symlinks, dict) and isinstance(symlinks.get("identifiers"), list):
            for other in symlinks["identifiers"]:
                self._join(number, other)
        change = facets.get("lifecycleStateChange")
        if not isinstance(change, dict):
            return number, WRITE
        self._join(number, change.get("previousIdentifier"))
        return number, CHANGES.get(str(change.get("lifecycleStateChange")).upper(), WRITE)

    def _join(self, number: int, other: Any) -> None:
        if isinstance(other, dict) and isinstance(other.get("name"), str):
            self._joined.append((number, self.number(other)))

    def numbered(self) -> tuple[I4, list[str]]:
        """Return the rank of each number's dataset, and the names of datasets by their ranks.

        Ranks are in order of names. The name of a dataset of several is the first of them.
        """
        names = list(self._number)
        n = len(names)
        component = np.arange(n)
        if self._joined:
            from scipy.sparse import csr_array
            from scipy.sparse.csgraph import connected_components

            pairs = np.array(self._joined).T
            ones = np.ones(pairs.shape[1], np.int8)
            graph = csr_array((ones, (pairs[0], pairs[1])), shape=(n, n))
            _, component = connected_components(graph, directed=False)
        order = sorted(range(n), key=names.__getitem__)
        rank_of: dict[int, int] = {}
        rank = np.empty(n, np.int32)
        firsts: list[str] = []
        for number in order:
            part = int(component[number])
            if part not in rank_of:
                rank_of[part] = len(firsts)
                firsts.append(names[number])
            rank[number] = rank_of[part]
        return rank, firsts


def _canonical(space: str, name: str) -> str:
    """Return one spelling of a dataset's name."""
    root, path = space.rstrip("/"), name.rstrip("/") or name
    whole = f"{root}/{path.lstrip('/')}" if root else path
    return _SCHEME.sub(lambda match: _SCHEMES[match[0].lower()], whole)


_PRECEDENCE: Final = (OVERWRITE, CREATE, APPEND, RENAME, CLEAR, ALTER)


def change_of(bits: int) -> int:
    """Return the change of a dataset that all events of a run together name.

    An event that names none says nothing of it if another one does. APPEND to a dataset that the
    run empties is OVERWRITE.
    """
    if bits & APPEND and bits & CLEAR:
        return OVERWRITE
    return next((change for change in _PRECEDENCE if bits & change), WRITE)
