"""Reader of delimited text in blocks of columns, with the line number of every bad row."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import I1, I8
from sim.base.errors import InputError, unknown
from sim.base.reading.bad_rows import BadRows
from sim.base.reading.convert import BLANK, RULES, convert, decode, shown
from sim.base.reading.layout import MISSING, Field, Layout, OnBadRow, parse
from sim.base.reading.rules import count_rule
from sim.base.reading.text import broken_text_error, no_job_left
from sim.base.reading.utf8 import Utf8Stream
from sim.base.reading.width import MAX_WRONG, BadRow, WrongWidth
from sim.base.reading.width import RULE as WRONG_WIDTH

_HEADER_HINT = "it looks like a header, which this format does not have: delete the line"
_BLOCK_BYTES = 4 << 20


def read_blocks(
    path: str | os.PathLike[str],
    stream: Any,
    layout: Layout,
    fields: Mapping[str, Field],
    on_bad_row: OnBadRow,
    bad: BadRows,
) -> Iterator[dict[str, Any]]:
    """Read the rows of `stream`, a block at a time; count bad rows, and rows put right, in `bad`.

    Raises
    ------
    InputError
        On the first bad row with ``on_bad_row="error"``, and if the layout lacks a field.
    """
    _check_fields(path, layout, fields)
    is_error = on_bad_row == "error"
    wrong_width = WrongWidth(layout, fields, is_error=is_error)
    n_rows = 0
    for batch in _batches(path, stream, layout, list(fields), wrong_width):
        lines = _Lines(layout.skip_lines + n_rows, wrong_width.lines, layout.lines)
        wrong_width.close(lines.raw(batch.num_rows - 1))
        columns, rules = convert(batch, fields)
        if layout.skip_lines:
            _mark_headers(batch, fields, rules, wrong_width.reasons)
        if is_error:
            is_first = not n_rows and not layout.skip_lines
            _raise_first(path, _bad_rows(batch, fields, rules, lines, wrong_width, is_first))
        _count_bad(batch, fields, rules, lines, bad)
        rows = np.flatnonzero(rules == 0)
        columns = _take(columns, rows) if len(rows) < len(rules) else columns
        repaired = wrong_width.take(layout.skip_lines + n_rows, batch.num_rows)
        n_rows += batch.num_rows
        yield _merged(columns, rows, repaired, layout, fields)
    wrong_width.close(2**63)
    if is_error:
        _raise_first(path, list(filter(None, [wrong_width.first])))
    if repaired := wrong_width.take(0, 2**62):
        yield _merged({}, np.empty(0, np.int64), repaired, layout, fields)
    if wrong_width.first is not None:
        bad.add(WRONG_WIDTH, wrong_width.n, wrong_width.first.line, wrong_width.first.text)
        short = _table(layout, fields, wrong_width.short)
        bad.readable.append((WRONG_WIDTH, _readable(short, fields)))
    for reason, n in wrong_width.reasons.items():
        bad.repaired[reason] = bad.repaired.get(reason, 0) + n


def _bad_rows(
    batch: pa.RecordBatch,
    fields: Mapping[str, Field],
    rules: I1,
    lines: _Lines,
    wrong_width: WrongWidth,
    is_first_block: bool,
) -> list[BadRow]:
    """Return the first row of a wrong width until a block's end, and its first other bad row."""
    bad_rows = []
    if wrong_width.first is not None:  # one in a later block may follow other bad rows
        last = lines.number(batch.num_rows - 1)
        bad_rows += [row for row in (wrong_width.first,) if row.line <= last]
    real = np.flatnonzero((rules > 0) & (rules != BLANK))
    if len(real):
        worst = _describe(batch, fields, int(real[0]), lines)
        if is_first_block and not real[0] and _is_header(batch, fields):
            worst = replace(worst, text=f"{worst.text}; {_HEADER_HINT}")
        bad_rows.append(worst)
    return bad_rows


