from __future__ import annotations

from pathlib import Path

import pytest

from sim import Workload
from sweep.store import converted_workloads

JOBS = [
    {"submit_s": float(index), "stages": [{"durations_s": [1.0, 2.0 + index]}]}
    for index in range(3)
]


@pytest.fixture
def workload() -> Workload:
    return Workload.from_jobs(JOBS)


def test_what_is_kept_is_found(tmp_path: Path, workload: Workload) -> None:
    folder = converted_workloads.folder_for(tmp_path, "name")
    assert converted_workloads.load(folder, workload.digest) is None
    converted_workloads.store(workload, folder)
    loaded = converted_workloads.load(folder, workload.digest)
    assert loaded is not None
    assert loaded.digest == workload.digest


def test_another_workload_is_not_what_was_asked_for(tmp_path: Path, workload: Workload) -> None:
    converted_workloads.store(workload, tmp_path)
    assert converted_workloads.load(tmp_path, "0" * 64) is None


@pytest.mark.parametrize("name", ["jobs", "stages", "tasks"])
def test_a_damaged_file_is_not_believed(tmp_path: Path, workload: Workload, name: str) -> None:
    converted_workloads.store(workload, tmp_path)
    file = tmp_path / f"{name}.parquet"
    whole = file.read_bytes()
    for index in range(4, len(whole), 97):
        file.write_bytes(whole[:index] + bytes([whole[index] ^ 255]) + whole[index + 1 :])
        loaded = converted_workloads.load(tmp_path, workload.digest)
        assert loaded is None or loaded.digest == workload.digest
    file.write_bytes(whole[: len(whole) // 2])
    assert converted_workloads.load(tmp_path, workload.digest) is None


def test_no_room_is_no_error(tmp_path: Path, workload: Workload) -> None:
    (tmp_path / "file").touch()
    converted_workloads.store(workload, tmp_path / "file" / "below")
