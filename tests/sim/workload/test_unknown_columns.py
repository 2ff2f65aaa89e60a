"""Misspelt columns of the schema."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sim
from sim.workload.unknown_columns import suggest_columns
from tests.sim.workload.tables import build


@pytest.mark.parametrize(
    ("table", "names", "near"),
    [
        ("jobs", ["application_name", "user_name"],
         {"application_name": "application", "user_name": "user"}),
        ("jobs", ["prioriti", "Template", "deadline", "queue_id"],
         {"prioriti": "priority", "Template": "template", "deadline": "deadline_s",
          "queue_id": "queue"}),
        ("jobs", ["colour", "requested_s", "cluster"], {}),
        ("jobs", ["user", "user_name"], {}),  # the one that is used is there
        ("stages", ["demand_gpu", "duration", "input_homes"],
         {"duration": "duration_s", "input_homes": "input_home"}),
        ("stages", ["cpu", "Mem_gib", "gpu_demand"],
         {"cpu": "demand_cpu", "Mem_gib": "demand_mem", "gpu_demand": "demand_gpu"}),
        ("stages", ["demand_cpu", "cpu"], {}),
        ("tasks", ["cpu"], {}),
        ("stage_edges", ["edge_kind"], {"edge_kind": "kind"}),
    ],
)  # fmt: skip
def test_the_nearest_that_is_missing(table, names, near):
    assert suggest_columns(table, names) == near


def test_reading_counts_them_and_carries_them_along(tmp_path):
    build().write(tmp_path)
    jobs = pq.read_table(tmp_path / "jobs.parquet")
    names = ["user_name" if name == "user" else name for name in jobs.column_names]
    jobs = jobs.rename_columns(names).append_column("application_name", pa.array(["a", "b", "c"]))
    pq.write_table(jobs, tmp_path / "jobs.parquet")
    w = sim.Workload.read(tmp_path)
    assert w.meta["report"] == {
        "columns_unused": {
            "jobs.user_name: did you mean user?": 3,
            "jobs.application_name: did you mean application?": 3,
        }
    }
    assert w.jobs["application_name"].to_pylist() == ["a", "b", "c"]
    w.write(tmp_path / "again")  # which has a user now
    again = sim.Workload.read(tmp_path / "again")
    assert again.meta["report"] == w.meta["report"]


def test_tables_by_hand_are_looked_at_too():
    w = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0], "queue_name": ["q"]},
        stages={"job": [0], "n_tasks": [1], "duration_s": [1.5], "demand_cpu": [1.0]},
        meta={"name": "ours", "report": {"dropped": {"odd": 2}}},
    )
    unused = {"jobs.queue_name: did you mean queue?": 1}
    assert w.meta["report"] == {"dropped": {"odd": 2}, "columns_unused": unused}
    assert w.take([0]).meta["report"] == w.meta["report"]


def test_the_projects_workloads_have_no_unknown_columns(tmp_path):
    build().write(tmp_path)
    assert "report" not in sim.Workload.read(tmp_path).meta
