from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sweep.store import cache as cache_module
from sweep.store import shard_writer
from sweep.store.cache import ORPHAN_AGE_S, Cache
from sweep.store.cell import CellResult
from sweep.store.storage import FolderStorage
from tests.sweep.small import cached_keys, every_file, keys_kept

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


def test_results_round_trip_bit_for_bit(cache: Cache) -> None:
    stored = cache.get(KEY)
    assert stored is not None
    assert repr(stored.metrics) == repr(result().metrics)
    assert stored.jobs is not None
    expected = result().jobs
    assert expected is not None
    assert stored.jobs.column_names == expected.column_names
    for name in expected.column_names:
        actual_column, expected_column = stored.jobs[name].to_numpy(), expected[name].to_numpy()
        assert actual_column.dtype == expected_column.dtype
        assert actual_column.tobytes() == expected_column.tobytes()
    assert cache.config(KEY) == CONFIG
    assert keys_kept(root_folder(cache)) == [KEY]


def test_equal_results_give_equal_file_names(cache: Cache, tmp_path: Path) -> None:
    Cache(tmp_path / "other").put(result(), CONFIG)
    assert every_file(tmp_path / "other" / "cache").keys() == every_file(tmp_path / "cache").keys()


def test_a_shard_is_plain_parquet_named_by_its_digest(cache: Cache) -> None:
    (file,) = shard_files(cache)
    table = pq.ParquetFile(file).read()
    assert table["key"].to_pylist() == [bytes.fromhex(KEY)]
    assert json.loads(table["config"][0].as_py()) == CONFIG
    assert hashlib.sha256(file.read_bytes()).hexdigest() == file.stem


def test_an_unknown_key_gives_none(cache: Cache) -> None:
    assert cache.get("cd" + "0" * 62) is None
    assert cache.config("cd" + "0" * 62) is None


def reopen(cache: Cache) -> Cache:
    return Cache(root_folder(cache))


def root_folder(cache: Cache) -> Path:
    assert isinstance(cache.storage, FolderStorage)
    return cache.storage.root


def shard_files(cache: Cache) -> list[Path]:
    return sorted((root_folder(cache) / "cache" / "shards").iterdir())


@pytest.mark.parametrize("part", ["shards", "manifests"])
def test_any_flipped_bit_is_detected(cache: Cache, part: str) -> None:
    (file,) = (root_folder(cache) / "cache" / part).iterdir()
    content = file.read_bytes()
    for position in np.linspace(0, len(content) - 1, 40).astype(int):
        file.write_bytes(
            content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :]
        )
        assert reopen(cache).get(KEY) is None, position
        assert reopen(cache).metrics(KEY) is None, position
        assert cached_keys(reopen(cache), [KEY]) == [], position
    file.write_bytes(content)
    assert reopen(cache).get(KEY) is not None


@pytest.mark.parametrize("n", [0, 1, 100, -1])
def test_a_truncated_file_is_detected(cache: Cache, n: int) -> None:
    (file,) = shard_files(cache)
    file.write_bytes(file.read_bytes()[:n])
    assert reopen(cache).get(KEY) is None
    assert cached_keys(reopen(cache), [KEY]) == []


def keys(n: int) -> list[str]:
    return [hashlib.sha256(str(i).encode()).hexdigest() for i in range(n)]


