"""Conversion of texts of rows into columns, with the rule that each bad value breaks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I1
from sim.base.reading.layout import MAX_WHOLE, Field, parse
from sim.base.reading.utf8 import INVALID

_MAX_SHOWN = 80
"""Length from which on a message shows only the beginning of a value."""
RULES = (
    "",
    "missing value",
    "text in a number",
    "number out of range",
    "not UTF-8",
    "blank",
    "text of another form",
)
BLANK = RULES.index("blank")


def convert(batch: pa.RecordBatch, fields: Mapping[str, Field]) -> tuple[dict[str, Any], I1]:
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
        rules[suspects[empty]] = BLANK
    return columns, rules


def _texts(raw: pa.Array, field: Field) -> tuple[pa.Array, I1]:
    broken = np.zeros(len(raw), np.int8)
    if field.form:
        match = pc.match_substring_regex(raw.cast(pa.binary()), field.form).fill_null(True)
        broken[~match.to_numpy(zero_copy_only=False)] = RULES.index("text of another form")
    data = raw.buffers()[2]
    if data is not None and INVALID.encode() in data.to_pybytes():  # faster than by value
        marks = pc.match_substring(raw, INVALID).fill_null(False)
        broken[marks.to_numpy(zero_copy_only=False)] = RULES.index("not UTF-8")
    return raw, broken


def _numbers(raw: pa.Array, field: Field) -> tuple[F8, I1]:
    try:
        numbers = raw.cast(pa.float64()).to_numpy(zero_copy_only=False)
        text = np.zeros(len(raw), dtype=bool)
    except pa.ArrowInvalid:
        coded = raw.cast(pa.binary()).dictionary_encode()
        parsed = [parse(decode(b)) for b in coded.dictionary.to_pylist()]
        codes = coded.indices.fill_null(len(parsed)).to_numpy()
        numbers = np.array([math.nan if x is None else x for x in parsed] + [math.nan])[codes]
        text = np.array([x is None for x in parsed] + [False])[codes]
    present = ~np.isnan(numbers)
    outside = present & (np.isinf(numbers) | (numbers < field.low) | (numbers > field.high))
    outside &= field.kind != "any"
    if field.kind == "whole":
        with np.errstate(invalid="ignore"):
            outside |= present & (numbers != np.rint(numbers)) | (numbers >= MAX_WHOLE)
    return numbers, np.where(text, 2, np.where(outside, 3, 0)).astype(np.int8)


def shown(value: str) -> str:
    """Return a value as an error shows it: quoted, a long one cut."""
    return repr(value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}...")


def decode(raw: bytes | None) -> str | None:
    """Return bytes as text, with a sign for what is no UTF-8."""
    return None if raw is None else raw.decode(errors="replace").replace(INVALID, "\ufffd")
