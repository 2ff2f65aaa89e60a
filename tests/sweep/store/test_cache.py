from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sweep.store.cache import Cache
from sweep.store.cell import CellResult

KEY = "ab" + "0" * 62
CONFIG = {"policy": {"name": "fifo", "params": {}}, "words": "naïve"}


def result(key: str = KEY) -> CellResult:
    jobs = pa.table(
        {
            "submit_s": [0.0, 1.0],
            "start_s": [0.5, math.nan],
            "finish_s": [0.1 + 0.2, math.nan],
            "failed": [False, True],
        }
    )
    metrics = {"jct_mean_s": 1 / 3, "nothing": math.nan, "endless": math.inf}
    return CellResult(key, metrics, jobs, seconds=3.0)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    Cache(tmp_path).put(result(), CONFIG)
    return Cache(tmp_path)


def test_gives_back_every_bit(cache: Cache) -> None:
    found = cache.get(KEY)
    assert found is not None
    assert repr(found.metrics) == repr(result().metrics)
    assert found.jobs is not None
    expected = result().jobs
    assert expected is not None
    assert found.jobs.column_names == expected.column_names
    for name in expected.column_names:
        ours, theirs = found.jobs[name].to_numpy(), expected[name].to_numpy()
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()
    assert cache.config(KEY) == CONFIG
    assert list(cache.keys_kept()) == [KEY]


def test_the_same_result_is_the_same_file(cache: Cache, tmp_path: Path) -> None:
    Cache(tmp_path / "other").put(result(), CONFIG)
    assert Cache(tmp_path / "other").file(KEY).read_bytes() == cache.file(KEY).read_bytes()


def test_the_file_is_plain_parquet_with_its_checksum_inside(cache: Cache) -> None:
    file = pq.ParquetFile(cache.file(KEY))
    assert file.metadata.num_rows == 2
    assert file.metadata.metadata[b"checksum"].startswith(b"checksum-sha256:")


def test_nothing_there(cache: Cache) -> None:
    assert cache.get("cd" + "0" * 62) is None
    assert cache.config("cd" + "0" * 62) is None


def test_any_flipped_bit_is_noticed(cache: Cache) -> None:
    file = cache.file(KEY)
    content = file.read_bytes()
    for at in np.linspace(0, len(content) - 1, 200).astype(int):
        file.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        assert cache.get(KEY) is None, at
    file.write_bytes(content)
    assert cache.get(KEY) is not None


@pytest.mark.parametrize("n", [0, 1, 100, -1])
def test_a_file_cut_short_is_noticed(cache: Cache, n: int) -> None:
    file = cache.file(KEY)
    file.write_bytes(file.read_bytes()[:n])
    assert cache.get(KEY) is None


def test_another_cells_file_is_noticed(cache: Cache) -> None:
    other = "ab" + "1" * 62
    cache.file(KEY).rename(cache.file(other))
    assert cache.get(other) is None
