"""Aliases of users, accounts and names of jobs, kept in a file so that they stay the same."""

from __future__ import annotations

import json
from pathlib import Path

from sim.base.errors import InputError

UNCHANGED = ("", "root")
"""Names that tell nothing: the root of the tree of accounts is found by its name."""


class Pseudonyms:
    """Table of aliases by kind of name; without a file names stay as they are.

    A new name gets the next number, so that aliases of earlier names stay the same. An alias says
    nothing of its name; keep the file to yourself.

    Parameters
    ----------
    path : Path, optional
        File of the table (JSON), read if it exists; `write` writes it.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._tables: dict[str, dict[str, str]] = {}
        if path is not None and path.exists():
            try:
                self._tables = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                text = f"the file of pseudonyms is no JSON: {error}"
                raise InputError(text, file=path, rule="pseudonyms") from error

    def alias(self, kind: str, name: str) -> str:
        """Return the alias of a name of a kind (``user``, ``account``, ``group``, ``job``)."""
        if self._path is None or name in UNCHANGED:
            return name
        table = self._tables.setdefault(kind, {})
        return table.setdefault(name, f"{kind}{len(table) + 1}")

    def write(self) -> None:
        """Write the table, if it has a file."""
        if self._path is not None:
            self._path.write_text(json.dumps(self._tables, indent=1) + "\n", encoding="utf-8")
