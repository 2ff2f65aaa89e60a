"""Tables whose unread columns are odd: of any type and name, in repeated rows, too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sim

JOBS = {"job_id": ["a", "a"], "submit_s": [1, 1], "run_s": [3, 3], "cpus": [1, 1]}
BYTES = pa.array([b"x" * 16] * 2, pa.binary(16))
ODD = {
    "string view": pa.array(["a", "a"], pa.string_view()),
    "binary view": pa.array([b"\xff", b"\xff"], pa.binary_view()),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), BYTES),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", "{}"])),
    "half": pa.array([1.0, 1.0], pa.float16()),
    "decimal": pa.array([1, 1]).cast(pa.decimal256(40, 2)),
    "list": pa.array([["a"], ["a"]]),
    "null": pa.nulls(2),
}


def n_jobs(folder: Path, names: list[str], columns: list[pa.Array]) -> int:
    file = folder / "log.parquet"
    pq.write_table(pa.Table.from_arrays(columns, names), file)
    return sim.read_trace("table", file).n_jobs


@pytest.mark.parametrize("kind", ODD)
def test_a_repeated_row_is_one_job_whatever_the_types_of_other_columns(
    kind: str, tmp_path: Path
) -> None:
    columns = [*map(pa.array, JOBS.values()), ODD[kind]]
    assert n_jobs(tmp_path, [*JOBS, "other"], columns) == 1


@pytest.mark.parametrize("name", ["row", "", "x", "\ufffd", "0"])
def test_names_of_other_columns_are_free(name: str, tmp_path: Path) -> None:
    columns = [*map(pa.array, JOBS.values()), pa.array([1, 2]), pa.array([1, 1])]
    assert n_jobs(tmp_path, [*JOBS, name, name], columns) == 2
    assert n_jobs(tmp_path, [*JOBS, name, "y"], columns) == 2
    assert n_jobs(tmp_path, [*JOBS, "y", name], [*columns[:4], columns[5], columns[5]]) == 1
    file = tmp_path / "log.csv"
    file.write_text(f"job_id,submit_s,run_s,cpus,{name}\na,1,3,1,x\na,1,3,1,x\na,1,3,1,y\n")
    assert sim.read_trace("table", file).n_jobs == 2


def test_a_file_s_own_name_hides_no_column_that_is_read(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("job_id,submit_s,run_s,cpus,sent\na,7,3,1,1\na,7,3,1,2\na,7,3,1,2\n")
    jobs = sim.read_trace("table", file, columns={"submit_s": "sent"}).jobs
    assert jobs["submit_s"].to_pylist() == [0.0, 1.0]


def test_a_column_s_name_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table({**JOBS, "user": ["u", "u"]}), file, store_schema=False)
    file.write_bytes(file.read_bytes().replace(b"user", b"us\xffr"))
    for on_bad_row in ("error", "skip"):
        with pytest.raises(sim.InputError, match="not a readable Parquet file") as caught:
            sim.read_trace("table", file, on_bad_row=on_bad_row)
        assert caught.value.file == str(file)
