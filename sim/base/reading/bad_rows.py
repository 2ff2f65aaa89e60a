"""Bad rows of a log: their counts by rule, the first of each, and what can be read of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class BadRows(dict[str, int]):
    """Number of bad rows by rule.

    Attributes
    ----------
    examples : dict of str to str
        The first bad row of each rule: its line and what is wrong with it.
    readable : list of (str, mapping of str to array)
        Rule and columns of bad rows, as a reader's fields; null or NaN where a value can't be read.
    repaired : dict of str to int
        Number of rows put right, by reason; they are not bad.
    """

    def __init__(self) -> None:
        super().__init__()
        self.examples: dict[str, str] = {}
        self.repaired: dict[str, int] = {}
        self.readable: list[tuple[str, dict[str, Any]]] = []

    def add(self, rule: str, n: int, line: int, text: str) -> None:
        """Count `n` bad rows, the first of which is at `line` of the file."""
        if n:
            self[rule] = self.get(rule, 0) + n
            self.examples.setdefault(rule, f"line {line}: {text}")

    def merge(self, other: BadRows) -> None:
        """Add the bad rows of another part of the log."""
        for rule, n in other.items():
            self[rule] = self.get(rule, 0) + n
        for reason, n in other.repaired.items():
            self.repaired[reason] = self.repaired.get(reason, 0) + n
        self.examples = other.examples | self.examples
        self.readable += other.readable

    def blocks(self) -> Iterator[tuple[str, dict[str, Any], int]]:
        """Yield rule and columns of bad rows, and their number."""
        for rule, columns in self.readable:
            yield rule, columns, len(next(iter(columns.values()), ()))
