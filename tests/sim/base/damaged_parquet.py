"""Damaged Parquet files: ``python -m tests.sim.base.damaged_parquet 2000`` reads that many.

It prints the numbers read and refused. An abort of Arrow ends the process, so it is one of its own.
"""

from __future__ import annotations

import io
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.base import parquet
from sim.base.errors import InputError

_END = 8  # bytes of the footer's length and of the mark after it


def _file(columns: dict[str, Any], **options: Any) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content, **options)
    return content.getvalue()


SAMPLES = (
    _file({"submit_s": [5, 7], "run_s": [60.0, None], "cpus": [1, 2], "end_s": [99, 100]}),
    _file({"submit_s": ["2026-03-01 09:30:00"], "run_s": ["0:01:00"], "user": ["ann"]}),
    _file(
        {
            "submit_s": list(range(50)),
            "user": ["ann", "bob"] * 25,
            "depends_on": [["a", "b"], []] * 25,
        },
        row_group_size=20,
    ),
    _file(
        {
            "submit_s": pa.array([1, 2], pa.timestamp("us")),
            "cpus": pa.array([1, 2], pa.uint8()),
            "x": [{"a": 1, "b": [1]}, {"a": 2, "b": []}],
        },
        compression="gzip",
    ),
    _file(
        {
            "run_s": pa.array(["1", "2"] * 30).dictionary_encode(),
            "m": pa.array([[("k", 1)]] * 60, pa.map_(pa.string(), pa.int64())),
        },
        compression="zstd",
    ),
)


def damaged(seed: int) -> bytes:
    """Return a sample with one to four bytes changed, most of them of its footer."""
    rng = random.Random(seed)
    content = bytearray(rng.choice(SAMPLES))
    footer = len(content) - _END - int.from_bytes(content[-_END:-4], "little")
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        position = rng.randrange(footer if rng.random() < 0.7 else 0, len(content))
        way = rng.random()
        if way < 0.4:
            content[position] ^= 1 << rng.randrange(8)
        elif way < 0.8:
            content[position] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif way < 0.9:
            del content[position]
        else:
            content.insert(position, rng.randrange(256))
    if rng.random() < 0.5:  # the length is right again
        content[-_END:-4] = (len(content) - _END - footer).to_bytes(4, "little")
    return bytes(content)


def main(n_files: int) -> None:
    """Read damaged files; print the seed of each, and how many were read and refused."""
    counts = [0, 0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "damaged.parquet"
        for seed in range(n_files):
            print(seed, flush=True)
            file.write_bytes(damaged(seed))
            try:
                parquet.read(file)
                counts[0] += 1
            except (InputError, *parquet.ERRORS):
                counts[1] += 1
    print(*counts)


if __name__ == "__main__":
    main(int(sys.argv[1]))
