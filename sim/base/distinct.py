"""Distinct strings among millions, by sorting hashes: less memory than a hash table of strings."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import I4, I8, U8

_BASE = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_MAX_STEPS = 128
"""Bytes that are hashed one after the other, of all strings at once; few strings have more."""


def number_by_appearance(strings: pa.StringArray) -> tuple[I4, I8]:
    """Assign numbers to distinct strings by first appearance; return them and the first rows."""
    hashed = _hash64(strings)
    order = np.argsort(hashed, kind="stable")
    new = np.ones(len(order), dtype=bool)
    new[1:] = hashed[order[1:]] != hashed[order[:-1]]
    del hashed
    first = order[new]  # of each group, as the sort is stable
    group = np.empty(len(order), np.int32)
    group[order] = np.cumsum(new, dtype=np.int32) - 1
    del order, new
    if len(first) < len(group) and not _all_equal(strings, first, group):
        coded = strings.dictionary_encode()  # a hash collision
        code = coded.indices.to_numpy()
        return code, np.unique(code, return_index=True)[1]
    by_row = np.argsort(first, kind="stable")
    number = np.empty(len(first), np.int32)
    number[by_row] = np.arange(len(first), dtype=np.int32)
    return number[group], first[by_row]


def first_repeat(strings: pa.StringArray) -> tuple[int, int] | None:
    """Return the first row that repeats an earlier row's string, and that row; None if unique."""
    hashed = _hash64(strings)
    hashed.sort()
    if (hashed[1:] != hashed[:-1]).all():
        return None
    code, first = number_by_appearance(strings)
    repeats = np.ones(len(code), dtype=bool)
    repeats[first] = False
    if not repeats.any():
        return None
    row = int(np.argmax(repeats))
    return row, int(first[code[row]])


def _all_equal(strings: pa.StringArray, first: I8, group: I4) -> bool:
    repeated = np.flatnonzero(first[group] != np.arange(len(group)))
    other = strings.take(pa.array(first[group[repeated]]))
    same = pc.equal(strings.take(pa.array(repeated)), other)
    return bool(same.to_numpy(zero_copy_only=False).all())


def _hash64(strings: pa.StringArray) -> U8:
    _, ends, data = strings.buffers()
    bounds = np.frombuffer(ends, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    begin, size = bounds[:-1], np.diff(bounds)
    hashed = size.astype(np.uint64)
    row = np.flatnonzero(size > 0)
    step = 0
    while len(row) and step < _MAX_STEPS:
        whole = len(row) == len(hashed)
        value = hashed if whole else hashed[row]
        value = (value ^ (value >> _SHIFT)) * _BASE
        value += text[(begin if whole else begin[row]) + step]
        if whole:
            hashed = value
        else:
            hashed[row] = value
        step += 1
        row = row[size[row] > step]
    for long in row:
        rest = text[begin[long] + step : begin[long] + size[long]]
        digest = hashlib.blake2b(rest.tobytes(), digest_size=8).digest()
        hashed[long] ^= np.frombuffer(digest, np.uint64)[0]
    return hashed