def _count_bad(
    batch: pa.RecordBatch, fields: Mapping[str, Field], rules: I1, lines: _Lines, bad: BadRows
) -> None:
    """Count the bad rows of a block by rule, with the first of each and what can be read of all."""
    for code in np.unique(rules[(rules > 0) & (rules != BLANK)]):
        rows = np.flatnonzero(rules == code)
        first = _describe(batch, fields, int(rows[0]), lines)
        bad.add(RULES[code], len(rows), first.line, first.text)
        bad.readable.append((RULES[code], _readable(batch.take(pa.array(rows)), fields)))


def _readable(batch: pa.RecordBatch, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the columns of bad rows; null or NaN where a value breaks its own column's rule."""
    columns = {}
    for name, field in fields.items():
        converted, rules = convert(batch.select([name]), {name: field})
        values, valid = converted[name], rules == 0
        is_number = isinstance(values, np.ndarray)
        nothing = np.nan if is_number else pa.scalar(None, values.type)
        columns[name] = (
            np.where(valid, values, nothing)
            if is_number
            else pc.if_else(pa.array(valid), values, nothing)
        )
    return columns


def _table(
    layout: Layout, fields: Mapping[str, Field], rows: Sequence[Sequence[str]]
) -> pa.RecordBatch:
    """Return texts of rows as a block; rows that end too early have no values after that."""
    columns = {}
    for position, name in enumerate(layout.names):
        if name not in fields:
            continue
        texts = [row[position] if position < len(row) else "" for row in rows]
        columns[name] = pa.array([None if t in MISSING else t for t in texts], pa.string())
    return pa.RecordBatch.from_pydict(columns)


def _merged(
    columns: dict[str, Any],
    rows: I8,
    repaired: list[tuple[int, list[str]]],
    layout: Layout,
    fields: Mapping[str, Field],
) -> dict[str, Any]:
    """Insert rows put right, (position in the block, values), between the valid rows of a block."""
    if not repaired:
        return columns
    more, _ = convert(_table(layout, fields, [values for _, values in repaired]), fields)
    if not columns:
        return more
    before = np.array([position for position, _ in repaired]) - 0.5
    order = np.argsort(np.concatenate([rows, before]), kind="stable")
    joined = {
        name: np.concatenate([column, more[name]])
        if isinstance(column, np.ndarray)
        else pa.concat_arrays([column, more[name]])
        for name, column in columns.items()
    }
    return _take(joined, order)


def _take(columns: dict[str, Any], rows: I8) -> dict[str, Any]:
    return {
        name: column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))
        for name, column in columns.items()
    }


def _check_fields(
    path: str | os.PathLike[str], layout: Layout, fields: Mapping[str, Field]
) -> None:
    """Refuse a field that is no column of the layout."""
    names = set(layout.names)
    for name in fields:
        if name not in names:
            raise InputError(
                f"{unknown('column', name, layout.names)}; a reader's fields must be columns of "
                "its layout",
                file=path,
                rule="missing column",
            )


def _mark_headers(
    batch: pa.RecordBatch, fields: Mapping[str, Field], rules: I1, reasons: dict[str, int]
) -> None:
    """Mark the bad rows that are the header once more as no rows; count them.

    Logs that were put together have one for each part.
    """
    rows = np.flatnonzero((rules > 0) & (rules != BLANK))
    if not len(rows):
        return
    is_header = np.ones(len(rows), dtype=bool)
    bad = batch.take(pa.array(rows))
    for name in fields:
        same = pc.equal(bad.column(name).cast(pa.binary()), name.encode()).fill_null(False)
        is_header &= same.to_numpy(zero_copy_only=False)
    rules[rows[is_header]] = BLANK
    count_rule(reasons, "the header once more: left out", is_header)


def _is_header(batch: pa.RecordBatch, fields: Mapping[str, Field]) -> bool:
    """Tell whether the first row looks like names of columns: no number where one is needed."""
    names = [name for name, field in fields.items() if field.kind != "text"]
    texts = [decode(batch.column(name).cast(pa.binary())[0].as_py()) for name in names]
    present = [text for text in texts if text is not None]
    return bool(present) and all(parse(text) is None for text in present)


