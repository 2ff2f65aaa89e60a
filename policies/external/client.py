"""The other side of the protocol: a scheduler in Python, to begin with.

It needs pyarrow and NumPy, and nothing of this project: copy it. `serve` calls a function for each
batch of facts, which returns the jobs that it sets.
"""

import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

BEGIN, JOB_ARRIVED, STAGE_DONE, JOB_DONE, TIMER, JOB_FAILED = 0, 1, 4, 8, 32, 128
STAGE, EDGE, CHANGED = 1024, 1025, 1026

END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Arrow's end of a stream."""
MAX_HEADS = 256
"""Number of heads that are kept, each of a number of rows."""


class Columns:
    """A batch: ``facts["kind"]`` is the column of that name, as an array."""

    def __init__(self, n: int, places: Mapping[str, tuple[np.dtype[Any], int]], body: bytes):
        self.n, self.names, self._places, self._body = n, list(places), places, body

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column, (N,), read-only."""
        dtype, offset = self._places[name]
        return np.frombuffer(self._body, dtype, self.n, offset)


class Reader:
    """Batches of a stream of Arrow's IPC format.

    Batches of one schema and of as many rows differ in their bodies alone: pyarrow reads a head
    once, and says where the columns lie.
    """

    def __init__(self) -> None:
        self.schema: pa.Schema | None = None
        self._begin = b""
        self._known: dict[bytes, tuple[int, dict[str, tuple[np.dtype[Any], int]], int]] = {}

    def next(self, read: Callable[[int], bytes]) -> Columns | None:
        """Return the next batch, None at the end of the stream.

        `read` returns the next bytes, as many as its argument, fewer at the end. Raises ValueError,
        struct.error or pyarrow.ArrowException on what is no such stream.
        """
        while True:
            prefix = read(8)
            if prefix in (b"", END):
                return None
            if prefix[:4] != END[:4]:
                raise ValueError("a message does not begin with ff ff ff ff")
            head = prefix + read(int.from_bytes(prefix[4:], "little"))
            known = self._known.get(head)
            n_bytes = known[2] if known else _body_bytes(head)
            body = read(n_bytes)
            if len(body) < n_bytes:
                raise ValueError("the stream ends within a message")
            if known:
                return Columns(*known[:2], body)
            if self.schema is None:
                self._begin = head + body
                self.schema = pa.ipc.open_stream(self._begin).schema
                continue
            # as a stream of its own: pyarrow checks those, and single messages it does not
            buffer = pa.py_buffer(self._begin + head + body)
            batch = pa.ipc.open_stream(buffer).read_next_batch()
            batch.validate()
            known = batch.num_rows, _places(batch, buffer.slice(buffer.size - len(body))), len(body)
            if len(self._known) < MAX_HEADS:
                self._known[head] = known
            return Columns(*known[:2], body)


def _body_bytes(head: bytes) -> int:
    """Return the length of a message's body, the fourth field of its flatbuffer."""
    table = 8 + struct.unpack_from("<I", head, 8)[0]
    fields = table - struct.unpack_from("<i", head, table)[0]
    size, *_, offset = struct.unpack_from("<6H", head, fields)
    n: int = struct.unpack_from("<q", head, table + offset)[0] if size > 10 and offset else 0
    if n < 0:
        raise ValueError(f"a body of {n} bytes")
    return n


def _places(batch: pa.RecordBatch, body: pa.Buffer) -> dict[str, tuple[np.dtype[Any], int]]:
    """Return type and offset of each column in the body."""
    places = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or column.null_count:
            raise ValueError(f"column {name!r} is of {kind}, or has nulls")
        values = column.buffers()[1]
        offset = values.address - body.address if batch.num_rows else 0
        if not 0 <= offset <= body.size - column.nbytes:  # decompressed
            raise ValueError(f"column {name!r} is compressed")
        places[name] = (np.dtype(kind.to_pandas_dtype()), offset)
    return places


class Heads:
    """Heads of the messages of batches of a schema, by their numbers of rows.

    A body is one column after the other, each filled up to a multiple of 8 bytes.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._known: dict[int, bytes] = {}

    def head(self, n: int) -> bytes:
        """Return the head of a batch of `n` rows."""
        head = self._known.get(n)
        if head is None:
            zeros = [pa.array(np.zeros(n, field.type.to_pandas_dtype())) for field in self._schema]
            message = pa.record_batch(zeros, schema=self._schema).serialize()
            head = message[: 8 + int.from_bytes(message[4:8], "little")].to_pybytes()
            if len(self._known) < MAX_HEADS:
                self._known[n] = head
        return head


def write(heads: Heads, *columns: np.ndarray) -> None:
    """Write a batch to standard output."""
    parts = [heads.head(len(columns[0]))]
    for column in columns:
        parts += column.tobytes(), bytes(-column.nbytes % 8)
    sys.stdout.buffer.write(b"".join(parts))
    sys.stdout.buffer.flush()


def serve(decide: Callable[[Columns], Mapping[int, float]]) -> None:
    """Answer each batch of facts with keys of jobs, until the run is over.

    `decide` takes the facts of an instant and returns keys by job, the smallest first.
    """
    schema = pa.schema({"job": pa.int32(), "key": pa.float64()})
    reader, heads = Reader(), Heads(schema)
    sys.stdout.buffer.write(schema.serialize())
    while (facts := reader.next(sys.stdin.buffer.read)) is not None:
        keys = decide(facts)
        jobs = np.fromiter(keys.keys(), np.int32, len(keys))
        write(heads, jobs, np.fromiter(keys.values(), np.float64, len(keys)))
    sys.stdout.buffer.write(END)
    sys.stdout.buffer.flush()
