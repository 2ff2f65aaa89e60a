"""Reader of delimited text in blocks of columns, with the line number of every bad row."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I1
from sim.base.errors import InputError, unknown
from sim.base.reading.text import broken_text_error, no_job_left

OnBadRow = Literal["error", "skip"]
Kind = Literal["text", "number", "whole", "any"]

_HEADER_HINT = "it looks like a header, which this format does not have: delete the line"
_BLOCK_BYTES = 4 << 20
_MISSING = ["", "nan", "NaN", "NA", "null", "NULL", "None", "\\N"]


@dataclass(frozen=True)
class Field:
    """Type and constraints of a column."""

    # text; a finite number; a whole number; any number, infinite ones included
    kind: Kind = "text"
    # True: an empty field makes the row bad; else it is null, or NaN for numbers
    required: bool = False
    low: float = 0.0  # smallest valid number (except for ``any``)
    high: float = math.inf  # largest valid number (for ``number``)
    form: str = ""  # regular expression that a text must match
    example: str = ""  # a text that matches it

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {self.kind!r}")


@dataclass(frozen=True)
class Layout:
    """Layout of delimited text: names of all columns, delimiter, lines before the rows."""

    names: tuple[str, ...]
    delimiter: str = ","
    skip_lines: int = 0
    quoted: bool = True  # a field may be enclosed in "
    # maps a line of the text to a line of the file, both from 1, if they differ
    lines: Callable[[int], int] | None = None


@dataclass(frozen=True)
class _Bad:
    line: int
    rule: str
    text: str


def read_blocks(
    path: str | os.PathLike[str],
    stream: Any,
    layout: Layout,
    fields: Mapping[str, Field],
    on_bad_row: OnBadRow,
    bad: dict[str, int],
) -> Iterator[dict[str, Any]]:
    """Read the rows of `stream`, a block at a time.

    Raises
    ------
    InputError
        On the first bad row with ``on_bad_row="error"``, and if the layout lacks a field.
    """
    _check_fields(path, layout, fields)
    wrong_width = _WrongWidth(layout.lines, is_error=on_bad_row == "error")
    n_rows = 0
    for batch in _batches(path, stream, layout, list(fields), wrong_width):
        lines = _Lines(layout.skip_lines + n_rows, wrong_width.lines, layout.lines)
        n_rows += batch.num_rows
        columns, rules = _convert(batch, fields)
        broken = np.flatnonzero(rules)
        blank = rules == _BLANK
        if on_bad_row == "error":
            real = broken[~blank[broken]]
            bad_rows = []
            if wrong_width.first is not None:  # one in a later block may follow other bad rows
                last = lines.number(batch.num_rows - 1)
                bad_rows += [w for w in (wrong_width.first,) if w.line <= last]
            if len(real):
                worst = _describe(batch, fields, int(real[0]), lines)
                is_first_row = n_rows == batch.num_rows and not real[0] and not layout.skip_lines
                if is_first_row and _is_header(batch, fields):
                    worst = replace(worst, text=f"{worst.text}; {_HEADER_HINT}")
                bad_rows.append(worst)
            _raise_first(path, bad_rows)
        for code in np.unique(rules[(rules > 0) & ~blank]):
            rule = _RULES[code]
            bad[rule] = bad.get(rule, 0) + int((rules == code).sum())
        if len(broken):
            keep = rules == 0
            mask = pa.array(keep)
            columns = {
                k: v[keep] if isinstance(v, np.ndarray) else v.filter(mask)
                for k, v in columns.items()
            }
        yield columns
    if wrong_width.first is not None:
        if on_bad_row == "error":
            _raise_first(path, [wrong_width.first])
        bad[_WRONG_WIDTH] = bad.get(_WRONG_WIDTH, 0) + wrong_width.n


def _check_fields(
    path: str | os.PathLike[str], layout: Layout, fields: Mapping[str, Field]
) -> None:
    """Refuse a field that is no column of the layout."""
    for name in fields:
        if name not in layout.names:
            raise InputError(
                f"{unknown('column', name, layout.names)}; a reader's fields must be columns of "
                "its layout",
                file=path,
                rule="missing column",
            )


def _is_header(batch: pa.RecordBatch, fields: Mapping[str, Field]) -> bool:
    """Tell whether the first row looks like names of columns: no number where one is needed."""
    names = [name for name, field in fields.items() if field.kind != "text"]
    texts = [_decode(batch.column(name).cast(pa.binary())[0].as_py()) for name in names]
    present = [text for text in texts if text is not None]
    return bool(present) and all(_parse(text) is None for text in present)


def read_columns(
    path: str | os.PathLike[str],
    stream: Any,
    layout: Layout,
    fields: Mapping[str, Field],
    on_bad_row: OnBadRow,
    bad: dict[str, int],
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


def _raise_first(path: str | os.PathLike[str], bad_rows: list[_Bad]) -> None:
    if bad_rows:
        first = min(bad_rows, key=lambda b: b.line)
        text = f"{first.text}; correct the file, or read it with on_bad_row=skip"
        raise InputError(text, file=path, line=first.line, rule=first.rule)


_RULES = (
    "",
    "missing value",
    "text in a number",
    "number out of range",
    "not UTF-8",
    "blank",
    "text of another form",
)
_BLANK = _RULES.index("blank")


_WRONG_WIDTH = "wrong number of fields"
_MAX_WRONG = 100_000
"""Limit of such lines in a block: more are no accident, and Arrow would search the whole rest of
the file for a row."""


class _WrongWidth:
    """Lines of a wrong width: their numbers, in a few bytes each, and the first bad one."""

    def __init__(self, line_of: Callable[[int], int] | None, *, is_error: bool) -> None:
        self.is_error = is_error
        self.lines = array("q")  # Arrow's line numbers, blank lines included
        self.first: _Bad | None = None
        self.n = 0  # without blank lines
        self._line_of = line_of or int

    def __call__(self, row: Any) -> str:
        """Skip a row (a callback of Arrow); end the reading if an error is certain and too many."""
        self.lines.append(row.number)
        if row.text.strip():  # a blank line is no row
            self.n += 1
            if self.first is None:
                text = f"the row has {row.actual_columns} fields; it needs {row.expected_columns}"
                self.first = _Bad(self._line_of(row.number), _WRONG_WIDTH, text)
        return "error" if self.is_error and self.n > _MAX_WRONG else "skip"


@dataclass(frozen=True)
class _Lines:
    """Maps rows of a block to lines of the file."""

    before: int
    invalid: array[int]
    line_of: Callable[[int], int] | None

    def number(self, row: int) -> int:
        line = self.before + row + 1
        for skipped in self.invalid:
            if skipped > line:
                break
            line += 1
        return line if self.line_of is None else self.line_of(line)


def _batches(
    path: str | os.PathLike[str],
    stream: Any,
    layout: Layout,
    columns: list[str],
    wrong_width: _WrongWidth,
) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv

    n_rows = 0
    try:
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                column_names=list(layout.names),
                skip_rows=layout.skip_lines,
            ),
            parse_options=csv.ParseOptions(
                delimiter=layout.delimiter,
                quote_char='"' if layout.quoted else False,
                ignore_empty_lines=False,
                invalid_row_handler=wrong_width,
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(layout.names, pa.string()),
                include_columns=columns,
                strings_can_be_null=True,
                null_values=_MISSING,
            ),
        )
        for batch in reader:
            n_rows += batch.num_rows
            yield batch
    except (pa.ArrowInvalid, OSError) as error:
        if "Empty CSV file" in str(error):
            return
        if wrong_width.is_error and wrong_width.n > _MAX_WRONG and wrong_width.first is not None:
            _raise_first(path, [wrong_width.first])
        line = layout.skip_lines + n_rows + len(wrong_width.lines) + 1
        raise broken_text_error(
            path, layout.lines(line) if layout.lines else line, error
        ) from error


def _convert(batch: pa.RecordBatch, fields: Mapping[str, Field]) -> tuple[dict[str, Any], I1]:
    """Convert columns; return them and the code of the first rule each row breaks (0: none)."""
    rules = np.zeros(batch.num_rows, np.int8)
    columns: dict[str, Any] = {}
    for name, field in fields.items():
        raw = batch.column(name)
        values, broken = _texts(raw, field) if field.kind == "text" else _numbers(raw, field)
        if field.required and raw.null_count:
            missing = raw.is_null().to_numpy(zero_copy_only=False)
            broken = np.where(missing, np.int8(1), broken)
        rules = np.where(rules > 0, rules, broken).astype(np.int8)
        columns[name] = values
    suspects = np.flatnonzero(rules == 1)
    if len(suspects):
        empty = np.ones(len(suspects), dtype=bool)
        rows = pa.array(suspects)
        for name in fields:
            empty &= batch.column(name).take(rows).is_null().to_numpy(zero_copy_only=False)
        rules[suspects[empty]] = _BLANK
    return columns, rules


def _texts(raw: pa.Array, field: Field) -> tuple[pa.Array, I1]:
    broken = np.zeros(len(raw), np.int8)
    if field.form:
        match = pc.match_substring_regex(raw.cast(pa.binary()), field.form).fill_null(True)
        broken[~match.to_numpy(zero_copy_only=False)] = _RULES.index("text of another form")
    try:
        raw.validate(full=True)
    except pa.ArrowInvalid:
        values = [_decode(b) for b in raw.cast(pa.binary()).to_pylist()]
        broken[[v is not None and "\ufffd" in v for v in values]] = 4
        return pa.array(values, pa.string()), broken
    return raw, broken


def _numbers(raw: pa.Array, field: Field) -> tuple[F8, I1]:
    try:
        numbers = raw.cast(pa.float64()).to_numpy(zero_copy_only=False)
        text = np.zeros(len(raw), dtype=bool)
    except pa.ArrowInvalid:
        coded = raw.cast(pa.binary()).dictionary_encode()
        parsed = [_parse(_decode(b)) for b in coded.dictionary.to_pylist()]
        codes = coded.indices.fill_null(len(parsed)).to_numpy()
        numbers = np.array([math.nan if x is None else x for x in parsed] + [math.nan])[codes]
        text = np.array([x is None for x in parsed] + [False])[codes]
    present = ~np.isnan(numbers)
    outside = present & (np.isinf(numbers) | (numbers < field.low) | (numbers > field.high))
    outside &= field.kind != "any"
    if field.kind == "whole":
        with np.errstate(invalid="ignore"):
            outside |= present & (numbers != np.rint(numbers)) | (numbers >= 2**31)
    return numbers, np.where(text, 2, np.where(outside, 3, 0)).astype(np.int8)


def _decode(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")


def _parse(text: str | None) -> float | None:
    try:
        return None if text is None or "_" in text else float(text)
    except ValueError:
        return None


def _describe(batch: pa.RecordBatch, fields: Mapping[str, Field], row: int, lines: _Lines) -> _Bad:
    single = batch.slice(row, 1)
    for name, field in fields.items():
        _, rules = _convert(single.select([name]), {name: field})
        code = int(rules[0])
        if code == _BLANK:  # its only column is empty
            code = 1
        if code:
            value = _decode(single.column(name).cast(pa.binary())[0].as_py())
            text = f"like {field.example}" if field.form else "text"
            expected = {"text": text, "whole": "a whole number"}.get(field.kind, "a number")
            limit = f" of at least {field.low:g}" if field.kind in ("number", "whole") else ""
            if math.isfinite(field.high):
                limit = f" from {field.low:g} to {field.high:g}"
            actual = "is missing" if value is None else f"is {value!r}"
            text = f"{name} {actual}; it must be {expected}{limit}"
            return _Bad(lines.number(row), _RULES[code], text)
    raise AssertionError("a row that breaks no rule is not bad")
