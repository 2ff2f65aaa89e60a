"""Parquet files of strangers: sizes from the footer, and damage that ends in an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sim.base import parquet
from sim.base.parquet_footer import column_chunks
from tests.sim.base.damaged_parquet import SAMPLES

DICTIONARY = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}


@pytest.mark.parametrize("sample", SAMPLES)
def test_chunks_are_those_of_arrow(sample: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(sample)
    metadata = pq.ParquetFile(file).metadata
    assert [
        [(chunk.n_values, chunk.n_bytes, chunk.by_dictionary) for chunk in group]
        for group in column_chunks(file)
    ] == [
        [
            (column.num_values, column.total_uncompressed_size, bool(DICTIONARY & {*encodings}))
            for column in map(metadata.row_group(group).column, range(metadata.num_columns))
            for encodings in [column.encodings]
        ]
        for group in range(metadata.num_row_groups)
    ]


def test_a_footer_of_many_chunks_takes_little_time(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({str(i): np.arange(100) for i in range(100)}), file, row_group_size=5)
    assert [len(group) for group in column_chunks(file)] == [100] * 20


@pytest.mark.slow
def test_no_damage_of_a_footer_ends_the_process() -> None:
    # in a process of its own: pyarrow's row_group().column() aborts it on some of these
    words = [sys.executable, "-m", "tests.sim.base.damaged_parquet", "2000"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"after {done.stdout[-200:]}: {done.stderr[-500:]}"
    n_read, n_refused = map(int, done.stdout.split()[-2:])
    assert n_read > 100
    assert n_refused > 1000


def test_a_name_that_is_no_utf8_is_an_error_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"user": [1]}), file, store_schema=False)
    file.write_bytes(file.read_bytes().replace(b"user", b"us\xffr"))
    with pytest.raises(parquet.ERRORS):
        parquet.read(file)


@pytest.mark.parametrize("n_bytes", [0, 4, 11, 12, 100, -1, -5, -9, -100])
def test_a_part_of_a_file_is_an_error(n_bytes: int, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(SAMPLES[0][:n_bytes])
    with pytest.raises(pa.ArrowInvalid):
        column_chunks(file)
