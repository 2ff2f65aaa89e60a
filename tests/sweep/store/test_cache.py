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
from tests.sweep.small import every_file, keys_kept

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
    cached = cache.get(KEY)
    assert cached is not None
    assert repr(cached.metrics) == repr(result().metrics)
    assert cached.jobs is not None
    expected = result().jobs
    assert expected is not None
    assert cached.jobs.column_names == expected.column_names
    for name in expected.column_names:
        ours, theirs = cached.jobs[name].to_numpy(), expected[name].to_numpy()
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()
    assert cache.config(KEY) == CONFIG
    assert keys_kept(folder_of(cache)) == [KEY]


def test_the_same_results_are_the_same_files(cache: Cache, tmp_path: Path) -> None:
    Cache(tmp_path / "other").put(result(), CONFIG)
    assert every_file(tmp_path / "other" / "cache").keys() == every_file(tmp_path / "cache").keys()


def test_a_shard_is_plain_parquet_and_has_its_digest_for_a_name(cache: Cache) -> None:
    (file,) = shards_of(cache)
    table = pq.ParquetFile(file).read()
    assert table["key"].to_pylist() == [bytes.fromhex(KEY)]
    assert json.loads(table["config"][0].as_py()) == CONFIG
    assert hashlib.sha256(file.read_bytes()).hexdigest() == file.stem


def test_nothing_there(cache: Cache) -> None:
    assert cache.get("cd" + "0" * 62) is None
    assert cache.config("cd" + "0" * 62) is None


def reopened(cache: Cache) -> Cache:
    return Cache(folder_of(cache))


def folder_of(cache: Cache) -> Path:
    assert isinstance(cache.storage, FolderStorage)
    return cache.storage.root


def shards_of(cache: Cache) -> list[Path]:
    return sorted((folder_of(cache) / "cache" / "shards").iterdir())


@pytest.mark.parametrize("part", ["shards", "manifests"])
def test_any_flipped_bit_is_noticed(cache: Cache, part: str) -> None:
    (file,) = (folder_of(cache) / "cache" / part).iterdir()
    content = file.read_bytes()
    for index in np.linspace(0, len(content) - 1, 40).astype(int):
        file.write_bytes(content[:index] + bytes([content[index] ^ 4]) + content[index + 1 :])
        assert reopened(cache).get(KEY) is None, index
        assert reopened(cache).metrics(KEY) is None, index
        assert reopened(cache).cached_keys([KEY]) == [], index
    file.write_bytes(content)
    assert reopened(cache).get(KEY) is not None


@pytest.mark.parametrize("n", [0, 1, 100, -1])
def test_a_file_cut_short_is_noticed(cache: Cache, n: int) -> None:
    (file,) = shards_of(cache)
    file.write_bytes(file.read_bytes()[:n])
    assert reopened(cache).get(KEY) is None
    assert reopened(cache).cached_keys([KEY]) == []


def keys(n: int) -> list[str]:
    return [hashlib.sha256(str(index).encode()).hexdigest() for index in range(n)]


