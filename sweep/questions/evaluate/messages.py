"""Messages of a candidate: JSON and numeric arrays in frames, from somebody who is not trusted.

A frame is two lengths, the JSON, and the bytes of its arrays. Nothing in it is code: a reader
gets numbers, texts, lists, dictionaries and arrays, or a `BadMessageError`.
"""

from __future__ import annotations

import json
import math
import os
import select
import struct
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEAD = struct.Struct("<QQ")
DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "|u1", "|b1")
_ARRAY = "\0array"


class BadMessageError(Exception):
    """A frame that is none: too large, cut off, or not of this form."""


class EndedError(Exception):
    """The other end of a pipe is closed."""


class LateError(Exception):
    """No answer by the deadline."""


def pack(content: Any) -> bytes:
    """Encode content: NumPy arrays and scalars, and what JSON has."""
    arrays: list[NDArray[Any]] = []
    text = json.dumps(_plain(content, arrays)).encode()
    body = b"".join(array.tobytes() for array in arrays)
    return HEAD.pack(len(text), len(body)) + text + body


def _plain(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        arrays.append(array)
        return {_ARRAY: [array.dtype.str, *value.shape]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _plain(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, arrays) for item in value]
    return value


def unpack(text: bytes, body: bytes) -> Any:
    """Decode content.

    Raises
    ------
    BadMessageError
        If it is not of this form.
    """
    try:
        content, used = _whole(json.loads(text), body, 0)
    except BadMessageError:
        raise
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise BadMessageError(f"{type(error).__name__}: {error}") from None
    if used != len(body):
        raise BadMessageError(f"{len(body) - used} bytes belong to no array")
    return content


def _whole(value: Any, body: bytes, used: int) -> tuple[Any, int]:
    if isinstance(value, dict) and _ARRAY in value:
        dtype, *shape = value[_ARRAY]
        is_shape = all(type(n) is int and 0 <= n <= len(body) for n in shape) and len(shape) <= 2
        if dtype not in DTYPES or not is_shape:
            raise BadMessageError(f"an array of {dtype!r} and shape {shape!r}")
        n_bytes = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        if used + n_bytes > len(body):
            raise BadMessageError("an array reaches beyond its frame")
        array = np.frombuffer(body[used : used + n_bytes], dtype).reshape(shape)
        return array, used + n_bytes
    if isinstance(value, dict):
        pairs = {}
        for key, item in value.items():
            pairs[key], used = _whole(item, body, used)
        return pairs, used
    if isinstance(value, list):
        items = []
        for item in value:
            whole, used = _whole(item, body, used)
            items.append(whole)
        return items, used
    return value, used


def read(pipe: int, at_most: int, deadline: float) -> Any:
    """Read a frame of a candidate.

    Raises
    ------
    BadMessageError
        If it is larger than `at_most` bytes, or not of this form.
    EndedError
        If the pipe is closed.
    LateError
        If it has not come by `deadline`, on the clock `time.monotonic`.
    """
    data = bytearray()
    while len(data) < HEAD.size:
        data += _some(pipe, deadline)
    n_text, n_body = HEAD.unpack_from(data)
    if n_text + n_body > at_most:
        raise BadMessageError(f"an answer of {n_text + n_body:,} bytes; at most {at_most:,}")
    while len(data) < HEAD.size + n_text + n_body:
        data += _some(pipe, deadline)
    begin = HEAD.size + n_text
    if len(data) > begin + n_body:
        raise BadMessageError("more than one answer")
    return unpack(bytes(data[HEAD.size : begin]), bytes(data[begin:]))


def _some(pipe: int, deadline: float) -> bytes:
    wait_for(pipe, select.POLLIN, deadline)
    part = os.read(pipe, 2**16)
    if not part:
        raise EndedError
    return part


def read_bytes(pipe: int, n: int) -> bytes:
    """Read exactly `n` bytes, however long that takes."""
    parts = []
    while n:
        part = os.read(pipe, min(n, 2**20))
        if not part:
            raise EndedError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def write(pipe: int, parts: Iterable[bytes], deadline: float | None = None) -> None:
    """Write all bytes, by a deadline if there is one.

    Raises
    ------
    EndedError
        If the other end is closed.
    LateError
        If they are not read in time.
    """
    left = memoryview(b"".join(parts))
    while left:
        try:
            left = left[os.write(pipe, left) :]
        except BlockingIOError:
            wait_for(pipe, select.POLLOUT, math.inf if deadline is None else deadline)
        except BrokenPipeError:
            raise EndedError from None


def wait_for(pipe: int, event: int, deadline: float) -> None:
    """Wait until a pipe can be read or written; raise `LateError` at the deadline."""
    poll = select.poll()
    poll.register(pipe, event)
    left_s = deadline - time.monotonic()
    if not poll.poll(None if left_s == math.inf else max(0.0, 1000.0 * left_s)):
        raise LateError
