from __future__ import annotations

from pathlib import Path

import pytest

from sim import Workload
from sweep.store import converted_workloads

JOBS = [{"submit_s": float(at), "stages": [{"durations_s": [1.0, 2.0 + at]}]} for at in range(3)]


@pytest.fixture
def workload() -> Workload:
    return Workload.from_jobs(JOBS)


def test_what_is_kept_is_found(tmp_path: Path, workload: Workload) -> None:
    folder = converted_workloads.folder_for(tmp_path, "name")
    assert converted_workloads.load(folder, workload.digest) is None
    converted_workloads.store(workload, folder)
    found = converted_workloads.load(folder, workload.digest)
    assert found is not None
    assert found.digest == workload.digest


def test_another_workload_is_not_what_was_asked_for(tmp_path: Path, workload: Workload) -> None:
    converted_workloads.store(workload, tmp_path)
    assert converted_workloads.load(tmp_path, "0" * 64) is None


@pytest.mark.parametrize("name", ["jobs", "stages", "tasks"])
def test_a_damaged_file_is_not_believed(tmp_path: Path, workload: Workload, name: str) -> None:
    converted_workloads.store(workload, tmp_path)
    file = tmp_path / f"{name}.parquet"
    whole = file.read_bytes()
    for at in range(4, len(whole), 97):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        found = converted_workloads.load(tmp_path, workload.digest)
        assert found is None or found.digest == workload.digest
    file.write_bytes(whole[: len(whole) // 2])
    assert converted_workloads.load(tmp_path, workload.digest) is None


def test_no_room_is_no_error(tmp_path: Path, workload: Workload) -> None:
    (tmp_path / "file").touch()
    converted_workloads.store(workload, tmp_path / "file" / "below")
