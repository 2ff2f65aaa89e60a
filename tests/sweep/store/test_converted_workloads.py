from __future__ import annotations

from pathlib import Path

import pytest

from sim import Workload
from sweep.store import converted_workloads

JOBS = [{"submit_s": float(i), "stages": [{"durations_s": [1.0, 2.0 + i]}]} for i in range(3)]


@pytest.fixture
def workload() -> Workload:
    return Workload.from_jobs(JOBS)


def test_a_stored_workload_is_loaded(tmp_path: Path, workload: Workload) -> None:
    folder = converted_workloads.folder_for(tmp_path, "name")
    assert converted_workloads.load(folder, workload.digest) is None
    converted_workloads.store(workload, folder)
    loaded = converted_workloads.load(folder, workload.digest)
    assert loaded is not None
    assert loaded.digest == workload.digest


def test_another_digest_is_not_loaded(tmp_path: Path, workload: Workload) -> None:
    converted_workloads.store(workload, tmp_path)
    assert converted_workloads.load(tmp_path, "0" * 64) is None


@pytest.mark.parametrize("name", ["jobs", "stages", "tasks"])
def test_a_damaged_file_is_not_loaded(tmp_path: Path, workload: Workload, name: str) -> None:
    converted_workloads.store(workload, tmp_path)
    file = tmp_path / f"{name}.parquet"
    original = file.read_bytes()
    for position in range(4, len(original), 97):
        file.write_bytes(
            original[:position] + bytes([original[position] ^ 255]) + original[position + 1 :]
        )
        loaded = converted_workloads.load(tmp_path, workload.digest)
        assert loaded is None or loaded.digest == workload.digest
    file.write_bytes(original[: len(original) // 2])
    assert converted_workloads.load(tmp_path, workload.digest) is None


def test_a_folder_that_can_not_be_written_raises_no_error(
    tmp_path: Path, workload: Workload
) -> None:
    (tmp_path / "file").touch()
    converted_workloads.store(workload, tmp_path / "file" / "below")
