"""Limits on memory."""

from __future__ import annotations

import gzip
import resource

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sim.base import memory, parquet
from sim.base.errors import InputError
from sim.base.reading import open_text, read_bytes, text


def test_available_memory_of_this_machine():
    assert 1e6 < memory.available_bytes() < 1e15


def test_a_containers_limit_counts_where_it_is_less(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    whole = memory._machine_bytes()
    (tmp_path / "memory.current").write_text("30000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 500\n")
    (tmp_path / "memory.max").write_text("50000\n")
    assert memory.available_bytes() == 20_500
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_bytes() > whole / 2


def test_where_the_kernel_does_not_tell_all_of_the_machine_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    assert memory._machine_bytes() > 1e6


def test_a_limit_on_the_process_counts_where_it_is_less(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (memory._pages()[0] + 50_000_000, -1))
    assert 1e6 < memory.available_bytes() <= 50_000_000
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, -1))
    assert memory.available_bytes() > 50_000_000


def test_a_file_is_refused_at_the_line_at_which_it_has_taken_a_quarter(tmp_path, monkeypatch):
    taken = iter([0, 100, 2e8, 2.6e8])
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000_000_000)
    monkeypatch.setattr(memory, "_resident_bytes", lambda: next(taken))
    monkeypatch.setattr(text, "_PIECE_BYTES", 4)
    file = tmp_path / "log.gz"
    file.write_bytes(gzip.compress(b"ab\nc" * 10))
    with open_text(file) as stream:
        assert [stream.read(4), stream.read(4)] == [b"ab\nc"] * 2
        with pytest.raises(
            InputError, match=r"takes 0\.3 GB .* 4 copies .* 1\.0 GB were free"
        ) as error:
            stream.read(4)
    assert (error.value.file, error.value.line) == (str(file), 3)


def test_growth_of_less_than_nothing_at_all_is_no_reason_to_refuse(tmp_path, monkeypatch):
    taken = iter([0, memory.NEGLIGIBLE_BYTES])
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    monkeypatch.setattr(memory, "_resident_bytes", lambda: next(taken))
    memory.MemoryGuard(tmp_path).check()


def test_a_text_of_more_values_than_memory_holds_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "log.json"
    file.write_bytes(b"[" + b"[]," * 1_000_000 + b"1]")
    assert len(read_bytes(file)) == 3_000_003
    monkeypatch.setattr(text, "available_bytes", lambda: 100_000_000)
    with pytest.raises(InputError, match=r"3 MB of text would take up to 0\.\d GB"):
        read_bytes(file)
    file.write_bytes(b'"' + b"x" * 3_000_000 + b'"')
    assert len(read_bytes(file)) == 3_000_002


def test_one_text_that_stands_many_times_in_parquet_is_counted_as_often(tmp_path, monkeypatch):
    file = tmp_path / "jobs.parquet"
    coded = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), ["x" * 10_000])
    names = pa.array([f"job {i}" for i in range(1000)])
    table = pa.table({"job_id": names, "user": coded})
    pq.write_table(table, file, store_schema=False)
    monkeypatch.setattr(parquet, "NEGLIGIBLE_BYTES", 0)
    table = parquet.read(file)
    assert table.schema.types == [pa.string(), pa.string()]
    assert table["user"].to_pylist() == ["x" * 10_000] * 1000
    monkeypatch.setattr(parquet, "available_bytes", lambda: 30_000_000)
    with pytest.raises(InputError, match="texts of its column user take about") as error:
        parquet.read(file)
    assert error.value.file == str(file)
