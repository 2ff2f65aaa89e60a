"""Accounts of generated files are the amounts that a plain loop counts in their texts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from policies.alibaba.trace import ORIGINAL_COLUMNS
from sim.check.account import check_account
from sim.workload.workload import Workload

PODS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time",
    "scheduled_time",
)  # fmt: skip
EXAMPLES = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


def read(name: str, path: Path, text: str, **options: Any) -> Workload | None:
    """Read a text; None if no job is left of it."""
    path.write_text(text)
    try:
        return sim.read_trace(name, path, **options)
    except sim.InputError as error:
        if error.rule != "no job left":
            raise
        return None


def number(text: str) -> float | None:
    return float(text) if text else None


def product(*factors: float | None) -> float:
    """Return the product of the factors; 0 if one is not known."""
    total = 1.0
    for factor in factors:
        total *= factor or 0.0
    return total


def once(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))


TASKS = st.tuples(
    st.sampled_from(["M1", "R2_1", "R2_1_1", "J3_1_2", "M4_9", "R5_6", "R6_5", "MergeTask"]),
    st.sampled_from(["", "0", "1", "3"]),
    st.sampled_from(["j_1", "j_2"]),
    st.just("1"),
    st.sampled_from(["Terminated", "Failed"]),
    st.sampled_from(["", "0", "10"]),
    st.sampled_from(["0", "9", "10", "25"]),
    st.sampled_from(["", "50", "100"]),
    st.sampled_from(["", "0.5"]),
).map(",".join)


def parents(name: str) -> int:
    match = re.fullmatch(r"[A-Z]\d+((?:_\d+)*)", name)
    return match[1].count("_") if match else 0


@settings(max_examples=3 * EXAMPLES)
@given(
    st.lists(TASKS, min_size=1, max_size=8),
    st.lists(st.sampled_from(["M1,3,j_3", "M1,x,j_3,1,Terminated,0,10,100,1"]), max_size=2),
    st.sampled_from(["all", "terminated"]),
    st.sampled_from(["drop", "keep"]),
)
def test_alibaba(
    folder: Path, lines: list[str], damaged: list[str], status: Any, unfinished: Any
) -> None:
    text = "\n".join([*lines, *damaged]) + "\n"
    w = read(
        "alibaba2018", folder / "batch_task.csv", text,
        on_bad_row="skip", status=status, unfinished=unfinished,
    )  # fmt: skip
    if w is None:
        return
    rows = [dict(zip(ORIGINAL_COLUMNS, line.split(","), strict=True)) for line in lines]
    names = {row["job_name"] for row in rows}
    rows = _without_repeats(rows, status == "terminated", unfinished == "keep")
    work = [_alibaba_work(row) for row in rows]
    n_tasks = [product(number(row["instance_num"])) for row in rows]
    readable = sum(3.0 for row in damaged if row.count(",") == 2)  # tasks that a row tells
    edges = sum(parents(row["task_name"]) for row in rows)
    tasks = sum(n_tasks) + readable
    check_account(w, cpu_s=sum(work), edges=edges, tasks=tasks, jobs=len(names))


def _without_repeats(
    rows: list[dict[str, str]], only_terminated: bool, keep_unfinished: bool
) -> list[dict[str, str]]:
    """Drop valid rows of the DAG form that are the first one of their number once more."""
    first: dict[tuple[str, str], list[str]] = {}
    distinct = []
    for row in rows:
        match = re.fullmatch(r"[A-Z](\d+)(?:_\d+)*", row["task_name"])
        start, end = number(row["start_time"]), number(row["end_time"])
        is_valid = row["instance_num"] != "0" and not (start is None or end is None)
        is_valid &= keep_unfinished if end == 0 else (start or 0.0) <= (end or 0.0)
        is_valid &= row["status"] == "Terminated" or not only_terminated
        content = [value for name, value in row.items() if name != "status"]
        key = row["job_name"], match[1] if match and is_valid else ""
        if not key[1] or key not in first or first[key] != content:
            distinct.append(row)
        if key[1]:
            first.setdefault(key, content)
    return distinct


def _alibaba_work(row: dict[str, str]) -> float:
    start, end = number(row["start_time"]), number(row["end_time"])
    span = None if start is None or not end or end < start else end - start
    return product(number(row["instance_num"]), span, number(row["plan_cpu"])) / 100


POD_LINES = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["0", "4000"]),
    st.sampled_from(["1024"]),
    st.sampled_from(["0", "1", "2"]),
    st.sampled_from(["0", "500", "1000"]),
    st.sampled_from(["0", "5"]),
    st.sampled_from(["", "7", "90"]),
    st.sampled_from(["", "8", "10"]),
).map(",".join)


@settings(max_examples=EXAMPLES)
@given(
    st.lists(POD_LINES, min_size=1, max_size=8),
    st.lists(st.sampled_from(["d,1,2", "d,4000,0,1,2000,0,100,50"]), max_size=2),
)
def test_pods(folder: Path, lines: list[str], damaged: list[str]) -> None:
    text = "\n".join([",".join(PODS), *lines, *damaged]) + "\n"
    w = read("k8s_gpu2023", folder / "pods.csv", text, on_bad_row="skip")
    if w is None:
        return
    rows = [dict(zip(PODS, line.split(","), strict=True)) for line in once(lines)]
    work = Counter[str]()
    for pod in rows:
        begin, end = number(pod["scheduled_time"]), number(pod["deletion_time"])
        ran_s = end - begin if begin is not None and end is not None and end >= begin else 0.0
        work["cpu_s"] += float(pod["cpu_milli"]) / 1000 * ran_s
        work["gpu_s"] += float(pod["num_gpu"]) * float(pod["gpu_milli"]) / 1000 * ran_s
        work["mem_gib_s"] += float(pod["memory_mib"]) / 1024 * ran_s
    work["cpu_s"] += 4 * 50 * sum(line.count(",") == 7 for line in damaged)
    check_account(w, jobs=len(rows) + len(damaged), **work)
    n_censored = sum(bool(p["scheduled_time"]) and not p["deletion_time"] for p in rows)
    warned = w.meta["report"].get("warnings", [])
    assert any("(censored)" in warning for warning in warned) == (n_censored > 0)


WALLS = st.tuples(
    st.sampled_from(["1", "2", "3"]),
    st.just("u,0,n,l"),
    st.sampled_from(["0.0", "5.0"]),
    st.sampled_from(["0.0", "6.0", "10.0"]),
    st.sampled_from(["8.0", "20.0"]),
    st.just("FINISH"),
).map(",".join)
HEADER = "job_id,user,sched_class,job_name,logical_job_name,submit_s,schedule_s,end_s,end_event"


@settings(max_examples=EXAMPLES)
@given(st.lists(WALLS, min_size=1, max_size=8), st.lists(st.just("4,u,0"), max_size=1))
def test_google_walls(folder: Path, lines: list[str], damaged: list[str]) -> None:
    path = folder / "job_history_29d.csv"
    text = "\n".join([HEADER, *lines, *damaged]) + "\n"
    w = read("google2011", path, text, part="walls", on_bad_row="skip")
    if w is None:
        return
    rows = [line.split(",") for line in once(lines)]
    known = [(float(row[6]), float(row[7])) for row in rows]
    walls_s = [end - begin for begin, end in known if 0 < begin <= end]
    check_account(w, cpu_s=sum(walls_s), jobs=len(rows) + len(damaged))


DURATIONS = st.lists(st.sampled_from([0.0, 1.5, 60.0]), min_size=1, max_size=3)
GOOGLE = st.builds(
    lambda job, cpu, submit_s, dur_s: {
        "job": job, "user": 1, "lname": 1, "name": 1, "sched_class": 0, "priority": 0, "cpu": cpu,
        "mem": 0.25, "disk": 0.0, "submit_s": submit_s, "job_end_s": 900.0,
        "start_s": [10.0] * len(dur_s), "dur_s": dur_s,
    },
    st.sampled_from(["7", "8"]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([0.0, 5.0]),
    DURATIONS,
)  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(st.lists(GOOGLE, min_size=1, max_size=6), st.lists(st.just("{broken"), max_size=2))
def test_google_tasks(folder: Path, jobs: list[dict[str, Any]], damaged: list[str]) -> None:
    lines = [json.dumps(job) for job in jobs]
    text = "\n".join([*lines, *damaged]) + "\n"
    w = read("google2011", folder / "manytask_jobs.jsonl", text, on_bad_row="skip")
    assert w is not None
    rows = [json.loads(line) for line in once(lines)]
    work_s = [(row["cpu"], row["mem"], sum(row["dur_s"])) for row in rows]
    check_account(
        w,
        jobs=len(rows) + len(damaged),
        tasks=sum(len(row["dur_s"]) for row in rows),
        cpu_s=sum(cpu * s for cpu, _, s in work_s),
        mem_gib_s=sum(mem * s for _, mem, s in work_s),
    )


SLEARN = st.builds(
    lambda name, start_ms, dur_s: {
        "job.id": name, "job.start.ms": start_ms, "job.tasks": [{"c.dur": s * 1000} for s in dur_s]
    },
    st.sampled_from(["job_1", "job_2"]), st.sampled_from([0, 5]), DURATIONS,
)  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(st.lists(SLEARN, min_size=1, max_size=6), st.lists(st.just({"job.id": "x"}), max_size=2))
def test_slearn(folder: Path, jobs: list[dict[str, Any]], damaged: list[Any]) -> None:
    text = "\n".join(map(json.dumps, [*jobs, *damaged]))
    w = read("slearn_authors", folder / "t.trace", text, on_bad_row="skip")
    assert w is not None
    rows = [json.loads(line) for line in once(map(json.dumps, jobs))]
    seconds = [task["c.dur"] / 1000 for row in rows for task in row["job.tasks"]]
    check_account(w, jobs=len(rows) + len(damaged), tasks=len(seconds), cpu_s=sum(seconds))


STAGES = st.lists(
    st.tuples(st.sampled_from([0.0, 1.5, 8.0]), st.sampled_from([0.0, 0.25]), st.integers(1, 3)),
    min_size=1,
    max_size=3,
)
EDGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.integers(0, 3), STAGES, EDGES, st.booleans()), min_size=1, max_size=4))
def test_query_dags(folder: Path, dags: list[Any]) -> None:
    lines = []
    for number_, stages, edges, is_damaged in dags:
        lines += [f"# {number_}: TPC-H query{number_}", f"{len(stages)} {number_}"]
        lines += [f"s{i} {s} {cpu} 0.5 0 0 0 0 {n}" for i, (s, cpu, n) in enumerate(stages)]
        lines += ["1 2 3" if is_damaged else str(len(edges))]
        lines += [f"s{parent} s{child} ata" for parent, child in edges]
    w = read("tpc", folder / "dags.txt", "\n".join(lines) + "\n", on_bad_row="skip")
    if w is None:
        return
    account = check_account(w, jobs=len(dags))
    if not w.meta["report"]["dropped"]:
        counted = [stage for _, stages, _, _ in dags for stage in stages]
        check_account(
            w,
            cpu_s=sum(s * cpu * n for s, cpu, n in counted),
            mem_gib_s=sum(s * 0.5 * n for s, _, n in counted),
            tasks=sum(n for *_, n in counted),
            edges=sum(len(edges) for _, _, edges, _ in dags),
        )
    assert account["jobs"]["left_out"] == sum(w.meta["report"]["dropped"].values())


SPARK_STAGES = st.lists(st.sampled_from([{"2": [1000, 500]}, {"2": [], "4": [9]}]), max_size=3)


@settings(max_examples=EXAMPLES)
@given(st.lists(SPARK_STAGES.filter(bool), min_size=1, max_size=4))
def test_spark_queries(folder: Path, queries: list[Any]) -> None:
    content = {
        str(q): {
            "adj": [[int(b == a + 1) for b in range(len(stages))] for a in range(len(stages))],
            "dur": {
                str(g): {"first_wave": times, "rest_wave": {}, "fresh_durations": {}}
                for g, times in enumerate(stages)
            },
        }
        for q, stages in enumerate(queries)
    }
    text = json.dumps({"2g": content})
    w = read("spark_tpch", folder / "queries.json", text, executors=2, trained_at=None)
    if w is None:
        return
    measured = [stages for stages in queries if all(stage["2"] for stage in stages)]
    account = check_account(w, jobs=len(queries))
    assert account["cpu_s"]["workload"] == pytest.approx(1.5 * sum(map(len, measured)))
    assert account["tasks"]["workload"] == 2 * sum(map(len, measured))
    assert account["edges"]["workload"] == sum(len(stages) - 1 for stages in measured)