def test_many_cells_make_a_shard_and_one_that_is_lost_costs_its_cells_alone(tmp_path: Path) -> None:
    cache, all_keys = Cache(tmp_path), keys(900)
    for index in (0, 300, 600):
        cache.put_many([(result(key), CONFIG) for key in all_keys[index : index + 300]])
    assert len(shards_of(cache)) == 3
    for cached in (cache, reopened(cache)):
        assert cached.cached_keys(all_keys) == all_keys
        assert cached.get(all_keys[777]) is not None
        assert repr(cached.metrics(all_keys[299])) == repr(result().metrics)
    where = {key: index for index, key in enumerate(all_keys)}
    shards_of(cache)[0].unlink()
    left = reopened(cache).cached_keys(all_keys)
    assert len(left) == 600
    lost = [key for key in all_keys if key not in left]
    assert {where[key] // 300 for key in lost} == {where[lost[0]] // 300}
    assert reopened(cache).get(lost[0]) is None
    cache = reopened(cache)
    cache.put_many([(result(key), CONFIG) for key in lost])
    assert reopened(cache).cached_keys(all_keys) == all_keys


def test_a_table_that_no_file_can_hold_takes_no_other_with_it(tmp_path: Path) -> None:
    cache, (first, other) = Cache(tmp_path), keys(2)
    errors = cache.put_many([(result(first), {"what": object()}), (result(other), CONFIG)])
    assert [*errors] == [first]
    assert Cache(tmp_path).cached_keys([first, other]) == [other]


def test_of_small_shards_few_bytes_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, all_keys = Cache(tmp_path), keys(40)
    for key in all_keys:
        cache.put(result(key), CONFIG)
    n_bytes = sum((tmp_path / name).stat().st_size for name in shards_of(cache)) // 40
    monkeypatch.setattr(cache_module, "MAX_BYTES", 10 * n_bytes)
    assert cache.compact() == 40
    assert 4 <= len(shards_of(cache)) <= 5
    assert Cache(tmp_path).cached_keys(all_keys) == all_keys


def test_small_shards_are_put_together(tmp_path: Path) -> None:
    cache, all_keys = Cache(tmp_path), keys(40)
    for key in all_keys:
        cache.put(result(key), CONFIG)
    reader, planner = Cache(tmp_path), Cache(tmp_path)
    assert reader.get(all_keys[0]) is not None
    assert planner.cached_keys(all_keys) == all_keys
    assert cache.compact() == 40
    assert len(shards_of(cache)) == 1
    assert cache.compact() == 0
    for cached in (cache, Cache(tmp_path), reader):  # a reader that knew the old ones looks again
        assert cached.get(all_keys[7]) is not None
        assert cached.config(all_keys[7]) == CONFIG
        assert cached.cached_keys(all_keys) == all_keys
    expected = np.array([bytes.fromhex(key) for key in all_keys], "S32")
    assert planner.columns(expected)["jct_mean_s"].tolist() == [1 / 3] * 40


def test_shards_of_no_manifest_go_once_nobody_is_at_them(tmp_path: Path) -> None:
    cache, (first, other) = Cache(tmp_path), keys(2)
    cache.put(result(first), CONFIG)
    cache.storage = Dies(tmp_path, 1)  # between the shard and its manifest
    with pytest.raises(KilledError):
        cache.put(result(other), CONFIG)
    left = Cache(tmp_path)
    assert len(shards_of(left)) == 2
    assert left.delete_orphans() == 0  # its writer may still be at it
    for shard in shards_of(left):
        os.utime(shard, (shard.stat().st_mtime - ORPHAN_AGE_S - 9,) * 2)
    (manifest,) = (tmp_path / "cache" / "manifests").iterdir()
    content = manifest.read_bytes()
    manifest.write_bytes(b"")
    assert Cache(tmp_path).delete_orphans() == 0  # one that can't be read may name it
    manifest.write_bytes(content)
    assert left.delete_orphans() == 1
    assert len(shards_of(left)) == 1
    assert Cache(tmp_path).get(first) is not None
    assert left.delete_orphans() == 0


class KilledError(BaseException):
    pass


def test_a_kill_at_any_step_of_writing_leaves_a_store_that_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MIN_COMPACT_SHARDS", 4)
    all_keys = keys(6)
    for step in itertools.count():
        folder = tmp_path / str(step)
        cache = Cache(folder)
        for key in all_keys[:5]:
            cache.put(result(key), CONFIG)
        cache.storage = Dies(folder, step)
        died = False
        try:
            cache.put(result(all_keys[5]), CONFIG)
            cache.compact()
        except KilledError:
            died = True
        after = Cache(folder)
        assert after.cached_keys(all_keys[:5]) == all_keys[:5]
        assert all(after.get(key) is not None for key in after.cached_keys(all_keys))
        if not died:
            break
        after.put(result(all_keys[5]), CONFIG)
        after.compact()
        assert Cache(folder).cached_keys(all_keys) == all_keys
    assert step == 16  # two writes, two more, and a file a shard and a manifest deleted


class Dies(FolderStorage):
    """A folder whose writer is killed before so many steps."""

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


def test_shards_that_came_together_have_one_manifest_and_are_lost_one_by_one(
    tmp_path: Path,
) -> None:
    all_keys = keys(90)
    cache = Cache(tmp_path)
    parts = [all_keys[index : index + 30] for index in (0, 30, 60)]
    written = [
        first
        for part in parts
        for first in shard_writer.write(
            shard_writer.to_rows((result(k), CONFIG) for k in part)[0], cache.storage
        )
    ]
    cache.commit(written)
    assert len([*(tmp_path / "cache" / "manifests").iterdir()]) == 1
    for cached in (cache, Cache(tmp_path)):
        assert cached.cached_keys(all_keys) == all_keys
        assert repr(cached.metrics(all_keys[45])) == repr(result().metrics)
        assert cached.get(all_keys[75]) is not None
    (tmp_path / "cache" / "shards" / f"{written[1].name}.parquet").write_bytes(b"")
    assert Cache(tmp_path).cached_keys(all_keys) == parts[0] + parts[2]
    again = Cache(tmp_path)
    assert again.get(all_keys[45]) is None
    again.put_many([(result(key), CONFIG) for key in parts[1]])
    assert Cache(tmp_path).cached_keys(all_keys) == again.cached_keys(all_keys) == all_keys


def test_many_small_ones_are_put_together_until_its_time_is_up(
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
    assert len(shards_of(Cache(tmp_path))) == 4
    assert Cache(tmp_path).cached_keys(all_keys) == all_keys