def test_a_lost_shard_loses_only_its_own_cells(tmp_path: Path) -> None:
    cache, all_keys = Cache(tmp_path), keys(900)
    for i in (0, 300, 600):
        cache.put_many([(result(key), CONFIG) for key in all_keys[i : i + 300]])
    assert len(shard_files(cache)) == 3
    for opened in (cache, reopen(cache)):
        assert cached_keys(opened, all_keys) == all_keys
        assert opened.get(all_keys[777]) is not None
        assert repr(opened.metrics(all_keys[299])) == repr(result().metrics)
    index = {key: i for i, key in enumerate(all_keys)}
    shard_files(cache)[0].unlink()
    remaining = cached_keys(reopen(cache), all_keys)
    assert len(remaining) == 600
    lost = [key for key in all_keys if key not in remaining]
    assert {index[key] // 300 for key in lost} == {index[lost[0]] // 300}
    assert reopen(cache).get(lost[0]) is None
    cache = reopen(cache)
    cache.put_many([(result(key), CONFIG) for key in lost])
    assert cached_keys(reopen(cache), all_keys) == all_keys


def test_a_cell_that_can_not_be_stored_leaves_the_others(tmp_path: Path) -> None:
    cache, (invalid, valid) = Cache(tmp_path), keys(2)
    errors = cache.put_many([(result(invalid), {"what": object()}), (result(valid), CONFIG)])
    assert [*errors] == [invalid]
    assert cached_keys(Cache(tmp_path), [invalid, valid]) == [valid]


def test_compaction_reads_a_bounded_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, all_keys = Cache(tmp_path), keys(40)
    for key in all_keys:
        cache.put(result(key), CONFIG)
    n_bytes = sum((tmp_path / name).stat().st_size for name in shard_files(cache)) // 40
    monkeypatch.setattr(cache_module, "MAX_BYTES", 10 * n_bytes)
    assert cache.compact() == 40
    assert 4 <= len(shard_files(cache)) <= 5
    assert cached_keys(Cache(tmp_path), all_keys) == all_keys


def test_small_shards_are_compacted(tmp_path: Path) -> None:
    cache, all_keys = Cache(tmp_path), keys(40)
    for key in all_keys:
        cache.put(result(key), CONFIG)
    reader, planner = Cache(tmp_path), Cache(tmp_path)
    assert reader.get(all_keys[0]) is not None
    assert cached_keys(planner, all_keys) == all_keys
    assert cache.compact() == 40
    assert len(shard_files(cache)) == 1
    assert cache.compact() == 0
    for opened in (cache, Cache(tmp_path), reader):  # a reader of the old shards lists anew
        assert opened.get(all_keys[7]) is not None
        assert opened.config(all_keys[7]) == CONFIG
        assert cached_keys(opened, all_keys) == all_keys
    requested = np.array([bytes.fromhex(key) for key in all_keys], "S32")
    assert planner.columns(requested)["jct_mean_s"].tolist() == [1 / 3] * 40


def test_orphaned_shards_are_deleted_once_they_are_old(tmp_path: Path) -> None:
    cache, (stored, interrupted) = Cache(tmp_path), keys(2)
    cache.put(result(stored), CONFIG)
    cache.storage = KilledWriterStorage(tmp_path, 1)  # between the shard and its manifest
    with pytest.raises(KilledError):
        cache.put(result(interrupted), CONFIG)
    reopened = Cache(tmp_path)
    assert len(shard_files(reopened)) == 2
    assert reopened.delete_orphans() == 0  # its writer may still be at work
    for shard in shard_files(reopened):
        os.utime(shard, (shard.stat().st_mtime - ORPHAN_AGE_S - 9,) * 2)
    (manifest,) = (tmp_path / "cache" / "manifests").iterdir()
    content = manifest.read_bytes()
    manifest.write_bytes(b"")
    assert Cache(tmp_path).delete_orphans() == 0  # the unreadable manifest may name the shard
    manifest.write_bytes(content)
    assert reopened.delete_orphans() == 1
    assert len(shard_files(reopened)) == 1
    assert Cache(tmp_path).get(stored) is not None
    assert reopened.delete_orphans() == 0


class KilledError(BaseException):
    pass


def test_a_kill_at_any_step_of_writing_leaves_the_store_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MIN_COMPACT_SHARDS", 4)
    all_keys = keys(6)
    for step in itertools.count():
        folder = tmp_path / str(step)
        cache = Cache(folder)
        for key in all_keys[:5]:
            cache.put(result(key), CONFIG)
        cache.storage = KilledWriterStorage(folder, step)
        was_killed = False
        try:
            cache.put(result(all_keys[5]), CONFIG)
            cache.compact()
        except KilledError:
            was_killed = True
        after = Cache(folder)
        assert cached_keys(after, all_keys[:5]) == all_keys[:5]
        assert all(after.get(key) is not None for key in cached_keys(after, all_keys))
        if not was_killed:
            break
        after.put(result(all_keys[5]), CONFIG)
        after.compact()
        assert cached_keys(Cache(folder), all_keys) == all_keys
    assert step == 16  # two files put, two compacted; six shards and six manifests deleted


class KilledWriterStorage(FolderStorage):
    """Folder storage whose writer is killed after `steps` writes and deletions."""

    def __init__(self, root: Path, steps: int) -> None:
        super().__init__(root)
        self.steps = steps

    def _step(self) -> None:
        if not self.steps:
            raise KilledError
        self.steps -= 1

    def put(self, name: str, content: bytes) -> None:
        self._step()
        super().put(name, content)

    def delete(self, name: str) -> None:
        self._step()
        super().delete(name)


def test_shards_of_one_commit_share_a_manifest_and_are_lost_one_by_one(
    tmp_path: Path,
) -> None:
    all_keys = keys(90)
    cache = Cache(tmp_path)
    batches = [all_keys[start : start + 30] for start in (0, 30, 60)]
    written = [
        shard
        for batch in batches
        for shard in shard_writer.write(
            shard_writer.to_rows((result(k), CONFIG) for k in batch)[0], cache.storage
        )
    ]
    cache.commit(written)
    assert len([*(tmp_path / "cache" / "manifests").iterdir()]) == 1
    for opened in (cache, Cache(tmp_path)):
        assert cached_keys(opened, all_keys) == all_keys
        assert repr(opened.metrics(all_keys[45])) == repr(result().metrics)
        assert opened.get(all_keys[75]) is not None
    (tmp_path / "cache" / "shards" / f"{written[1].name}.parquet").write_bytes(b"")
    assert cached_keys(Cache(tmp_path), all_keys) == batches[0] + batches[2]
    reopened = Cache(tmp_path)
    assert reopened.get(all_keys[45]) is None
    reopened.put_many([(result(key), CONFIG) for key in batches[1]])
    assert cached_keys(Cache(tmp_path), all_keys) == cached_keys(reopened, all_keys) == all_keys


def test_compaction_stops_at_its_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_keys = keys(40)
    for key in all_keys:
        Cache(tmp_path).put(result(key), CONFIG)
    monkeypatch.setattr(cache_module, "MAX_COMPACT_S", 0.0)
    assert Cache(tmp_path).compact() == 0
    monkeypatch.setattr(cache_module, "MAX_COMPACT_S", 60.0)
    monkeypatch.setattr(cache_module, "MAX_CELLS", 10)
    assert Cache(tmp_path).compact() == 40
    assert len(shard_files(Cache(tmp_path))) == 4
    assert cached_keys(Cache(tmp_path), all_keys) == all_keys
