"""Workloads on disk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import sim
from sim.base import parquet
from sim.workload import folder as store
from tests.examples import examples
from tests.sim.workload.tables import build, expanded, table_workloads

TABLES = ("jobs", "stages", "tasks", "stage_edges", "job_edges", "downloads")


def _bytes(folder):
    return {name: (folder / f"{name}.parquet").read_bytes() for name in TABLES}


@given(table_workloads())
@settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_written_workload_is_read_back(tmp_path, w):
    w.write(tmp_path / "w")
    back = sim.Workload.read(tmp_path / "w")
    assert back.digest == w.digest
    assert dict(back.meta) == dict(w.meta)
    for name in TABLES:
        assert getattr(back, name).equals(getattr(w, name))
    first = _bytes(tmp_path / "w")
    expanded(back).write(tmp_path / "w")
    assert _bytes(tmp_path / "w") == first


def test_many_pieces_of_tasks_are_the_same_bytes_expanded_or_not(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_ROWS", 7)
    rng = np.random.default_rng(0)
    n_tasks = rng.integers(1, 20, 30)
    w = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": [0] * 30, "n_tasks": n_tasks, "duration_s": rng.random(30).round(1)},
    )
    w.write(tmp_path / "lazy")
    assert "tasks" not in w.__dict__
    expanded(w).write(tmp_path / "expanded")
    assert _bytes(tmp_path / "lazy") == _bytes(tmp_path / "expanded")
    back = sim.Workload.read(tmp_path / "expanded")
    assert back.stage_duration_s is not None
    assert back.digest == w.digest


def test_tasks_of_different_length_are_read_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_ROWS", 2)
    for durations in ([3.0, 3.0, 5.0, 1.0, 2.0, 0.0], [3.0, 4.0, 5.0, 1.0, 1.0, 0.0]):
        w = build(tasks={"duration_s": durations})
        w.write(tmp_path / "w")
        back = sim.Workload.read(tmp_path / "w")
        assert back.stage_duration_s is None
        assert back.columns.task_duration.tolist() == durations


def test_the_folder_follows_the_contract(tmp_path):
    build().write(tmp_path / "new" / "w")
    result = sorted(p.name for p in (tmp_path / "new" / "w").iterdir())
    assert result == sorted(f"{name}.parquet" for name in TABLES)
    tasks = pq.read_table(tmp_path / "new" / "w" / "tasks.parquet")
    assert tasks.to_pydict() == {
        "stage": [0, 0, 1, 2, 2, 3],
        "duration_s": [3.0, 4.0, 5.0, 1.0, 1.0, 0.0],
    }
    jobs = pq.read_schema(tmp_path / "new" / "w" / "jobs.parquet")
    assert jobs.field("queue").type == pa.dictionary(pa.int32(), pa.string())


def test_files_that_another_program_wrote_are_read(tmp_path):
    w = build()
    for name in TABLES:
        frame = getattr(w, name).to_pandas()
        for column in frame.select_dtypes("category"):
            frame[column] = frame[column].astype(object)
        frame.to_parquet(tmp_path / f"{name}.parquet", index=False)
    assert sim.Workload.read(tmp_path).digest == w.digest


def test_other_files_stay_and_old_ones_are_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    build().write(tmp_path)
    other = build(jobs={"job_id": ["x", "y", "z"]})
    other.write(tmp_path)
    assert sim.Workload.read(tmp_path).digest == other.digest
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".tmp-")]


def test_a_failed_write_leaves_the_old_files(tmp_path, monkeypatch):
    build().write(tmp_path)
    before = _bytes(tmp_path)
    write_file = store._write_file

    def fail_on_downloads(file, pieces, extra):
        pieces = list(pieces)
        if "time_s" in pieces[0].column_names:
            raise OSError("disk full")
        write_file(file, iter(pieces), extra)

    monkeypatch.setattr(store, "_write_file", fail_on_downloads)
    with pytest.raises(OSError, match="disk full"):
        build(jobs={"job_id": ["x", "y", "z"]}).write(tmp_path)
    assert _bytes(tmp_path) == before
    assert len(list(tmp_path.iterdir())) == len(TABLES)


def test_files_of_two_writes_are_noticed(tmp_path):
    build().write(tmp_path / "a")
    build(tasks={"duration_s": [9.0] * 6}).write(tmp_path / "b")
    (tmp_path / "b" / "tasks.parquet").replace(tmp_path / "a" / "tasks.parquet")
    with pytest.raises(sim.InputError, match="not written together") as caught:
        sim.Workload.read(tmp_path / "a")
    assert caught.value.rule == "mixed files"
    assert caught.value.file == str(tmp_path / "a" / "tasks.parquet")


def test_a_missing_folder_or_file_is_named(tmp_path):
    with pytest.raises(sim.InputError, match="does not exist") as caught:
        sim.Workload.read(tmp_path / "nowhere")
    assert caught.value.rule == "missing folder"
    build().write(tmp_path)
    (tmp_path / "stage_edges.parquet").unlink()
    with pytest.raises(sim.InputError, match="missing") as caught:
        sim.Workload.read(tmp_path)
    assert caught.value.file == str(tmp_path / "stage_edges.parquet")
    assert caught.value.rule == "missing file"
    with pytest.raises(sim.InputError, match="not a folder"):
        sim.Workload.read(tmp_path / "jobs.parquet")


@pytest.mark.parametrize("name", TABLES)
def test_a_file_that_is_no_parquet_is_named(tmp_path, name):
    build().write(tmp_path)
    path = tmp_path / f"{name}.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(sim.InputError, match="not a readable Parquet file") as caught:
        sim.Workload.read(tmp_path)
    assert caught.value.file == str(path)
    assert caught.value.rule == "not Parquet"


def _rewrite(folder, name, change):
    path = folder / f"{name}.parquet"
    pq.write_table(change(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("jobs", lambda t: t.drop_columns(["submit_s"]), "missing column"),
        ("stages", lambda t: t.set_column(2, "n_tasks", [["a", "b", "c", "d"]]), "wrong type"),
        ("tasks", lambda t: t.slice(1), "n_tasks mismatch"),
        ("tasks", lambda t: t.slice(0, 0), "n_tasks mismatch"),
        ("tasks", lambda t: t.set_column(0, "stage", [[0, 0, 1, 2, 2, 9]]), "row out of range"),
        ("stage_edges", lambda t: t.set_column(1, "child", [[7]]), "row out of range"),
        ("downloads", lambda t: t.set_column(1, "time_s", [[-1.0, 2.0]]), "negative number"),
    ],
)
def test_a_broken_rule_names_the_file(tmp_path, name, change, rule):
    build().write(tmp_path)
    _rewrite(tmp_path, name, change)
    with pytest.raises(sim.InputError) as caught:
        sim.Workload.read(tmp_path)
    assert caught.value.rule == rule
    wrong = "stages" if rule == "n_tasks mismatch" else name
    assert caught.value.file == str(tmp_path / f"{wrong}.parquet")


def test_a_table_that_memory_can_not_hold_is_refused_before_it_is_read(tmp_path, monkeypatch):
    """A few bytes of Parquet can encode any number of rows."""
    n = 3_000_000
    sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": [0], "n_tasks": [n], "duration_s": [1.5]},
    ).write(tmp_path)
    path = tmp_path / "tasks.parquet"
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(parquet, "available_bytes", lambda: 100_000_000)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("reads"))
    with pytest.raises(sim.InputError, match="3,000,000 rows, which take about") as e:
        sim.Workload.read(tmp_path)
    assert (e.value.file, e.value.rule) == (str(path), "too large")


def test_a_long_table_of_tasks_that_no_stage_asks_for_is_refused_unread(tmp_path, monkeypatch):
    build().write(tmp_path)
    many = {"stage": np.zeros(2_000_000, np.int32), "duration_s": np.ones(2_000_000)}
    pq.write_table(pa.table(many), tmp_path / "tasks.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("reads"))
    with pytest.raises(sim.InputError, match=r"2,000,000 rows, but n_tasks .* adds up to 6") as e:
        sim.Workload.read(tmp_path)
    assert e.value.rule == "n_tasks mismatch"


def test_strings_and_categories_count_too(tmp_path, monkeypatch):
    build().write(tmp_path)
    monkeypatch.setattr(parquet, "available_bytes", lambda: 100)
    with pytest.raises(sim.InputError, match=r"jobs\.parquet: it has 3 rows"):
        sim.Workload.read(tmp_path)


def test_meta_that_json_can_not_hold_is_refused(tmp_path):
    tables = {name: getattr(build(), name) for name in TABLES}
    w = sim.Workload.from_tables(**tables, meta={"name": object()})
    with pytest.raises(sim.InputError, match="JSON"):
        w.write(tmp_path / "w")
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("meta", [b"[1]", b"5", b"{", b"[" * 100_000])
def test_metadata_that_is_no_object_is_refused(tmp_path, meta):
    build().write(tmp_path)
    file = tmp_path / "jobs.parquet"
    table = pq.read_table(file)
    fields = table.schema.metadata | {store._META: meta}
    pq.write_table(table.replace_schema_metadata(fields), file)
    with pytest.raises(sim.InputError, match="is not a JSON object") as caught:
        sim.Workload.read(tmp_path)
    assert caught.value.file == str(file)
