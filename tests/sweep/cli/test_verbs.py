from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import sweep
from sweep.execution import cells_table
from sweep.store import folder
from sweep.store.journal import Journal, with_crc
from tests.sweep.small import (
    Command,
    Ran,
    every_file,
    fake_engine,
    fake_simulate,
    set_json,
    write_workload,
)
from tests.sweep.store.edits import STATEMENT, Sources

GRID = ("policy=fifo,las", "capacity=0.5,1", "baseline=fifo")


@pytest.fixture
def ran(fake: Command) -> Ran:
    return fake(*GRID)


@pytest.fixture
def many(fake: Command, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Run a sweep whose table has several row groups; return the columns of each whole read."""
    for module in (folder, cells_table):
        monkeypatch.setattr(module, "ROWS_A_GROUP", 3)
    assert fake(*GRID, "seed=0,1").code == 0
    columns: list[Any] = []
    read = pq.ParquetFile.read

    def recorded_read(file: pq.ParquetFile, names: Any = None, **options: Any) -> pa.Table:
        if "config" in file.schema_arrow.names:
            columns.append(names)
        return read(file, names, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", recorded_read)
    return columns


def fails_on_las(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> Any:
    if policy.name == "las":
        raise RuntimeError("no las today")
    return fake_simulate(workload, cluster, policy, seed=seed)


def test_run_is_the_default_verb(fake: Command, ran: Ran) -> None:
    assert fake("run", *GRID).folder == ran.folder


class TestPlan:
    def test_nothing_is_cached_and_nothing_is_run(self, fake: Command) -> None:
        planned = fake("plan", *GRID)
        assert planned.code == 0
        assert "4 cells, 0 cached, 4 to run" in planned.out
        assert planned.out.count("no similar cell is cached") == 4
        assert not (fake.results / "sweeps").exists()

    def test_all_is_cached(self, fake: Command, ran: Ran) -> None:
        assert fake("plan", *GRID).out.strip().endswith("4 cells, 4 cached, 0 to run")
        assert fake("plan", *GRID, "--all").out.count("cached\n") == 4

    def test_a_sweep_is_planned_again_by_its_name(
        self, fake: Command, ran: Ran, edited: Sources
    ) -> None:
        name = ran.folder.name
        planned = fake.verb("plan", name, "launcher=inline", "tracking=none")
        assert planned.out.strip() == f"{name}: 4 cells, 4 cached, 0 to run"
        edited.edit("policies.orders", added=STATEMENT)
        stale = fake.verb("plan", name[: len(name) - 2])
        assert "4 cells, 2 cached, 2 to run" in stale.out
        assert "sources: policies.orders" in stale.out
        assert "requested again from config.yaml" in fake.verb("plan", name, "policy=las").err
        assert "unknown sweep 'other'" in fake.verb("plan", "other").err
        assert "list: one verb at a time" in fake.verb("plan", "list").err

    @pytest.mark.parametrize(
        ("words", "change"),
        [
            (["policy=las", "policy.queues=5"], "policy.params.queues: 10 → 5"),
            (["policy=fifo", "capacity=0.7"], "capacity: 0.5 → 0.7"),
            (["policy=fifo", "seed=3"], "seed: 0 → 3"),
            (["policy=fifo", "cluster.load=0.9"], "cluster.load: null → 0.9"),
            (["policy=fifo", "trace.begin_s=2"], "trace.begin_s: null → 2"),
        ],
    )
    def test_names_the_changed_setting(
        self, fake: Command, ran: Ran, words: list[str], change: str
    ) -> None:
        assert change in fake("plan", *words).out

    def test_names_a_changed_trace_file(self, fake: Command, ran: Ran) -> None:
        write_workload(fake.trace, n_jobs=9)
        assert "content of the trace" in fake("plan", "policy=fifo").out

    def test_names_changed_sources(self, fake: Command, ran: Ran, edited: Sources) -> None:
        edited.edit("policies.orders", added=STATEMENT)
        assert "sources: policies.orders" in fake("plan", "policy=fifo").out
        edited.edit("policies.base", added=STATEMENT)
        assert "sources: policies.base" in fake("plan", "policy=las", "capacity=0.5").out
        edited.edit("policies.sharing", added=STATEMENT)
        assert "4 cells, 4 cached" in fake("plan", *GRID).out

    def test_reports_changed_sources_without_their_names_if_no_copy_is_stored(
        self, fake: Command, ran: Ran, edited: Sources
    ) -> None:
        shutil.rmtree(fake.results / "cache" / "sources")
        edited.edit("policies.orders", added=STATEMENT)
        assert re.search(r"to run +sources\n", fake("plan", "policy=fifo").out)

    def test_names_a_changed_evaluator(self, fake: Command, ran: Ran) -> None:
        assert (
            'evaluator.name: "simulation" → "kinds"' in fake("plan", *GRID, "evaluator=kinds").out
        )

    def test_a_long_plan_is_truncated(self, fake: Command) -> None:
        planned = fake("plan", "policy=fifo", "seed=range(100)")
        assert "and 60 more" in planned.out
        assert "100 cells: no similar cell is cached" in planned.out
        assert "and 60 more" not in fake("plan", "policy=fifo", "seed=range(100)", "--all").out

    def test_of_many_cells_the_closest_is_named(self, fake: Command) -> None:
        fake("policy=fifo", "seed=range(0,60)", "capacity=1")
        planned = fake("plan", "policy=fifo", "seed=70", "capacity=1")
        assert "seed: 59 → 70" in planned.out
        planned = fake("plan", "policy=fifo", "seed=range(100,130)", "capacity=1", "--all")
        assert planned.out.count("seed: 59 → ") == 30


class TestStatus:
    def test_of_the_latest(self, fake: Command, ran: Ran) -> None:
        status = fake.verb("status")
        assert status.code == 0
        assert "finished in" in status.out
        assert "4 of 4 cells done, 0 failed, 0 cached before" in status.out
        assert status.folder == ran.folder

    def test_while_it_runs(self, fake: Command) -> None:
        journal = Journal(fake.results, "sweep-12345678")
        with journal.locked(lambda: None):
            journal.append("begin", cells=10, todo=8, cached=[0, 1], argv=[])
            journal.append("said", text="node b is left out: no room")
            journal.append("cell", row=2, key="k", node="a", status="done", seconds=1.0)
            journal.append(
                "cell", row=3, key="l", node="b", status="failed", seconds=2.0, error="no"
            )
            status = fake.verb("status", "sweep-1234")
        assert f"running (process {os.getpid()})" in status.out
        assert "1 of 8 cells done, 1 failed, 2 cached before" in status.out
        assert "row 3 failed: no" in status.out
        assert (
            "  a: 1 cell, 1 a second, 1 s each\n  b: 1 cell, 0.5 a second, 2 s each" in status.out
        )
        assert "  node b is left out: no room\n" in status.out
        assert status.code == 1
        assert "stopped" in fake.verb("status").out

    def test_of_all(self, fake: Command, ran: Ran) -> None:
        fake("policy=fifo")
        lines = fake.verb("status", "--all").out
        assert lines.count("finished in") == 2

    def test_of_none(self, fake: Command) -> None:
        assert fake.verb("status").code == 2
        fake(*GRID)
        assert "unknown sweep 'swep'" in fake.verb("status", "swep").err


class TestLatest:
    def test_is_the_same_sweep_to_every_verb(self, fake: Command) -> None:
        first = fake("policy=fifo").folder
        second = fake("policy=las").folder
        os.utime(first / "cells.parquet")  # as another verb or a copy may
        Journal(fake.results, first.name).append("tracked", tracked="somewhere")
        words = ("launcher=inline", "tracking=none")
        assert fake.verb("status").folder == second
        assert "las" in fake.verb("show").out
        assert Path(fake.verb("report").out.split()[0]).parent == second
        assert fake.verb("retry", *words).folder == second
        assert "las" in fake.verb("verify").out

    def test_is_the_last_requested_sweep_even_if_cached(self, fake: Command) -> None:
        first = fake("policy=fifo").folder
        fake("policy=las")
        assert fake("policy=fifo").folder == first
        assert fake.verb("status").folder == first
        assert "fifo" in fake.verb("show").out

    def test_is_never_replaced_by_another_while_it_is_unfinished(
        self, fake: Command, ran: Ran
    ) -> None:
        Journal(fake.results, "demo-1234").append("begin", cells=1, todo=1, cached=[], argv=[])
        assert fake.verb("status").out.startswith("demo-1234: stopped")
        for verb in ("show", "report", "retry"):
            refused = fake.verb(verb)
            assert refused.code == 2
            assert "demo-1234 is not finished: `python -m sweep status`" in refused.err
            assert f"the latest finished sweep is {ran.folder.name}" in refused.err
        assert fake.verb("show", ran.folder.name).code == 0


class TestName:
    def test_a_sweep_can_be_called_by_its_name(self, fake: Command) -> None:
        mine = fake("policy=fifo", "name=mine").folder
        assert re.fullmatch(r"mine-[0-9a-f]{8}", mine.name)
        other = fake("policy=fifo").folder
        assert other.name.partition("-")[2] == mine.name.partition("-")[2]  # the same cells
        assert fake.verb("status", "mine").folder == mine
        assert Path(fake.verb("report", "mine").out.split()[0]).parent == mine
        again = fake.verb("retry", "mine", "launcher=inline", "tracking=none")
        assert again.folder == mine

    def test_of_several_it_means_the_latest(self, fake: Command) -> None:
        fake("policy=fifo", "name=mine")
        second = fake("policy=las", "name=mine").folder
        assert fake.verb("status", "mine").folder == second

    def test_an_experiment_has_one_too(self, fake: Command, tmp_path: Path) -> None:
        (tmp_path / "experiment").mkdir()
        (tmp_path / "experiment" / "own.yaml").write_text("axes: {policy: [fifo, las]}\n")
        words = (f"--config-dir={tmp_path}", "experiment=own")
        assert fake(*words).folder.name.startswith("own-")
        assert fake(*words, "name=other").folder.name.startswith("other-")
        assert fake.verb("status", "own").code == 0


class TestList:
    def test_newest_first_with_verdicts(self, fake: Command) -> None:
        first = fake("policy=fifo,las").folder
        second = fake("policy=fifo", "name=mine").folder
        verdicts = [{"sentence": f"Number {n}."} for n in range(5)]
        set_json(first, "verdict.json", verdicts)
        set_json(second, "verdict.json", [])
        listed = fake.verb("list")
        assert listed.code == 0
        lines = listed.out.splitlines()
        assert lines[0].split() == ["sweep", "last", "run", "cells", "size", "state", "tags"]
        assert lines[1].split()[0] == second.name
        assert lines[2].split()[0] == first.name
        assert [line.split()[4] for line in lines[1:3]] == ["1", "2"]
        assert lines[3:-1] == [
            "    Number 0.",
            "    Number 1.",
            "    Number 2.",
            "    and 2 more in its report",
        ]
        assert lines[-1].startswith("cells and traces in the cache: ")

    def test_marks_stopped_and_failed_sweeps(
        self, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fake_engine(monkeypatch, fails_on_las)
        command(*GRID)
        Journal(command.results, "b-12345678").append("begin", cells=7, todo=7, cached=[], argv=[])
        lines = command.verb("list").out.splitlines()
        assert " ".join(lines[1].split()[4:]) == "7 0 B stopped after 0 of 7 cells"
        assert lines[2].split()[4] == "4"
        assert lines[2].endswith("2 failed")

    def test_has_one_date_that_of_the_last_run(
        self, fake: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        folder = fake("policy=fifo").folder
        journal = Journal(fake.results, folder.name)
        events = [*journal.events()]
        for event in events:
            event["time"] = 1e9
        journal.file.write_text("".join(with_crc(json.dumps(event)) + "\n" for event in events))
        assert "  2001-09-09 07:16 UTC+05:30  " in fake.verb("list").out
        fake("policy=fifo")
        (line, *_) = fake.verb("list").out.splitlines()[1:]
        assert re.fullmatch(r"\S+  20[2-9]\d-\d\d-\d\d \d\d:\d\d UTC\+05:30  1 .*B", line)
        monkeypatch.undo()
        time.tzset()

    def test_progress_of_a_running_sweep(self, fake: Command) -> None:
        journal = Journal(fake.results, "night-12345678")
        with journal.locked(lambda: None) as lease:
            journal.append("begin", cells=20, todo=18, cached=[0, 1], argv=[])
            journal.note_status(round=2, left_s=130.0, activity="")
            cell = {"row": 2, "key": "k", "node": "a", "seconds": 1.0}
            journal.append_cells([{"status": "failed", "error": "no", **cell}] * 16)
            lease.check()  # a heartbeat
            line = fake.verb("list").out.splitlines()[1]
            assert line.endswith("  running: 18 of 20 cells of round 2, 16 failed, 2 min left")
            assert "about 2 min left" in fake.verb("status").out
            journal.note_status(activity="compiling", left_s=None)
            lease.check()
            assert "16 failed, compiling\n" in fake.verb("list").out
        assert "stopped after 18 of 20 cells" in fake.verb("list").out

    def test_of_none(self, fake: Command) -> None:
        assert "there is no sweep" in fake.verb("list").err


class TestTag:
    def test_tags_are_added_listed_and_removed(self, fake: Command, ran: Ran) -> None:
        name = ran.folder.name
        assert fake.verb("tag", name, "paper", "a+b").out == f"{name}: a+b paper\n"
        assert fake.verb("list").out.splitlines()[1].endswith("  a+b paper")
        assert (ran.folder / "tags.txt").read_text() == "a+b\npaper\n"
        assert fake(*GRID).folder == ran.folder  # again: it keeps them
        assert fake.verb("tag", name).out == f"{name}: a+b paper\n"
        assert fake.verb("tag", name, "paper", "--remove").out == f"{name}: a+b\n"
        assert fake.verb("tag", name, "a+b", "--remove").out == f"{name}: no tags\n"
        assert not (ran.folder / "tags.txt").exists()

    def test_an_unfinished_sweep_has_tags(self, fake: Command) -> None:
        Journal(fake.results, "demo-1234").append("begin", cells=1, todo=1, cached=[], argv=[])
        assert fake.verb("tag", "demo", "x").code == 0
        assert fake.verb("list").out.splitlines()[1].endswith("stopped after 0 of 1 cells  x")
        assert fake.verb("tag", "demo", "x", "--remove").code == 0
        assert not (fake.results / "sweeps" / "demo-1234").exists()

    @pytest.mark.parametrize("word", ["two words", "a,b", "x" * 41, "a\nb", ""])
    def test_a_tag_is_a_word(self, fake: Command, ran: Ran, word: str) -> None:
        refused = fake.verb("tag", ran.folder.name, "good", word)
        assert refused.code == 2
        assert "is no tag: one word of at most 40" in refused.err
        assert fake.verb("tag", ran.folder.name).out.endswith(": no tags\n")

    def test_at_most_twenty(self, fake: Command, ran: Ran) -> None:
        refused = fake.verb("tag", ran.folder.name, *(f"t{n}" for n in range(21)))
        assert "would have 21 tags; at most 20" in refused.err
        assert "name the sweep" in fake.verb("tag").err


class TestShow:
    def test_lists_cells(self, fake: Command, ran: Ran) -> None:
        shown = fake.verb("show").out
        assert len(shown.splitlines()) == 5
        for row in ran.rows:
            assert row["key"][:12] in shown

    @pytest.mark.parametrize("by_sweep", [False, True])
    def test_a_cell_by_row_or_key(self, fake: Command, ran: Ran, by_sweep: bool) -> None:
        row = ran.rows[2]
        first = [ran.folder.name] if by_sweep else []
        by_row = fake.verb("show", *first, "2").out
        assert by_row == fake.verb("show", *first, row["key"][:10]).out
        assert f"key {row['key']}" in by_row
        assert "queues: 10" in by_row
        assert "jct_mean_s" in by_row
        assert f"reproduce: {row['reproduce']}" in by_row

    def test_a_failed_cell(self, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_engine(monkeypatch, fails_on_las)
        command(*GRID)
        shown = command.verb("show", "3").out
        assert "RuntimeError (simulate): no las today" in shown
        assert "Traceback (most recent call last)" in shown

    @pytest.mark.parametrize("word", ["9", "ffffffffffff"])
    def test_an_unknown_cell(self, fake: Command, ran: Ran, word: str) -> None:
        shown = fake.verb("show", word)
        assert shown.code == 2
        assert "valid: 0 to 3" in shown.err


class TestRetry:
    def test_runs_failed_cells_again(
        self, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fake_engine(monkeypatch, fails_on_las)
        first = command(*GRID)
        assert first.code == 1
        words = ("launcher=inline", "tracking=none")
        assert command.verb("retry", *words).code == 1
        fake_engine(monkeypatch)
        again = command.verb("retry", first.folder.name, *words)
        assert again.code == 0
        assert again.folder == first.folder
        assert [row["status"] for row in again.rows] == ["cached", "cached", "done", "done"]

    def test_refuses_keys_that_change_numbers(self, fake: Command, ran: Ran) -> None:
        retried = fake.verb("retry", "policy=fifo")
        assert retried.code == 2
        assert "give only keys that say where and how it runs" in retried.err

    def test_one_sweep(self, fake: Command, ran: Ran) -> None:
        assert fake.verb("retry", "a", "b").code == 2
        assert "unknown sweep 'a'" in fake.verb("retry", "a").err


class TestReport:
    def test_gives_the_same_bytes(self, fake: Command, ran: Ran) -> None:
        before = every_file(ran.folder)
        for name in ("report.md", "report.html", "table.md"):
            (ran.folder / name).unlink()
        reported = fake.verb("report", str(ran.folder))
        assert reported.code == 0
        assert reported.out.split() == [
            str(ran.folder / "report.md"),
            str(ran.folder / "report.html"),
        ]
        assert every_file(ran.folder) == before

    def test_with_another_baseline_nothing_is_run(
        self, fake: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grid = ("policy=fifo,las,srpt", "capacity=0.5,1", "seed=range(0,6)")
        ran = fake(*grid, "baseline=fifo")
        before = every_file(ran.folder)
        fake_engine(monkeypatch, fails_on_las)
        reported = fake.verb("report", "baseline=srpt", "metrics=jct_mean_s,jct_speedup_mean")
        assert reported.code == 0
        markdown, page = map(Path, reported.out.split())
        assert markdown.parent.parent == fake.results / "reports"
        assert every_file(ran.folder) == before
        fake_engine(monkeypatch)
        other = fake(*grid, "baseline=srpt", "metrics=jct_mean_s,jct_speedup_mean").folder
        same = "against_baseline.parquet"
        assert (markdown.parent / same).read_bytes() == (other / same).read_bytes()
        table = (markdown.parent / "table.md").read_text(encoding="utf-8")
        assert f"show {ran.folder.name} 0 --why" in table  # the cells are that sweep's
        renamed = table.replace(ran.folder.name, other.name)
        assert renamed == (other / "table.md").read_text(encoding="utf-8")
        assert "against srpt" in page.read_text(encoding="utf-8").lower()

    def test_with_all_metrics(self, fake: Command, ran: Ran) -> None:
        assert fake.verb("report", "metrics=all").code == 0

    def test_unknown_baseline_or_metric(self, fake: Command, ran: Ran) -> None:
        refused = fake.verb("report", "baseline=lass")
        assert "unknown baseline 'lass'; did you mean 'las'" in refused.err
        assert "unknown metric 'jct'" in fake.verb("report", "metrics=jct").err
        assert "no cell of" in fake.verb("report", "metrics=utilization_disk").err
        two = fake.verb("report", ran.folder.name, ran.folder.name, "baseline=las")
        assert two.code == 2


class TestVerify:
    def test_the_same_bits(self, fake: Command, ran: Ran) -> None:
        verified = fake.verb("verify", "--cells", "3")
        assert verified.code == 0
        assert verified.out.count(": same") == 3
        assert "3 of 3 cells are the same" in verified.out

    def test_the_choice_of_cells_follows_from_a_seed(self, fake: Command, ran: Ran) -> None:
        def chosen(seed: int) -> str:
            return fake.verb("verify", "--cells=1", f"--seed={seed}").out

        assert chosen(1) == chosen(1)
        assert len({chosen(seed) for seed in range(8)}) > 1

    def test_other_bits(self, fake: Command, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
        def adds_a_picosecond(
            workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any
        ) -> Any:
            result = fake_simulate(workload, cluster, policy, seed=seed)
            result.job_finish[0] += 1e-12
            return result

        fake_engine(monkeypatch, adds_a_picosecond)
        verified = fake.verb("verify", "--cells=9")
        assert verified.code == 1
        assert verified.out.count("column finish_s") == 4
        assert "computed in an environment with other bits" not in verified.out
        (file,) = ran.folder.glob("provenance.json")
        about = json.loads(file.read_text())
        set_json(ran.folder, file.name, {**about, "cpu_features": ["NEON"]})
        output = fake.verb("verify", "--cells=9").out
        assert "computed in an environment with other bits: it was computed with CPU" in output

    def test_other_metrics_and_failures(
        self, fake: Command, ran: Ran, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def other(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> Any:
            result = fails_on_las(workload, cluster, policy, seed=seed)
            result.metrics["jct_mean_s"] += 1.0
            return result

        fake_engine(monkeypatch, other)
        verified = fake.verb("verify")
        assert verified.out.count("differs in jct_mean_s") == 2
        assert verified.out.count("fails now: no las today") == 2

    def test_a_result_missing_from_the_cache(self, fake: Command, ran: Ran) -> None:
        shutil.rmtree(fake.results / "cache" / "shards")
        verified = fake.verb("verify", "--cells=9")
        assert "the cache has no table of its jobs" in verified.out
        assert verified.code == 0  # every metric was compared

    def test_at_least_one_cell(self, fake: Command, ran: Ran) -> None:
        assert fake.verb("verify", "--cells=0").code == 2


class TestTrack:
    def test_without_tracking_nothing_is_logged(self, fake: Command, ran: Ran) -> None:
        tracked = fake.verb("track", "tracking=none")
        assert tracked.code == 2
        assert "logs to no server" in tracked.err

    def test_a_server_that_is_down(self, fake: Command, ran: Ran, closed_port: int) -> None:
        tracked = fake.verb("track", f"tracking.uri=http://127.0.0.1:{closed_port}")
        assert tracked.code == 1
        assert "could not log to MLflow" in tracked.err

    def test_runs_of_many_cells_are_merged(
        self, fake: Command, many: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from sweep.track import connection, run_data

        monkeypatch.setattr(run_data, "MAX_CELLS", 3)
        tracked = fake.verb("track")
        assert tracked.code == 0
        assert "MLflow gets a run for all seeds of each policy, trace and capacity" in tracked.err
        with connection.connected(f"sqlite:///{fake.results / 'mlflow.db'}", "") as client:
            query = "tags.policy = 'las' and tags.capacity = '1'"
            (run,) = client.search_runs(["1"], query)
            config = client.download_artifacts(run.info.run_id, "config.yaml", str(fake.results))
        assert yaml.safe_load(Path(config).read_text())["seed"] == [0, 1]
        assert run.info.start_time <= run.info.end_time < 1e3 * time.time()
        assert all(names is not None and "config" not in names for names in many)
        tracked = fake.verb("track", "tracking.granularity=sweep")
        assert (tracked.code, tracked.err) == (0, "")
        with connection.connected(f"sqlite:///{fake.results / 'mlflow.db'}", "") as client:
            (parent,) = client.search_runs(["1"])
        assert parent.data.tags["kind"] == "sweep"
        assert "jct_mean_s/las" in parent.data.metrics

    def test_an_unknown_granularity(self, fake: Command, ran: Ran) -> None:
        tracked = fake.verb("track", "tracking.granularity=polic")
        assert tracked.code == 2
        assert "did you mean 'policy'" in tracked.err


def test_no_verb_reads_the_text_columns_of_all_cells(fake: Command, many: list[Any]) -> None:
    verbs = [("list",), ("status",), ("show",), ("show", "7"), ("verify", "tracking=none")]
    shown = {words[0]: fake.verb(*words) for words in [*verbs, ("report",)]}
    assert {ran.code for ran in shown.values()} == {0}
    assert "row 7: done" in shown["show"].out
    loaded = sweep.load(results=fake.results)
    assert (len(loaded.cells), len(loaded.against("las")), bool(loaded.verdict)) == (8, 4, True)
    assert set(loaded.cells).isdisjoint(sweep.api.results.LONG)
    last = loaded.cell(policy="las", capacity=1, seed=1)
    assert (last.config["seed"], last.labels["policy"]) == (1, "las")
    assert all(names is not None and "config" not in names for names in many)


def test_row_groups_are_listed_as_one_table(fake: Command, many: list[Any]) -> None:
    header, *lines = fake.verb("show").out.splitlines()
    assert [line.split()[0] for line in lines] == [str(row) for row in range(8)]
    keys = {line[header.index("key") :].rstrip() for line in lines}
    assert {len(key) for key in keys} == {12}
    (row,) = (line.split()[0] for line in lines if line.endswith(max(keys)))
    assert f"row {row}: " in fake.verb("show", max(keys)).out


def test_config_yaml_records_the_request(ran: Ran) -> None:
    config = yaml.safe_load((ran.folder / "config.yaml").read_text())
    assert config["axes"]["policy"] == ["fifo", "las"]
    assert config["baseline"] == "fifo"
    assert config["policy"]["las"]["params"]["queues"] == 10
    assert config["cluster"]["parquet"]["shape"] == "slots"


def test_a_down_server_leaves_all_results_and_no_secrets(
    fake: Command, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word for word in fake.words(*GRID) if not word.startswith("tracking")]
    words += [f"tracking.uri=http://user:hush@127.0.0.1:{closed_port}"]
    monkeypatch.setattr(sys, "argv", ["sweep", *words])
    ran = fake.bare(*words)
    assert ran.code == 0
    assert len(ran.rows) == 4
    assert "could not log to MLflow" in ran.err
    assert f"python -m sweep track {ran.folder}" in ran.err
    written = b"".join(every_file(fake.results).values())
    assert "hush" not in ran.out + ran.err
    assert b"hush" not in written


def test_secrets_in_a_traces_path_are_masked_in_every_file(fake: Command, tmp_path: Path) -> None:
    trace = write_workload(tmp_path / "token=hush")
    ran = fake("policy=fifo", "trace=parquet", f"trace.path='{trace}'")
    assert ran.code == 0
    assert "hush" not in ran.rows[0]["reproduce"] + ran.rows[0]["config"]
    assert b"hush" not in b"".join(every_file(fake.results).values())
