"""Attempts of a log become tasks or are counted; the layout does not depend on their order."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.check.account import check_account
from sim.workload.attempts import FAILED, NEVER_RAN, RUNNING, Attempt, AttemptLog, LoggedJob
from tests.examples import examples

ONE: dict[str, float] = {"cpu": 1.0}


def build(*attempts: Attempt, per_s: float = 1.0, **jobs: LoggedJob) -> sim.Workload:
    log = AttemptLog("log", per_s)
    log.attempts = list(attempts)
    log.jobs = jobs
    return log.workload("log", {"cpu": 1e-3})


def attempt(job: str, start: float, end: float, stage: str = "s", **more: Any) -> Attempt:
    return Attempt(job, stage, start, end, more.pop("demand", ONE), **more)


def test_a_clock_of_milliseconds_gives_exact_seconds() -> None:
    base = 1_795_870_357_174.0
    w = build(
        attempt("a", base, base + 303), attempt("b", base + 3, base + 3), per_s=1000.0,
        a=LoggedJob("a", base), b=LoggedJob("b", base + 1),
    )  # fmt: skip
    assert w.tasks["duration_s"].to_pylist() == [0.303, 0.0005]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 0.001]
    assert w.jobs["recorded_finish_s"].to_pylist() == [0.303, 0.003]
    assert w.meta["resolution_s"] == 1e-3
    check_account(w, cpu_s=0.303)


def test_a_job_counts_once_and_its_attempts_each() -> None:
    w = build(
        attempt("a", 0, 5, rule=FAILED), attempt("a", 5, 15), attempt("a", math.nan, math.nan),
        attempt("b", 0, math.nan, rule=RUNNING), attempt("c", 9, 3), attempt("d", 3, math.nan),
        a=LoggedJob("a", 0), b=LoggedJob("b", 0), c=LoggedJob("c", 0), d=LoggedJob("d", 0),
    )  # fmt: skip
    account = check_account(w, cpu_s=15, jobs=4, tasks=6)
    assert w.meta["report"]["dropped"] == {
        FAILED: 1, NEVER_RAN: 1, RUNNING: 1, "ends before it starts": 1, "end unknown": 1,
    }  # fmt: skip
    assert (account["jobs"]["workload"], account["cpu_s"]["unknown"]) == (1, 3)


def test_like_tasks_and_unknown_cpus() -> None:
    w = build(
        attempt("a", 0, 10, n_tasks=3, node="n1", demand={"cpu": math.nan, "gpu": 2.0}),
        a=LoggedJob("a", 0, min_tasks=2),
    )
    assert w.stages["n_tasks"].to_pylist() == [3]
    assert w.meta["report"]["filled"] == {"CPUs unknown: 1": 1}
    account = check_account(w, cpu_s=0, gpu_s=60, tasks=3)
    assert account["cpu_s"]["changed"] == -30


def test_gangs_of_unequal_tasks_are_told() -> None:
    parts = [attempt("a", 0, 10, "x", demand={"cpu": 1.0}),
             attempt("a", 0, 10, "y", demand={"cpu": 3.0})]  # fmt: skip
    alone = build(*parts, a=LoggedJob("a", 0))
    assert "warnings" not in alone.meta["report"]
    exact = build(*parts, a=LoggedJob("a", 0, min_tasks=2))
    assert "warnings" not in exact.meta["report"]
    edges = [("x", "y", "barrier")]
    for gang in (
        build(*parts, a=LoggedJob("a", 0, min_tasks=2, edges=edges)),
        build(*parts, *parts, a=LoggedJob("a", 0, min_tasks=3)),
    ):
        (warning,) = gang.meta["report"]["warnings"]
        assert "50.0 % more cpu × time than the log's" in warning


def test_edges_to_stages_without_tasks_are_left_out() -> None:
    edges = [("x", "y", "barrier"), ("y", "z", "barrier"), ("x", "z", "barrier")]
    w = build(
        attempt("a", 0, 1, "x"), attempt("a", 0, 1, "y", rule=FAILED), attempt("a", 1, 2, "z"),
        a=LoggedJob("a", 0, edges=edges),
    )  # fmt: skip
    assert [(e["parent"], e["child"]) for e in w.stage_edges.to_pylist()] == [(0, 1)]


def test_a_log_without_a_task_says_why() -> None:
    with pytest.raises(sim.InputError, match="no job is left; dropped: 1 × a failed attempt"):
        build(attempt("a", 0, 1, rule=FAILED), a=LoggedJob("a", 0))
    with pytest.raises(sim.InputError, match="the trace has no rows"):
        build()


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 9),
                  st.integers(0, 9), st.sampled_from(["", FAILED])),
        min_size=1, max_size=12,
    ),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_the_order_of_attempts_changes_nothing(drawn: list[Any], rng: random.Random) -> None:
    attempts = [attempt(job, start, start + run, stage, rule=rule)
                for job, stage, start, run, rule in drawn]  # fmt: skip
    attempts.append(attempt("a", 0, 1))
    jobs = {name: LoggedJob(name, 0.0) for name in "abc"}
    shuffled = rng.sample(attempts, len(attempts))
    first, second = (build(*item, **jobs) for item in (attempts, shuffled))
    assert first.digest == second.digest
    total = float(sum(item.end - item.start for item in attempts))
    check_account(first, cpu_s=total, tasks=len(attempts))
