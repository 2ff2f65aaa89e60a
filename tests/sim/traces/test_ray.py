"""Tasks of Ray become jobs, actors too; earlier attempts are lost, and parents are told."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.check.account import check_account
from sim.traces import read_trace
from sim.workload.attempts import FAILED, NEVER_RAN, RUNNING, WAITING
from tests.examples import examples

ZERO_MS = 1_740_963_600_000
DRIVER = "f" * 40


def task(
    number: int,
    created: int | None = 0,
    start: int | None = 500,
    end: int | None = 4500,
    *,
    attempt: int = 0,
    cpu: float | None = 2,
    state: str = "",
    **more: Any,
) -> dict[str, Any]:
    """Return an attempt at a task, as the dashboard lists it; times are ms after `ZERO_MS`."""
    default = "FINISHED" if end is not None else "RUNNING"
    times = {
        f"{key}_time_ms": None if value is None else ZERO_MS + value
        for key, value in (("creation", created), ("start", start), ("end", end))
    }
    return {
        "task_id": f"{number:032x}", "attempt_number": attempt, "name": "score", "actor_id": None,
        "state": state or (default if start is not None else "PENDING_NODE_ASSIGNMENT"),
        "job_id": "01000000", "type": "NORMAL_TASK", "func_or_class_name": "score",
        "parent_task_id": DRIVER, "node_id": "aa",
        "required_resources": None if cpu is None else {"CPU": cpu}, **times, **more,
    }  # fmt: skip


def actor(number: int, name: str, *times: int | None, kind: str = "ACTOR_TASK", **more: Any) -> Any:
    fields = {"type": kind, "actor_id": "ac", "func_or_class_name": name, **more}
    return task(number, *times, **fields)


def load(folder: Path, *tasks: Any, **options: Any) -> sim.Workload:
    path = folder / "tasks.json"
    path.write_text(json.dumps(tasks))
    return read_trace("ray", path, **options)


def report(w: sim.Workload, part: str) -> Any:
    return w.meta["report"][part]


def seven() -> list[dict[str, Any]]:
    """Return six tasks of 4 s, submitted 1 s after each other; one failed at first."""
    tasks = [task(i, 1000 * i, 1000 * i + 500, 1000 * i + 4500) for i in range(6)]
    tasks[4]["state"] = "FAILED"
    return [*tasks, task(4, 4000, 8600, 12600, attempt=1)]


def test_each_task_is_a_job_and_earlier_attempts_are_lost(tmp_path: Path) -> None:
    w = load(tmp_path, *seven())
    assert w.n_jobs == 6
    assert w.tasks["duration_s"].to_pylist() == [4.0] * 6
    assert w.jobs["submit_s"].to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert w.jobs["recorded_start_s"].to_pylist() == [0.5, 1.5, 2.5, 3.5, 8.6, 5.5]
    assert set(w.jobs["template"].to_pylist()) == {"score"}
    assert set(w.jobs["queue"].to_pylist()) == {"01000000"}
    assert w.stages["node_list"].to_pylist() == ["aa"] * 6
    assert report(w, "dropped") == {FAILED: 1}
    assert w.meta["resolution_s"] == 0.1
    account = check_account(w, cpu_s=56, jobs=6, tasks=7)
    assert account["cpu_s"]["left_out_by"] == {FAILED: 8.0}


def test_the_command_the_dashboard_and_files_give_the_same(tmp_path: Path) -> None:
    expected = load(tmp_path, *seven())
    answer = {"result": True, "msg": "", "data": {"result": {"total": 7, "result": seven()}}}
    printed = []
    for item in seven():
        dates = {
            key: str(datetime.fromtimestamp(value / 1000, UTC).replace(tzinfo=None))
            for key, value in item.items() if key.endswith("_time_ms")
        }  # fmt: skip
        printed.append({**item, **dates})
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, item in enumerate(reversed(seven())):
        (folder / f"{i}.json.gz").write_bytes(gzip.compress(json.dumps([item]).encode()))
    for name, content in {"answer.json": answer, "printed.json": printed}.items():
        (tmp_path / name).write_text(json.dumps(content))
    for path in (tmp_path / "answer.json", tmp_path / "printed.json", folder):
        assert read_trace("ray", path).digest == expected.digest, path


def test_an_actor_holds_its_resources_until_its_last_method_ends(tmp_path: Path) -> None:
    w = load(
        tmp_path,
        actor(1, "Model.__init__", 0, 100, 200, kind="ACTOR_CREATION_TASK", cpu=1),
        actor(2, "Model.score", 150, 200, 1200, required_resources={}),
        actor(3, "Model.score", 160, 1200, 3100, required_resources={}),
        task(9, 1, 1, 1001),
    )
    assert w.jobs["job_id"].to_pylist() == ["ac", f"{9:032x}"]
    assert w.jobs["template"].to_pylist() == ["Model", "score"]
    assert w.tasks["duration_s"].to_pylist() == [3.0, 1.0]
    assert report(w, "noticed") == {"methods of actors: in their actors' time": 2}
    check_account(w, cpu_s=5, jobs=2, tasks=2)
    alone = load(tmp_path, actor(2, "Model.score", 150, 200, 1200, required_resources={}))
    assert report(alone, "filled") == {"CPUs unknown: 1": 1}
    assert "actors whose creation is not listed: resources unknown" in report(alone, "noticed")
    going_on = actor(4, "Model.score", 170, 3200, None)
    both = load(tmp_path, going_on, actor(3, "Model.score", 160, 1200, 3100), task(9))
    assert report(both, "dropped") == {RUNNING: 1}


def test_tasks_that_had_not_ended_are_censored(tmp_path: Path) -> None:
    w = load(tmp_path, task(1), task(2, 0, 100, None), task(3, 0, None, None))
    assert report(w, "dropped") == {RUNNING: 1, WAITING: 1}
    check_account(w, cpu_s=8, jobs=3)
    again = load(tmp_path, task(1, 0, None, None, state="FAILED"), task(1, attempt=1))
    assert report(again, "dropped") == {NEVER_RAN: 1}
    assert "unknown" not in check_account(again, cpu_s=8, jobs=1)["cpu_s"]
    assert report(w, "warnings")[0].startswith("1 of 3 jobs still ran when the log ended")


def test_tasks_that_created_others_are_told(tmp_path: Path) -> None:
    child = task(2, 600, 700, 1700, parent_task_id=f"{1:032x}")
    w = load(tmp_path, task(1), child)
    assert w.job_edges.num_rows == 0
    assert report(w, "noticed") == {"tasks that created others: no dependency of data": 1}
    assert report(w, "warnings")[0].startswith("80.0 % of the CPU time is of tasks that created")


def test_resources_of_placement_groups_and_others(tmp_path: Path) -> None:
    group = "179aeda41b2e4a236e646ec05ec301000000"
    requested = {
        f"CPU_group_{group}": 1.0, f"CPU_group_0_{group}": 1.0, f"bundle_group_{group}": 0.001,
        "GPU": 0.5, "memory": 2.0**29, "accelerator_type:A100": 0.001, "fruit": 1,
    }  # fmt: skip
    w = load(tmp_path, task(1, required_resources=requested))
    (row,) = w.stages.to_pylist()
    assert (row["demand_cpu"], row["demand_gpu"], row["demand_mem"]) == (1.0, 0.5, 0.5)
    assert report(w, "noticed") == {"requests of fruit: left out": 1}


@pytest.mark.parametrize(("n", "words"), [(100, "without --limit"), (10_000, "at most"), (7, "")])
def test_a_list_as_long_as_its_limit_may_lack_some(tmp_path: Path, n: int, words: str) -> None:
    w = load(tmp_path, *(task(i) for i in range(n)))
    warnings = w.meta["report"].get("warnings", [])
    assert len(warnings) == bool(words)
    assert words in "".join(warnings)


def test_the_dashboard_tells_how_many_there_are(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"data": {"result": {"result": [task(1)], "total": 40}}}))
    (warning,) = report(read_trace("ray", path), "warnings")
    assert warning.startswith("1 of 40 tasks are listed")


@pytest.mark.parametrize(
    ("content", "rule", "words"),
    [
        ("task_id,state\n1,FINISHED\n", "not JSON", "write it with ray list tasks --detail"),
        ("task_id,state\n1,FINISHED\n", "not JSON", "a CSV: trace=table"),
        ("---\n- task_id: a\n", "not JSON", "begins with '---'"),
        ([task(1, None, None, None)], "no detail", "no task has a creation time"),
        ([{"state": "FINISHED"}], "missing value", "has no task_id; give ray list tasks"),
        ([task(1, cpu=-1)], "number out of range", "required_resources.CPU is -1"),
        ([task(1) | {"end_time_ms": "noon"}], "wrong time", "not 'noon'"),
        ([task(1) | {"end_time_ms": 1740963604.5}], "wrong time", "in ms since 1970"),
        ([task(1) | {"end_time_ms": [1]}], "wrong type", "end_time_ms must be a number"),
        ([7], "wrong type", "a record must be an object, not 7"),
    ],
)
def test_errors_name_the_line_and_the_way_out(
    tmp_path: Path, content: Any, rule: str, words: str
) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(sim.InputError) as caught:
        read_trace("ray", path)
    assert (caught.value.rule, caught.value.line) == (rule, 1)
    assert words in str(caught.value)


def test_the_module_shadows_no_package() -> None:
    code = "import sim.traces.ray, sim.traces.kubernetes, sys; import ray; print(ray.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count(".") >= 2


@st.composite
def tasks(draw: st.DrawFn, number: int) -> list[dict[str, Any]]:
    """Draw the attempts at a task; some have no end, no start, or can't be read."""
    attempts = []
    for attempt in range(draw(st.integers(1, 3))):
        start = draw(st.none() | st.integers(0, 5000))
        end = None if start is None else draw(st.none() | st.integers(start - 5, start + 900))
        item = task(number, draw(st.integers(0, 5000)), start, end, attempt=attempt,
                    cpu=draw(st.sampled_from([None, 0, 0.5, 3])))  # fmt: skip
        if draw(st.integers(0, 9)) == 0:
            item["required_resources"] = {"CPU": "all"}
        attempts.append(item)
    return attempts


LISTS = st.integers(0, 6).flatmap(lambda n: st.tuples(*(tasks(i) for i in range(n))))


@settings(max_examples=examples(160), deadline=None)
@given(LISTS, st.randoms(use_true_random=False))
def test_all_work_is_counted_in_any_order(
    drawn: tuple[list[dict[str, Any]], ...], rng: random.Random
) -> None:
    listed = [task(99), *(item for attempts in drawn for item in attempts)]
    shuffled = rng.sample(listed, len(listed))
    with tempfile.TemporaryDirectory() as name:
        w = load(Path(name), *listed, on_bad_row="skip")
        again = load(Path(name), *shuffled, on_bad_row="skip")
    assert w.digest == again.digest
    good = [item for item in listed if item["required_resources"] != {"CPU": "all"}]
    cpu_s = 0.0
    for item in good:
        if item["end_time_ms"] is not None and item["required_resources"]:
            run_ms = item["end_time_ms"] - item["start_time_ms"]
            cpu_s += item["required_resources"]["CPU"] * max(run_ms, 0) / 1000
    n_jobs = len({item["task_id"] for item in good}) + len(listed) - len(good)
    check_account(w, cpu_s=cpu_s, jobs=n_jobs, tasks=len(good))
