"""everything: the parts of the workload, and the rules that join them (decision 42)."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.wing.bqetl.files import read_files
from policies.wing.programs.profiles import job_labels
from policies.wserpt.everything.links import PER_RUN, Reads, draw_downloads, draw_reads
from policies.wserpt.everything.make import BANDS, DUE_STEP_S, MIN_RUNS, RATIOS
from policies.wserpt.everything.tables import Tables, fit, shipped
from sim.base.parameters import type_hints
from sim.check import invariants
from sim.check.record import Record
from sim.workload.tables import names, values

JOBS = 300
NAMES = [name for name in policies.names() if not policies.spec(name).rigid_jobs]


@pytest.fixture(scope="module")
def workload() -> sim.Workload:
    return sim.synthesize("everything", jobs=JOBS, seed=1001)


@pytest.fixture(scope="module")
def small() -> sim.Workload:
    return sim.synthesize("everything", jobs=60, seed=1001)


def test_every_system_has_something_to_do(workload):
    columns = workload.columns
    assert workload.n_jobs == JOBS
    assert workload.resources == ("cpu", "mem")
    n_stages = np.diff(columns.job_stage0)
    assert (n_stages > 1).mean() > 0.3
    assert n_stages.max() > 5
    wide = np.bincount(columns.stage_job, columns.stage_n_tasks)
    assert (wide >= 10).mean() > 0.3
    due = ~np.isnan(columns.job_deadline)
    assert 0.1 < due.mean() < 0.6
    assert set(np.unique(columns.job_template[due])) <= set(np.unique(columns.training.template))
    assert workload.job_edges.num_rows > 20
    assert values(workload.downloads, "n").sum() > 50
    assert workload.history.num_rows > JOBS
    known = np.isin(job_labels(workload, "application"), names(workload.history, "application"))
    assert 0.4 < known.mean() < 0.95  # new programs among known ones
    assert {len(set(job_labels(workload, name))) > 1 for name in ("user", "queue")} == {True}
    assert np.nansum(workload.history["agg_value"].to_numpy()) > 0


def test_runs_of_a_program_share_what_is_drawn_for_it(workload):
    columns = workload.columns
    template, user = columns.job_template, job_labels(workload, "user")
    n_stages, deadline_s = np.diff(columns.job_stage0), np.nan_to_num(columns.job_deadline)
    priority = values(workload.jobs, "priority")
    queue = job_labels(workload, "queue")
    for code in np.unique(template):
        rows = np.flatnonzero(template == code)
        assert len({(n_stages[r], deadline_s[r], user[r], priority[r]) for r in rows}) == 1
    lowest = {name: low for low, name in BANDS}
    assert (priority >= [lowest[name] for name in queue]).all()
    assert (np.mod(deadline_s, DUE_STEP_S) == 0).all()


def test_own_inputs_are_waited_for_and_others_are_not(workload):
    up, down = (values(workload.job_edges, end) for end in ("upstream", "downstream"))
    hard = np.array(names(workload.job_edges, "kind"))[values(workload.job_edges, "kind")] == "hard"
    user = np.array(job_labels(workload, "user"))
    assert ((user[up] == user[down]) == hard).all()
    assert (up < down).all()
    mode = np.array(job_labels(workload, "input_mode"))
    assert (mode[down[hard]] == "poll").all()
    assert set(mode) == {"none", "poll"}


def test_the_same_seed_gives_the_same_workload():
    first, again, other = (
        sim.synthesize("everything", jobs=50, seed=seed).digest for seed in (3, 3, 4)
    )
    assert first == again != other


def test_no_deadlines_or_history_if_none_are_asked_for():
    workload = sim.synthesize("everything", jobs=50, seed=3, due=0.0)
    assert np.isnan(workload.columns.job_deadline).all()
    assert not workload.training.num_rows


def test_deadlines_are_multiples_of_the_past_critical_path():
    from policies.wserpt.everything.make import _deadlines

    runs = [np.array([0, 2, 5]), np.array([1, 3]), np.array([4])]
    cp_s = np.array([100.0, 7, 300, 7, 7, 900])
    due_s = _deadlines(runs, 4, cp_s, 1.0, seed=0)
    assert MIN_RUNS == 2
    targets = [DUE_STEP_S * np.ceil(ratio * 200 / DUE_STEP_S) for ratio in RATIOS]
    assert due_s[5] in targets
    assert np.isnan(due_s[4])  # a program without past runs


def test_reads_are_of_the_latest_earlier_run():
    runs = [np.array([0, 4, 9]), np.array([3, 5, 10]), np.array([1])]
    reads = Reads(np.array([0, 1]), np.array([1, 2]), np.array([True, False]))
    edges = reads.edges(runs)
    assert edges["upstream"].tolist() == [0, 4, 9]  # program 2 ran before program 1 did
    assert edges["downstream"].tolist() == [3, 5, 10]
    assert edges["kind"] == ["hard"] * 3


def test_numbers_of_inputs_are_the_tables():
    tables = Tables((), (), ((0, 1), (2, 1)), ((1, 1),), 1.0, {})
    user = np.zeros(400, np.int64)
    runs = [np.array([i]) for i in range(400)]
    reads = draw_reads(tables, user, runs, seed=1)
    per_program = np.bincount(reads.down, minlength=400)
    assert set(per_program) <= {0, 1, 2}
    assert abs((per_program == 2).mean() - 0.5) < 0.1
    assert reads.own.all()
    assert len(np.unique(np.stack([reads.up, reads.down]), axis=1).T) == len(reads.up)


def test_downloads_take_the_latest_complete_run():
    runs = [np.arange(0, 200, 2), np.arange(1, 200, 2)]
    finish_s = 10.0 * np.arange(200)
    table = draw_downloads(runs, np.array([1], np.int32), finish_s, seed=2)
    job, time_s = table["job"], table["time_s"]
    assert len(job) == PER_RUN * 200
    assert (job % 2 == 0).all()  # the other program is read
    last = job == 198
    assert (time_s >= finish_s[job]).all()
    assert (time_s < finish_s[job] + 20.0)[~last].all()


def test_tables_are_fitted_to_the_traces(shared_traces):
    tables = read_files(shared_traces / "lineage", "error")
    jobs = sim.read_trace("google2011", shared_traces / "google2011")
    fitted = fit(jobs, tables.dag, tables.up, tables.down)
    assert fitted == shipped()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_every_policy_runs_on_it(small, name):
    late = {"infeasible": "run"} if "infeasible" in type_hints(policies.spec(name)) else {}
    policy = policies.build(name, **late)
    cluster = sim.Cluster.machines(3, cpu=0.25, mem=0.25)
    result = sim.simulate(small, cluster, policy, seed=1, record="tasks")
    if (
        late or name == "max_allocation"
    ):  # Jockey's: spare tasks are evicted, so that a job's first start is not that of a task
        run = Record(result)
        assert np.isfinite(run.finish).all()
        invariants.check_tasks_run_their_duration(run)
        invariants.check_inputs_come_first(run)
        invariants.check_capacity(run)
    else:
        invariants.check(result, policy.fit)
    assert np.isfinite(result.metrics["utility"])
    assert np.isfinite(result.metrics["value_attained"])
