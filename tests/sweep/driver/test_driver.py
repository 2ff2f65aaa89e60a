from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweep.execution import compute
from sweep.questions.ui.index import row_html
from sweep.store import shard_writer
from sweep.store.journal import Journal
from sweep.store.sweep_summaries import summarize
from tests import without
from tests.sweep.small import (
    Command,
    FakeResult,
    every_file,
    fake_engine,
    fake_simulate,
    write_workload,
)

GRID = ("policy=fifo,sjf,las", "capacity=0.5,1", "seed=0,1", "baseline=fifo")


def failing(when: Callable[[Any, int], bool]) -> Callable[..., FakeResult]:
    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        if when(policy, seed):
            raise RuntimeError(f"{policy.name} can't with seed {seed}")
        return fake_simulate(workload, cluster, policy, seed=seed)

    return simulate


def broken_las(policy: Any, seed: int) -> bool:
    return bool(policy.name == "las" and seed == 1)


PARTS = ("shards", "manifests")


def results_only(folder: Path) -> dict[str, bytes]:
    """Everything that a run leaves, less its journal and how cells are put together."""
    return {
        name: content
        for name, content in every_file(folder).items()
        if not name.startswith(("journal/", *(f"cache/{part}/" for part in PARTS)))
    }


def test_a_folder_whose_name_is_no_text_is_refused(
    fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/f\xfcr"))
    folder.mkdir()
    monkeypatch.chdir(folder)
    ran = fake(*GRID)
    assert ran.code == 2
    assert "r' is not valid UTF-8 [folder]" in ran.err


def test_every_cell_is_a_row(fake: Command) -> None:
    ran = fake(*GRID)
    assert ran.code == 0
    rows = ran.rows
    assert len(rows) == 12
    assert [row["policy"] for row in rows[::4]] == ["fifo", "sjf", "las"]
    assert {row["status"] for row in rows} == {"done"}
    assert all(math.isfinite(row["jct_mean_s"]) for row in rows)
    assert len({row["key"] for row in rows}) == 12


def test_the_folder_is_the_last_line_and_holds_everything(fake: Command) -> None:
    ran = fake(*GRID)
    assert ran.folder.parent == fake.results / "sweeps"
    names = {path.name for path in ran.folder.iterdir()} - {"changes.diff"}
    assert names == set(without.present([
        "against_baseline.parquet", "cells.parquet", "config.yaml", "equal_capacity.parquet",
        "answer.json", "provenance.json", "SHA256SUMS",
        "report.html", "report.md", "table.md", "verdict.json",
    ]))  # fmt: skip
    assert "jct_mean_s" in ran.out


def test_the_same_command_again_only_says_so(fake: Command) -> None:
    first = fake(*GRID)
    before = every_file(first.folder)
    rows = first.rows
    again = fake(*GRID)
    assert again.code == 0
    assert "every cell is cached" in again.err
    assert again.folder == first.folder
    after = every_file(again.folder)
    assert {n for n in before if before[n] != after[n]} == {"cells.parquet", "SHA256SUMS"}
    assert {row["status"] for row in again.rows} == {"cached"}
    for row, other in zip(rows, again.rows, strict=True):
        assert json.dumps({**row, "status": "x"}) == json.dumps({**other, "status": "x"})
    third = every_file(fake(*GRID).folder)
    assert third == after


def test_a_question_heads_the_report_and_is_in_no_key(fake: Command) -> None:
    grid = ("policy=fifo,las", "name=nodes")
    without = fake(*grid)
    names = ("answer.json", "report.md", "report.html")
    question = "Do we need <20> nodes, or 30?"
    ran = fake(*grid, f"question={question}")
    assert ran.folder == without.folder
    assert [row["status"] for row in ran.rows] == ["cached"] * 2
    assert ran.out.startswith(f"{question}\n")
    first, second = json.loads((ran.folder / "answer.json").read_text())["Question"]
    assert (first, second[:42]) == (question, "Asked of the simulator: which scheduling p")
    answer, markdown, page = ((ran.folder / name).read_text() for name in names)
    assert question in answer
    assert "**Question.** Do we need \\<20> nodes, or 30? Asked of the simulator: " in markdown
    assert '<p class="question">Do we need &lt;20&gt; nodes, or 30?</p>' in page
    again = fake(*grid, f"question={question}")
    assert "every cell is cached" in again.err
    assert (again.folder / "report.html").read_text() == page
    (row,) = summarize(fake.results)
    assert '<span class="question">Do we need &lt;20&gt; nodes, or 30?</span>' in row_html(row, ())
    back = fake(*grid)
    assert "Do we need" not in back.out + (back.folder / "report.html").read_text()
    assert summarize(fake.results)[0].question == ""


def test_part_of_a_grid_is_cached(fake: Command) -> None:
    fake("policy=fifo", "seed=0")
    rows = fake("policy=fifo", "seed=0,1").rows
    assert [row["status"] for row in rows] == ["cached", "done"]


def test_where_and_how_it_runs_is_not_in_the_keys(fake: Command, tmp_path: Path) -> None:
    first = fake(*GRID)
    words = [word for word in fake.words(*GRID) if not word.startswith("paths")]
    other = fake.bare(*words, f"paths.results={tmp_path / 'other'}", "max_failures=7")
    assert every_file(other.folder) == every_file(first.folder)


def test_a_failed_cell_is_a_row_and_the_others_go_on(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, failing(broken_las))
    ran = command(*GRID)
    assert ran.code == 1
    failed = [row for row in ran.rows if row["status"] == "failed"]
    assert [(row["policy"], row["seed"]) for row in failed] == [("las", 1), ("las", 1)]
    assert failed[0]["error_stage"] == "simulate"
    assert failed[0]["error_type"] == "RuntimeError"
    assert failed[0]["error_message"] == "las can't with seed 1"
    assert "las can't with seed 1" in failed[0]["error_traceback"]
    assert math.isnan(failed[0]["jct_mean_s"])
    assert failed[0]["reproduce"] in ran.out
    assert sum(row["status"] == "done" for row in ran.rows) == 10


def test_the_reproduce_line_runs_that_cell(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shlex

    fake_engine(monkeypatch, failing(broken_las))
    swept = ("cluster.load=0.5,0.9", "trace.begin_s=1", "policy.queues=3,4")
    ran = command(*GRID, *swept)
    row = next(row for row in ran.rows if row["status"] == "failed" and row["cluster.load"] == 0.9)
    words = shlex.split(row["reproduce"])
    assert words[:3] == ["python", "-m", "sweep"]
    again = command.bare(*words[3:], "tracking=none", f"paths.results={command.results}")
    assert again.code == 1
    assert [other["key"] for other in again.rows] == [row["key"]]


def test_a_failed_cell_is_tried_again(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, failing(broken_las))
    first = command(*GRID)
    fake_engine(monkeypatch)
    again = command(*GRID)
    assert again.code == 0
    assert again.folder == first.folder
    status = {(row["policy"], row["seed"]): row["status"] for row in again.rows}
    assert status["las", 1] == "done"
    assert status["las", 0] == "cached"


def test_too_many_failures_end_it(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, failing(lambda policy, seed: policy.name == "sjf"))
    ran = command(*GRID, "max_failures=2")
    assert ran.code == 1
    stages = [(row["status"], row["error_stage"]) for row in ran.rows]
    assert stages[:4] == [("done", None)] * 4
    assert stages[4:6] == [("failed", "simulate")] * 2
    assert stages[6:] == [("failed", "skipped")] * 6
    assert "max_failures=2" in ran.rows[-1]["error_message"]


SYNTH = ("trace=alibaba_synth", "trace.jobs=20")


@pytest.mark.parametrize("synth", [(), SYNTH], ids=["read", "synthesized"])
def test_many_cells_are_drawn_as_they_are_needed(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, synth: tuple[str, ...]
) -> None:
    grid = (*GRID, *synth)
    fake_engine(monkeypatch)
    whole = command(*grid)
    monkeypatch.setattr(compute, "N_FIRST", 2)
    other = f"paths.results={tmp_path / 'other'}"
    drawn = command.bare(*command.words(*grid), other)
    assert every_file(drawn.folder)["cells.parquet"] == every_file(whole.folder)["cells.parquet"]
    fake_engine(monkeypatch, interrupted_after(7))
    third = f"paths.results={tmp_path / 'third'}"
    stopped = command.bare(*command.words(*grid), third)
    assert "interrupted: 7 of 12 cells are done and stored" in stopped.err
    fake_engine(monkeypatch, failing(lambda policy, seed: True))
    few = command.bare(*command.words(*grid), third, "max_failures=2")
    stages = [row["error_stage"] for row in few.rows]
    assert Counter(stages) == {None: 7, "simulate": 2, "skipped": 3}


def test_fail_fast_ends_at_the_first(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, failing(lambda policy, seed: policy.name == "sjf"))
    ran = command(*GRID, "--fail-fast")
    assert [row["error_stage"] for row in ran.rows].count("simulate") == 1


def interrupted_after(n: int) -> Callable[..., FakeResult]:
    left = [n]

    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return fake_simulate(workload, cluster, policy, seed=seed)

    return simulate


def test_an_interrupted_sweep_goes_on_and_ends_with_the_same_bytes(
    fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word for word in fake.words(*GRID) if not word.startswith("paths")]
    undisturbed = fake.bare(*words, f"paths.results={tmp_path / 'undisturbed'}")
    for n in (5, 0, 3):
        fake_engine(monkeypatch, interrupted_after(n))
        stopped = fake(*GRID)
        assert stopped.code == 130
        assert f"{n} of" in stopped.err
        assert stopped.out == ""
    fake_engine(monkeypatch)
    resumed = fake(*GRID)
    assert resumed.code == 0
    assert "8 cached" in resumed.err
    assert {row["status"] for row in resumed.rows} == {"done"}
    assert results_only(fake.results) == results_only(tmp_path / "undisturbed")
    assert every_file(resumed.folder) == every_file(undisturbed.folder)


def test_what_was_cached_before_stays_so_through_a_kill(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake("policy=fifo", "capacity=0.5,1", "seed=0,1")
    fake_engine(monkeypatch, interrupted_after(3))
    fake(*GRID)
    fake_engine(monkeypatch)
    rows = fake(*GRID).rows
    assert [row["status"] for row in rows] == ["cached"] * 4 + ["done"] * 8


@pytest.mark.parametrize("damage", [b"", b"PAR1 nothing", None])
def test_a_damaged_cell_is_computed_again(
    fake: Command, damage: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_writer, "MAX_CELLS", 1)
    first = fake(*GRID)
    whole = results_only(fake.results)
    file = next((fake.results / "cache" / "shards").iterdir())
    content = file.read_bytes()
    flipped = content[:50] + bytes([content[50] ^ 1]) + content[51:]
    file.write_bytes(flipped if damage is None else damage)
    again = fake(*GRID)
    assert again.code == 0
    assert "1 to run" in again.err
    assert file.read_bytes() == content
    assert sorted(row["status"] for row in again.rows) == ["cached"] * 11 + ["done"]
    assert set(results_only(fake.results)) == set(whole)
    assert again.folder == first.folder


@pytest.mark.parametrize("name", ["cells.parquet", "report.html", "verdict.json"])
def test_a_folder_that_lost_a_file_is_written_again(fake: Command, name: str) -> None:
    first = fake(*GRID)
    before = every_file(first.folder)
    (first.folder / name).unlink()
    again = every_file(fake(*GRID).folder)
    assert {n for n in before if before[n] != again[n]} <= {"cells.parquet", "SHA256SUMS"}
    (first.folder / "cells.parquet").write_bytes(b"PAR1 torn")
    assert {row["status"] for row in fake(*GRID).rows} == {"cached"}


def test_two_names_of_one_cell_are_computed_once(fake: Command, tmp_path: Path) -> None:
    folder = tmp_path / "conf" / "policy"
    folder.mkdir(parents=True)
    (folder / "first.yaml").write_text("name: fifo\n")
    (folder / "second.yaml").write_text("name: fifo\nfit: strict\n")
    words = fake.words("policy=first,second", f"--config-dir={tmp_path / 'conf'}")
    ran = fake.bare(*words)
    assert ran.code == 0
    assert "1 to run" in ran.err
    first, second = ran.rows
    assert first["key"] == second["key"]
    assert first["jct_mean_s"] == second["jct_mean_s"]


def test_nothing_runs_if_a_job_does_not_fit(command: Command, tmp_path: Path) -> None:
    words = command.words("cluster=machines", "cluster.shape={cpu:0.5}", "capacity=0.5,1")
    ran = command.bare(*words)
    assert ran.code == 2
    assert "job" in ran.err
    assert ran.out == ""
    assert not (command.results / "sweeps").exists()


def test_tables_show_the_metrics_asked_for(fake: Command) -> None:
    ran = fake("policy=fifo,sjf", "baseline=fifo", "metrics=jct_mean_s")
    assert "jct_mean_s" in ran.out
    assert "jct_speedup_mean" not in ran.out
    assert "jct_speedup_mean" in ran.rows[0]
    assert "jct_speedup_mean" not in (ran.folder / "table.md").read_text()


def test_the_verdict_is_written_and_is_the_first_thing_said(fake: Command) -> None:
    words = ("policy=fifo,las", "seed=0,1,2", "baseline=fifo")
    ran = fake(*words)
    (entry,) = json.loads((ran.folder / "verdict.json").read_text())
    assert (entry["best"], entry["metric"], entry["n_seeds"]) == (["las"], "jct_mean_s", 3)
    assert entry["against_interval"][0] < entry["against_baseline"] < entry["against_interval"][1]
    for run in (ran, fake(*words)):  # computed, and cached
        assert " ".join(run.out.split("\n\n")[0].split()) == entry["sentence"]
        assert json.loads((run.folder / "verdict.json").read_text()) == [entry]
    (ran.folder / "verdict.json").unlink()
    assert fake.verb("report", ran.folder.name).code == 0
    assert json.loads((ran.folder / "verdict.json").read_text()) == [entry]
    other = fake(*words, "verdict.metric=jct_speedup_mean")
    assert other.folder != ran.folder
    assert json.loads((other.folder / "verdict.json").read_text())[0]["best"] == ["las"]
    none = fake(*words, "verdict.metric=deadlines_missed")
    assert none.out.startswith("no verdict: no cell has a value of deadlines_missed")
    assert json.loads((none.folder / "verdict.json").read_text()) == []


def test_results_that_can_not_be_written(fake: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = [word for word in fake.words(*GRID) if not word.startswith("paths")]
    ran = fake.bare(*words, f"paths.results={tmp_path / 'file' / 'results'}")
    assert ran.code == 2
    assert "paths.results=DIR" in ran.err


def test_the_journal_tells_what_happened(fake: Command) -> None:
    ran = fake("policy=fifo,sjf")
    events = [*Journal(fake.results, ran.folder.name).events()]
    assert [event["event"] for event in events] == ["begin", "cell", "cell", "end"]
    assert events[0]["todo"] == 2
    assert {event["key"] for event in events[1:3]} == {row["key"] for row in ran.rows}


def test_another_workload_is_another_sweep(fake: Command) -> None:
    first = fake("policy=fifo")
    write_workload(fake.trace, n_jobs=9)
    second = fake("policy=fifo")
    assert second.folder != first.folder
    assert second.rows[0]["key"] != first.rows[0]["key"]
