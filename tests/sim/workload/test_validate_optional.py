"""The tables of earlier runs and of failures, and deadlines that change."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sim
from sim.transforms import scale_tasks
from sim.workload import schema
from tests.sim.workload.tables import build

RUNS = {
    "template": ["b", "a", "a", "a"],
    "run": [0, 0, 0, 0],
    "stage": [0, 1, 0, 0],
    "task": [0, 0, 1, 0],
    "ready_s": [0.0, 4.0, 0.0, 0.0],
    "start_s": [0.0, 5.0, 1.0, 0.0],
    "finish_s": [2.0, 9.0, 5.0, 3.0],
    "init_s": [0.5, 1.0, 1.0, 0.25],
    "n_failed": [0, 2, 0, 1],
}
FAILURES = {"task": [2, 0, 2], "after_s": [5.0, 1.5, 0.0], "lost": [0, -1, -1]}


def jobs(**columns) -> sim.Workload:
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": 0.0,
                "template": "a",
                "deadline_s": 10.0,
                "stages": [
                    {"name": "map", "durations_s": [3.0, 4.0]},
                    {"name": "reduce", "durations_s": [5.0], "parents": {"map": "one_to_one"}},
                ],
                **columns,
            },
            {"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]},
        ]
    )


def test_runs_are_kept_by_template_run_stage_and_task():
    w = jobs().with_training(RUNS)
    assert w.training.column_names == [c.name for c in schema.TRAINING]
    known = w.columns.training
    assert len(known) == 4
    assert w.columns.template_names == ("a", "")
    assert known.template.tolist() == [-1, 0, 0, 0]
    assert known.column("stage").tolist() == [0, 0, 0, 1]
    assert known.column("task").tolist() == [0, 0, 1, 0]
    assert known.column("finish_s").tolist() == [2.0, 3.0, 5.0, 9.0]
    assert known.column("n_failed").tolist() == [0, 1, 0, 2]
    assert not known.template.flags.writeable


def test_failures_come_by_task_and_stay_in_the_order_of_attempts():
    columns = jobs().with_failures(FAILURES).columns
    assert columns.attempt0.tolist() == [0, 1, 1, 3, 3]
    assert columns.attempt_s.tolist() == [1.5, 5.0, 0.0]
    assert columns.attempt_lost.tolist() == [-1, 0, -1]


def test_without_the_tables_the_columns_are_empty():
    columns = jobs().columns
    assert columns.attempt0.tolist() == [0]
    assert len(columns.attempt_s) == len(columns.attempt_lost) == len(columns.training) == 0
    assert len(columns.training.template) == 0
    assert np.isnan(columns.job_new_deadline).all()
    assert jobs().with_training(None).with_failures(None).digest == jobs().digest


def test_the_tables_are_part_of_the_content_and_travel(tmp_path):
    w = jobs(new_deadline_s=20.0, new_deadline_at_s=5.0).with_training(RUNS).with_failures(FAILURES)
    assert len({w.digest, w.with_training(None).digest, w.with_failures(None).digest}) == 3
    w.columns.training.template  # noqa: B018
    w.write(tmp_path)
    for back in (sim.Workload.read(tmp_path), pickle.loads(pickle.dumps(w, protocol=5))):
        assert back.digest == w.digest
        assert back.columns.attempt0.tolist() == [0, 1, 1, 3, 3]
        assert back.columns.training.template.tolist() == [-1, 0, 0, 0]
        assert back.columns.job_new_deadline[0] == 20.0
        assert back.columns.job_new_deadline_at[0] == 5.0
        assert np.isnan(back.columns.job_new_deadline[1])
    w.with_failures(None).write(tmp_path)
    assert not (tmp_path / "failures.parquet").exists()


def test_another_history_leaves_the_other_tables():
    w = jobs().with_training(RUNS).with_failures(FAILURES).with_history(None)
    assert w.training.num_rows == 4
    assert w.failures.num_rows == 3


def test_of_jobs_that_are_taken_the_failures_are_renumbered():
    both = sim.Workload.from_jobs(
        [
            {"submit_s": 0.0, "stages": [{"durations_s": [1.0, 2.0]}]},
            {
                "submit_s": 1.0,
                "stages": [
                    {"name": "map", "durations_s": [3.0]},
                    {"name": "reduce", "durations_s": [5.0], "parents": ["map"]},
                ],
            },
        ]
    ).with_failures({"task": [1, 3, 3], "after_s": [1.0, 2.0, 3.0], "lost": [-1, 2, -1]})
    second = both.take([1])
    assert second.failures["task"].to_pylist() == [1, 1]
    assert second.failures["lost"].to_pylist() == [0, -1]
    assert second.failures["after_s"].to_pylist() == [2.0, 3.0]
    assert both.slice_time(0.5, np.inf).failures.equals(second.failures)
    assert both.take([0]).failures["task"].to_pylist() == [1]


def test_failures_are_drawn_after_all_else():
    w = jobs().with_failures(FAILURES)
    with pytest.raises(sim.InputError, match="fail_tasks after all others"):
        scale_tasks(w, machines=2, shape={"cpu": 1.0}, load=0.5)


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"task": [2, 4, 2]}, "row out of range"),
        ({"after_s": [5.0, 3.5, 0.0]}, "fails after its end"),
        ({"after_s": [5.0, -1.0, 0.0]}, "negative number"),
        ({"lost": [1, -1, -1]}, "not a parent's task"),  # one-to-one: only task 0 of the parent
        ({"lost": [0, 2, -1]}, "not a parent's task"),
        ({"lost": [0, -1, 3]}, "not a parent's task"),
        ({"lost": [0, -2, -1]}, "negative number"),
        ({"lost": [0, 9, -1]}, "row out of range"),
    ],
)
def test_broken_failures_are_named(columns, rule):
    with pytest.raises(sim.InputError, match="failures") as caught:
        jobs().with_failures(FAILURES | columns)
    assert caught.value.rule == rule


def test_behind_a_barrier_any_task_of_the_parent_may_be_lost():
    w = build(stage_edges={"kind": ["barrier"]})
    for lost in (0, 1):
        failing = w.with_failures({"task": [2], "after_s": [0.0], "lost": [lost]})
        assert failing.failures["lost"].to_pylist() == [lost]


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"start_s": [0.0, 3.0, 1.0, 0.0]}, "ends before it starts"),
        ({"finish_s": [2.0, 4.5, 5.0, 3.0]}, "ends before it starts"),
        ({"task": [0, 0, 0, 0]}, "recorded twice"),
        ({"n_failed": [0, -1, 0, 0]}, "negative number"),
        ({"stage": [0, None, 0, 0]}, "missing value"),
    ],
)
def test_broken_runs_are_named(columns, rule):
    with pytest.raises(sim.InputError, match="training") as caught:
        jobs().with_training(RUNS | columns)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    "columns",
    [
        {"new_deadline_s": 20.0},
        {"new_deadline_at_s": 5.0},
        {"deadline_s": None, "new_deadline_s": 20.0, "new_deadline_at_s": 5.0},
    ],
)
def test_half_a_change_of_deadline_is_refused(columns):
    with pytest.raises(sim.InputError) as caught:
        jobs(**columns)
    assert caught.value.rule == "half a change of deadline"


@pytest.mark.parametrize(
    ("new", "change_s", "missed"),
    [
        (8.0, 6.0, 0.0),  # the job takes 8 s: the new one holds, and is met
        (7.5, 6.0, 1.0),
        (7.5, 8.5, 0.0),  # it had ended before that
        (7.5, 8.0, 1.0),  # from that instant on
    ],
)
def test_the_deadline_counts_that_holds_when_the_job_ends(new, change_s, missed):
    w = jobs(new_deadline_s=new, new_deadline_at_s=change_s)
    run = sim.simulate(w, sim.Cluster.slots(8), _Nothing())
    assert run.job_finish[0] == 8.0
    assert run.metrics["deadlines_missed"] == missed


class _Nothing:
    name = "nothing"
    events = sim.engine.plan.Event.NONE

    def begin(self, world, plan):
        return None

    def react(self, memory, batch, world, plan):
        pass
