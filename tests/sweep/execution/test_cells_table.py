from __future__ import annotations

import json
import math
import shutil
from typing import Any

import pyarrow.parquet as pq
import pytest

from sim.cluster.load import CLUSTER_COLUMNS
from sweep.execution import cells_table
from sweep.store import folder as folder_module
from sweep.store.folder import SweepFolder
from tests.sweep.small import Command, fake_engine, fake_simulate


def by(rows: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in rows}


def test_speed_ups_are_against_the_baseline_of_the_same_group(fake: Command) -> None:
    rows = fake("policy=fifo,random", "capacity=0.5,1", "seed=0,1", "baseline=fifo").rows
    cells = by(rows, "policy", "capacity", "seed")
    for capacity in (0.5, 1.0):
        for seed in (0, 1):
            base, other = cells["fifo", capacity, seed], cells["random", capacity, seed]
            assert base["jct_speedup_mean"] == base["jct_speedup_p50"] == 1.0
            expected = base["jct_mean_s"] / other["jct_mean_s"]
            assert other["jct_speedup_mean"] == pytest.approx(expected)


def test_without_a_baseline_there_is_no_speed_up(fake: Command) -> None:
    (row,) = fake("policy=fifo").rows
    assert math.isnan(row["jct_speedup_mean"])


def test_groups_share_the_other_swept_keys(fake: Command) -> None:
    rows = fake("policy=fifo,sjf", "cluster.load=0.4,0.9", "baseline=fifo").rows
    cells = by(rows, "policy", "cluster.load")
    for load in (0.4, 0.9):
        expected = cells["fifo", load]["jct_mean_s"] / cells["sjf", load]["jct_mean_s"]
        assert cells["sjf", load]["jct_speedup_mean"] == pytest.approx(expected)


def test_a_policys_own_parameter_does_not_part_it_from_the_baseline(fake: Command) -> None:
    rows = fake("policy=fifo,las", "policy.queues=5,10", "baseline=fifo").rows
    assert [row["policy.queues"] for row in rows] == [None, 5, 10]
    assert all(math.isfinite(row["jct_speedup_mean"]) for row in rows)


def test_a_baseline_that_has_the_parameter_is_matched_by_it(fake: Command) -> None:
    ran = fake("policy=las,slearn", "policy.queues=5,10", "baseline=las")
    cells = by(ran.rows, "policy", "policy.queues")
    for queues in (5, 10):
        base, other = cells["las", queues], cells["slearn", queues]
        assert base["jct_speedup_mean"] == 1.0
        expected = base["jct_mean_s"] / other["jct_mean_s"]
        assert other["jct_speedup_mean"] == pytest.approx(expected)
    against = ran.folder / "against_baseline.parquet"
    named = {row["policy"] for row in pq.read_table(against).to_pylist()}
    assert named == {"slearn queues=5", "slearn queues=10"}


def test_one_setting_is_the_baseline_by_its_label(fake: Command) -> None:
    ran = fake("policy=las,fifo", "policy.queues=5,10", "baseline=las queues=10")
    cells = by(ran.rows, "policy", "policy.queues")
    base = cells["las", 10]
    for key, other in cells.items():
        expected = base["jct_mean_s"] / other["jct_mean_s"]
        assert other["jct_speedup_mean"] == pytest.approx(expected), key
    assert "baseline las queues=10" in ran.out
    against = pq.read_table(ran.folder / "against_baseline.parquet").to_pylist()
    assert {row["policy"] for row in against} == {"las queues=5", "fifo"}


def test_columns_come_in_order(fake: Command) -> None:
    ran = fake("policy=las", "policy.queues=5,10", "cluster.queues.mode=global,weighted")
    names = list(ran.rows[0])
    assert names[:7] == [
        "policy", "trace", "capacity", "seed", "status", "policy.queues", "cluster.queues.mode",
    ]  # fmt: skip
    assert names[-7:] == [
        "error_stage", "error_type", "error_message", "error_traceback", "reproduce", "config",
        "key",
    ]  # fmt: skip
    assert {"jct_mean_s", "jct_speedup_mean", "jct_speedup_p50"} <= set(names[7:-7])


def test_a_row_says_what_its_policy_knows(fake: Command) -> None:
    ran = fake("policy=fifo,srpt,slearn,gs", "policy.estimator=history,oracle")
    about = {(r["policy"], r["policy.estimator"]): (r["knows"], r["is_oracle"]) for r in ran.rows}
    assert about["fifo", None] == ("nothing", False)
    assert about["srpt", None] == ("true", True)
    assert about["gs", "history"] == ("learnt", False)
    assert about["gs", "oracle"] == ("true", True)
    again = fake("policy=fifo,srpt,slearn,gs", "policy.estimator=history,oracle")
    assert [row["knows"] for row in again.rows] == [row["knows"] for row in ran.rows]


