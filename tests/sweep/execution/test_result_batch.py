"""Parts of tasks: kept from where they were computed, or handed over if that can't be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sweep.execution.result_batch import ResultBatch, pack
from sweep.store import shard_writer
from sweep.store.cache import Cache
from sweep.store.cell import CellError, CellResult
from sweep.store.storage import FolderStorage
from tests.sweep.small import cached_keys

ERROR: CellError = {"stage": "policy", "type": "E", "message": "m", "traceback": ""}
A, B, C = (digit * 64 for digit in "abc")


def done(key: str, **result: Any) -> tuple[CellResult, dict[str, Any]]:
    fields = {"metrics": {"jct_mean_s": 1.5}, "jobs": pa.table({"submit_s": [1.0, 2.0]})}
    return CellResult(key, **(fields | result)), {"seed": 3, "workload": "recipe"}


DONE = [
    done(A),
    done(B, metrics={}, jobs=None, error=ERROR),
    done(C, metrics={"jct_mean_s": 2.5}, jobs=pa.table({})),
]


def packed(root: Path, mark: str, cells: Any = DONE) -> ResultBatch:
    return pack(cells, shard_writer.reachable(str(root), mark))


@pytest.mark.parametrize("is_reached", [True, False])
def test_a_shard_is_put_from_here_or_handed_over_and_counts_with_its_manifest(
    tmp_path: Path, *, is_reached: bool
) -> None:
    mark = shard_writer.read_marker(FolderStorage(tmp_path))
    part = packed(tmp_path, mark if is_reached else "of another folder of this name")
    assert [(result.key, result.error) for result in part.results] == [
        (A, None),
        (B, ERROR),
        (C, None),
    ]
    assert all(result.jobs is None and not result.metrics for result in part.results)
    (written,) = part.shards
    assert (written.content is None) == is_reached
    assert (tmp_path / "cache" / "shards" / f"{written.name}.parquet").exists() == is_reached
    assert cached_keys(Cache(tmp_path), [A, B, C]) == []
    Cache(tmp_path).commit(part.shards)
    opened_cache = Cache(tmp_path)
    assert cached_keys(opened_cache, [A, B, C]) == [A, C]
    assert opened_cache.metrics(A) == {"jct_mean_s": 1.5}
    assert opened_cache.get(C).jobs.num_columns == 0  # type: ignore[union-attr]
    assert opened_cache.config(A) == {"seed": 3, "workload": "recipe"}


def test_what_can_not_be_put_is_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    mark = shard_writer.read_marker(FolderStorage(tmp_path))
    monkeypatch.setattr(FolderStorage, "put", full)
    (written,) = packed(tmp_path, mark).shards
    monkeypatch.undo()
    Cache(tmp_path).commit([written])
    assert cached_keys(Cache(tmp_path), [A, C]) == [A, C]


def test_a_table_that_no_file_can_hold_is_its_cells_error(tmp_path: Path) -> None:
    result, _ = done(B)
    part = packed(tmp_path, "", [DONE[0], (result, {"what": object()})])
    Cache(tmp_path).commit(part.shards)
    assert cached_keys(Cache(tmp_path), [A, B]) == [A]
    error = part.results[1].error
    assert error is not None
    assert (error["stage"], error["type"]) == ("keep", "TypeError")


def test_of_none_that_is_done_nothing_is_kept(tmp_path: Path) -> None:
    assert packed(tmp_path, "", [DONE[1]]).shards == []
    assert Cache(tmp_path).commit([]) == []


def test_a_place_is_marked_once(tmp_path: Path) -> None:
    assert (
        shard_writer.read_marker(FolderStorage(tmp_path))
        == shard_writer.read_marker(FolderStorage(tmp_path))
        != ""
    )
    assert shard_writer.reachable(str(tmp_path / "elsewhere"), "") is None
