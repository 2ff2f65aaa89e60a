"""Records that are parsed one by one, as columns; bad ones with what can be read of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pyarrow as pa

from sim.base.reading import BadLineError, BadRows, OnBadRow, handle_bad_line
from sim.traces.sacct.columns import Log

NEEDED = ("JobID", "Submit", "Start", "End")


class RecordList:
    """Columns of text that grow by a record at a time.

    Parameters
    ----------
    path : path-like
        The log, for messages.
    names : sequence of str
        Columns.
    on_bad_row : {"error", "skip"}
        Raise at the first bad record, or count it in `bad`.
    bad : BadRows
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        names: Sequence[str],
        on_bad_row: OnBadRow,
        bad: BadRows,
    ) -> None:
        self._path, self._on_bad_row, self._bad = path, on_bad_row, bad
        self._columns: dict[str, list[str | None]] = {name: [] for name in names}
        self._bad_columns: dict[str, dict[str, list[str | None]]] = {}

    def __len__(self) -> int:
        """Return the number of valid records."""
        return len(next(iter(self._columns.values())))

    def add(
        self, line: int, record: Mapping[str, str | None], error: BadLineError | None = None
    ) -> None:
        """Add a record that stands at `line` of the file; with an `error` it is a bad one.

        Raises
        ------
        InputError
            At a bad record, if these are errors.
        """
        columns = self._columns
        with handle_bad_line(self._path, line, self._on_bad_row, self._bad):
            if error is not None:
                nothing: dict[str, list[str | None]] = {name: [] for name in self._columns}
                columns = self._bad_columns.setdefault(error.rule, nothing)
                raise error
        for name, column in columns.items():
            column.append(record.get(name))

    def columns(self) -> Log:
        """Return the columns of the valid records, and enter those of bad ones into `bad`.

        A column that no record has is absent, unless it is one of `NEEDED`.
        """
        for rule, columns in self._bad_columns.items():
            self._bad.readable.append((rule, _arrays(columns)))
        self._bad_columns = {}
        return _arrays(self._columns)


def _arrays(columns: Mapping[str, list[str | None]]) -> Log:
    arrays = {name: pa.array(column, pa.string()) for name, column in columns.items()}
    return {
        name: column
        for name, column in arrays.items()
        if name in NEEDED or column.null_count < len(column)
    }