def test_a_fixed_parameter_is_recorded_and_not_given(fake: Command) -> None:
    ran = fake("policy=las,las_code", "policy.between=strict")
    rows = {row["policy"]: row for row in ran.rows}
    recorded = {name: json.loads(row["config"])["policy"]["params"] for name, row in rows.items()}
    assert {name: params["between"] for name, params in recorded.items()} == {
        "las": "weights",
        "las_code": "strict",
    }
    assert "policy.between=strict" in rows["las_code"]["reproduce"]
    assert "between" not in rows["las"]["reproduce"]


def test_a_row_says_what_its_cluster_came_to(fake: Command) -> None:
    ran = fake("policy=fifo,las", "capacity=0.5,1.0", "cluster.count=6", "cluster.load=null,0.4")
    rows = {(row["capacity"], row["cluster.load"]): row for row in ran.rows}
    assert [rows[c, None]["n_machines"] for c in (0.5, 1.0)] == [3, 6]
    assert rows[1.0, None]["arrival_scale"] == 1.0
    loads = [rows[c, None]["offered_load"] for c in (0.5, 1.0)]
    assert loads == pytest.approx([1.2, 0.8])
    stretched = rows[1.0, 0.4]
    assert stretched["offered_load"] == pytest.approx(0.4, abs=1e-4)
    assert stretched["arrival_scale"] > 1.0
    again = fake("policy=fifo,las", "capacity=0.5,1.0", "cluster.count=6", "cluster.load=null,0.4")
    assert again.rows[0]["status"] == "cached"
    facts = [{name: row[name] for name in CLUSTER_COLUMNS} for row in again.rows]
    assert facts == [{name: row[name] for name in CLUSTER_COLUMNS} for row in ran.rows]


def test_swept_columns_are_typed(fake: Command) -> None:
    words = ("cluster.load=0.5,1", "cluster.queues.shares={a:1},{b:2}", "trace.end_s=null,5")
    rows = fake("policy=fifo", *words).rows
    assert {row["cluster.load"] for row in rows} == {0.5, 1.0}
    assert {row["cluster.queues.shares"] for row in rows} == {'{"a": 1}', '{"b": 2}'}
    assert {row["trace.end_s"] for row in rows} == {None, 5}


def test_very_many_rows_are_written_and_read_in_groups(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulate(*args: Any, seed: int, **options: Any) -> Any:
        if seed == 2:
            raise ValueError("unlucky")
        return fake_simulate(*args, seed=seed, **options)

    fake_engine(monkeypatch, simulate)
    words = ("policy=las,fifo", "policy.queues=5,10", "seed=range(0,4)", "baseline=fifo")
    whole = fake(*words)
    shutil.rmtree(fake.results)
    monkeypatch.setattr(cells_table, "ROWS_A_GROUP", 5)
    monkeypatch.setattr(folder_module, "ROWS_A_GROUP", 5)
    parted = fake(*words)
    assert repr(parted.rows) == repr(whole.rows)
    assert parted.out == whole.out
    with pq.ParquetFile(parted.folder / "cells.parquet") as parquet:
        groups = [
            parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)
        ]
    assert groups == [5, 5, 2]
    read = cells_table.read(SweepFolder(parted.folder))
    assert read["status"].to_pylist().count("failed") == 3
    assert [command is None for command in read["reproduce"].to_pylist()] == [
        row["status"] != "failed" for row in parted.rows
    ]
    assert [key.hex() for key in read["key"].to_pylist()] == [row["key"] for row in parted.rows]
    assert set(read["is_pool"].to_pylist()) == {True}
    page = (parted.folder / "report.html").read_bytes()
    assert fake.verb("report", parted.folder.name).code == 0
    assert (parted.folder / "report.html").read_bytes() == page


def test_a_sweep_that_is_cached_is_read_part_by_part(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells_table, "ROWS_A_GROUP", 5)
    words = ("policy=las,fifo", "capacity=0.5,1", "seed=range(0,4)")
    ran = fake(*words).rows
    again = fake(*words)
    assert {row["status"] for row in again.rows} == {"cached"}
    assert repr([{**row, "status": "done"} for row in again.rows]) == repr(ran)
    written = again.folder / "cells.parquet"
    before = written.stat().st_mtime_ns
    assert repr(fake(*words).rows) == repr(again.rows)
    assert written.stat().st_mtime_ns == before  # nothing changed: it is not written again