def read_columns(
    path: str | os.PathLike[str],
    stream: Any,
    layout: Layout,
    fields: Mapping[str, Field],
    on_bad_row: OnBadRow,
    bad: BadRows,
) -> dict[str, Any]:
    """Read all rows of `stream` as whole columns; no row is an error, "no job left"."""
    blocks = list(read_blocks(path, stream, layout, fields, on_bad_row, bad))
    if not sum(len(block[name]) for block in blocks for name in [*fields][:1]):
        raise no_job_left(path, bad)
    columns = {name: [block[name] for block in blocks] for name in fields}
    return {
        name: np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)
        for name, parts in columns.items()
    }


def _raise_first(path: str | os.PathLike[str], bad_rows: list[BadRow]) -> None:
    if bad_rows:
        first = min(bad_rows, key=lambda b: b.line)
        text = f"{first.text}; correct the file, or read it with on_bad_row=skip"
        raise InputError(text, file=path, line=first.line, rule=first.rule)


@dataclass(frozen=True)
class _Lines:
    """Maps rows of a block to lines of the file."""

    before: int
    invalid: array[int]
    line_of: Callable[[int], int] | None

    def raw(self, row: int) -> int:
        line = self.before + row + 1
        for skipped in self.invalid:
            if skipped > line:
                break
            line += 1
        return line

    def number(self, row: int) -> int:
        line = self.raw(row)
        return line if self.line_of is None else self.line_of(line)


def _batches(
    path: str | os.PathLike[str],
    stream: Any,
    layout: Layout,
    columns: list[str],
    wrong_width: WrongWidth,
) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv

    n_rows = 0
    try:
        reader = csv.open_csv(
            Utf8Stream(stream),
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                column_names=list(layout.names),
                skip_rows=layout.skip_lines,
            ),
            parse_options=csv.ParseOptions(
                delimiter=layout.delimiter,
                quote_char='"' if layout.quoted else False,
                newlines_in_values=layout.multiline,
                ignore_empty_lines=False,
                invalid_row_handler=wrong_width,
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(layout.names, pa.string()),
                include_columns=columns,
                strings_can_be_null=True,
                null_values=list(MISSING),
            ),
        )
        for batch in reader:
            n_rows += batch.num_rows
            yield batch
    except (pa.ArrowInvalid, OSError) as error:
        if "Empty CSV file" in str(error):
            return
        if wrong_width.is_error and wrong_width.n > MAX_WRONG and wrong_width.first is not None:
            _raise_first(path, [wrong_width.first])
        line = layout.skip_lines + n_rows + len(wrong_width.lines) + 1
        line = layout.lines(line) if layout.lines else line
        if "straddl" in str(error):
            quote = ": is a quote open?" if layout.multiline else ""
            text = f"a row from here on has more than {_BLOCK_BYTES:,} bytes{quote}"
            raise InputError(text, file=path, line=line, rule="line too long") from error
        raise broken_text_error(path, line, error) from error


def _describe(
    batch: pa.RecordBatch, fields: Mapping[str, Field], row: int, lines: _Lines
) -> BadRow:
    single = batch.slice(row, 1)
    for name, field in fields.items():
        _, rules = convert(single.select([name]), {name: field})
        code = int(rules[0])
        if code == BLANK:  # its only column is empty
            code = 1
        if code:
            value = decode(single.column(name).cast(pa.binary())[0].as_py())
            text = f"like {field.example}" if field.form else "text"
            expected = {"text": text, "whole": "a whole number"}.get(field.kind, "a number")
            limit = f" of at least {field.low:g}" if field.kind in ("number", "whole") else ""
            if math.isfinite(field.high):
                limit = f" from {field.low:g} to {field.high:g}"
            actual = "is missing" if value is None else f"is {shown(value)}"
            hint = field.explain(value) if field.explain and value is not None else ""
            text = f"{name} {actual}; it must be {expected}{limit}{hint}"
            return BadRow(lines.number(row), RULES[code], text)
    raise AssertionError("a row that breaks no rule is not bad")
