"""Programs and their runs: a synthesized workload recurs like the fitted one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import policies
import sim
from policies.wing.programs import file
from policies.wing.programs.profiles import fit_profiles
from sim import transforms
from sim.base.dataclass_json import encode
from sim.base.errors import InputError
from sim.dags import Graphs
from sim.describe import flow
from sim.describe.fidelity import ks
from sim.workload.columns import job_n_tasks
from sim.workload.halves import second_half
from sim.workload.paths import critical_path_s
from sim.workload.tables import names, values


def recurring_workload(n: int = 360) -> sim.Workload:
    """Recurring programs of two users, some with deadlines, and jobs of a third user.

    Every run of ``report`` reads the latest of ``load``; reports are downloaded an hour later.
    """
    rng = np.random.default_rng(5)
    kinds = {
        "load": ("ann", [[30.0] * 4], {"priority": 2.0}),
        "report": ("ann", [[9.0, 12.0], [20.0]], {"priority": 1.0}),
        "train": ("bob", [[50.0] * 3, [60.0], [70.0]], {"queue": "gpu"}),
    }
    jobs, submit_s = [], 0.0
    for number in range(n):
        submit_s += float(rng.exponential(7200.0))
        name = list(kinds)[number % 3] if number % 4 else ""
        user, stages, more = kinds.get(name, ("eve", [[float(rng.uniform(1, 5))]], {}))
        factor = float(np.exp(0.1 * rng.normal()))
        stage_list = [
            {"name": f"s{k}", "durations_s": [factor * x for x in lasts]}
            | ({"parents": [f"s{k - 1}"]} if k else {})
            for k, lasts in enumerate(stages)
        ]
        job = {
            "submit_s": submit_s,
            "template": name,
            "application": name,
            "user": user,
            "stages": stage_list,
        }
        if name == "train":
            job["deadline_s"] = 3 * factor * 180.0
        jobs.append(job | more)
    w = sim.Workload.from_jobs(jobs)
    template = [names(w.jobs, "template")[c] for c in values(w.jobs, "template")]
    up, down, latest = [], [], -1
    for row, name in enumerate(template):
        if name == "load":
            latest = row
        if name == "report" and latest >= 0:
            up.append(latest)
            down.append(row)
    reports = [row for row, name in enumerate(template) if name == "report"]
    submit_s = values(w.jobs, "submit_s")
    return sim.Workload.from_tables(
        jobs=w.jobs, stages=w.stages, tasks=w.tasks, stage_edges=w.stage_edges,
        job_edges={"upstream": up, "downstream": down},
        downloads={"job": reports, "time_s": submit_s[reports] + 3600.0},
    )  # fmt: skip


@pytest.fixture(scope="module")
def real() -> sim.Workload:
    return recurring_workload()


@pytest.fixture(scope="module")
def fitted(real, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("fit") / "programs.json"
    file.write(file.fit(real), path)
    return str(path)


@pytest.fixture(scope="module")
def synthesized(fitted) -> sim.Workload:
    return sim.synthesize("programs", jobs=300, seed=1, tables=fitted)


def job_labels(w: sim.Workload, column: str) -> list[str]:
    return [names(w.jobs, column)[code] for code in values(w.jobs, column)]


def test_same_seed_same_content(fitted, synthesized):
    again = sim.synthesize("programs", jobs=300, seed=1, tables=fitted)
    assert again.digest == synthesized.digest
    assert sim.synthesize("programs", jobs=300, seed=2, tables=fitted).digest != synthesized.digest
    read, fresh = file.read(fitted), file.fit(recurring_workload())
    assert read.programs == fresh.programs
    assert encode(read) == encode(fresh)


def test_programs_recur_as_often_with_their_labels(real, synthesized):
    labels = ("template", "user", "queue", "application")
    kinds = [
        Counter(zip(*(job_labels(w, name) for name in labels), strict=True))
        for w in (real, synthesized)
    ]
    assert kinds[0].keys() == kinds[1].keys()
    for kind, n in kinds[0].items():
        assert kinds[1][kind] / 300 == pytest.approx(n / 360, abs=0.05)
    priority = dict(
        zip(job_labels(synthesized, "template"), values(synthesized.jobs, "priority"), strict=True)
    )
    assert (priority["load"], priority["report"], priority[""]) == (2.0, 1.0, 0.0)
    codes = values(synthesized.jobs, "template")
    assert flow.recurrence(codes) == pytest.approx(
        flow.recurrence(values(real.jobs, "template")), abs=0.03
    )


def test_runs_of_a_program_are_similar_and_work_is_as_fitted(real, synthesized):
    template = np.array(job_labels(synthesized, "template"))
    shapes = Graphs.from_workload(synthesized).job_n_stages
    for name in ("load", "report", "train"):
        rows = template == name
        assert len(set(shapes[rows])) == 1
        assert len(set(job_n_tasks(synthesized)[rows])) == 1
    assert np.log(flow.job_work_s(synthesized)[template == "train"]).std() < 0.5
    assert (
        ks(flow.job_work_s(synthesized), flow.job_work_s(real)) < 0.3
    )  # what stages have is drawn on its own
    assert len(set(flow.job_work_s(synthesized)[template == ""])) > 30


def test_the_latest_inputs_are_read_and_reports_are_downloaded(synthesized):
    template, submit_s = (
        np.array(job_labels(synthesized, "template")),
        values(synthesized.jobs, "submit_s"),
    )
    up, down = (values(synthesized.job_edges, end) for end in ("upstream", "downstream"))
    assert len(up) >= 0.9 * (template == "report").sum()
    assert set(template[up]) == {"load"}
    assert set(template[down]) == {"report"}
    loads = np.flatnonzero(template == "load")
    assert all(u == loads[loads < d][-1] for u, d in zip(up.tolist(), down.tolist(), strict=True))
    job = values(synthesized.downloads, "job")
    assert set(template[job]) == {"report"}
    lag = values(synthesized.downloads, "time_s") - submit_s[job]
    assert lag == pytest.approx(3600.0)


def test_past_runs_are_the_history_and_the_last_ones_are_recorded(fitted, synthesized):
    assert 290 <= synthesized.history.num_rows <= 300  # those that had ended
    assert values(synthesized.history, "finish_s").max() <= 0.0
    worth = synthesized.history.to_pandas()
    reports, loads = (worth[worth["template"] == name] for name in ("report", "load"))
    assert reports["value"].dropna().eq(1.0).all()
    assert loads["agg_value"].median() > loads["value"].median() == 0.0  # by those that read it
    assert set(job_labels(synthesized, "user")) >= set(names(synthesized.history, "user"))
    due = ~np.isnan(synthesized.columns.job_deadline)
    assert set(np.array(job_labels(synthesized, "template"))[due]) == {"train"}
    ratio = synthesized.columns.job_deadline[due] / critical_path_s(synthesized.columns)[due]
    assert ratio == pytest.approx(3.0, rel=1e-4)
    table = synthesized.training.to_pandas()
    assert set(table["template"]) == {"train"}
    assert set(table["run"]) == {0, 1, 2}
    job = int(np.flatnonzero(due)[0])
    per_run = table[table["run"] == 0]
    assert len(per_run) == job_n_tasks(synthesized)[job]
    assert (per_run["finish_s"] >= per_run["start_s"]).all()
    assert per_run["ready_s"].max() > 0.0
    bare = sim.synthesize("programs", jobs=50, seed=1, tables=fitted, history=0)
    assert (bare.history.num_rows, bare.training.num_rows) == (0, 0)


def test_deadlines_can_be_assumed(tmp_path):
    flat = sim.Workload.from_jobs(
        [
            {
                "submit_s": 9.0 * i,
                "template": f"t{i % 3}",
                "stages": [{"durations_s": [5.0 + i % 3]}],
            }
            for i in range(60)
        ]
    )
    assert np.isnan(transforms.apply(flat, "resynthesize").columns.job_deadline).all()
    due = transforms.apply(flat, "resynthesize", deadline=2.0)
    assert due.jobs.num_rows == 60
    known = np.array(job_labels(due, "template"))
    first = [int(np.flatnonzero(known == name)[0]) for name in set(known)]
    deadline = due.columns.job_deadline
    assert np.isnan(deadline[first]).all()
    assert np.isnan(deadline).sum() == 3
    assert np.nanmin(deadline) >= 10.0 - 1e-6


def test_longer_workloads_have_the_same_programs(fitted):
    long = sim.synthesize("programs", jobs=1000, seed=1, tables=fitted, history=0)
    assert set(job_labels(long, "template")) == {"load", "report", "train", ""}
    once = sim.Workload.from_jobs(
        [
            {"submit_s": 1.0 * i, "template": f"t{i}", "stages": [{"durations_s": [1.0 + i]}]}
            for i in range(20)
        ]
    )
    synthesized = transforms.apply(once, "resynthesize", jobs=50)
    assert len(set(job_labels(synthesized, "template"))) == 50


def rigid(days: int = 12) -> sim.Workload:
    """A log of rigid jobs: each day ten jobs of one user and one kind, some killed."""
    rng = np.random.default_rng(7)
    jobs = []
    for i in range(10 * days):
        day, number = divmod(i, 10)
        width, asked_s = (1, 8, 32)[day % 3], (600.0, 3600.0, 7200.0)[day % 4 % 3]
        duration_s = min(float(rng.uniform(0.01, 1.2)), 1.0) * asked_s
        job = {"submit_s": 86400.0 * day + 300.0 * number, "user": f"u{day % 2}", "queue": "q"}
        job |= {"min_tasks": width, "stages": [{"durations_s": [duration_s] * width}]}
        jobs.append(job | ({} if number == 9 else {"requested_s": asked_s}))
    return sim.Workload.from_jobs(jobs)


def test_jobs_with_requested_times_come_in_sessions_of_a_kind(tmp_path):
    real = rigid()
    file.write(file.fit(real), tmp_path / "log.json")
    synthesized = sim.synthesize("programs", jobs=100, seed=3, tables=tmp_path / "log.json")
    assert np.array_equal(values(synthesized.jobs, "min_tasks"), job_n_tasks(synthesized))
    kinds = []
    for w in (real, synthesized):
        asked_s = w.columns.job_requested
        kinds.append(
            list(zip(job_labels(w, "user"), job_n_tasks(w), np.nan_to_num(asked_s), strict=True))
        )
        assert (critical_path_s(w.columns)[asked_s > 0] <= asked_s[asked_s > 0] + 1e-6).all()
    assert set(kinds[1]) <= set(kinds[0])
    repeats = np.mean([a == b for a, b in pairwise(kinds[1])])
    assert repeats > 0.7  # drawn one by one, 0.1
    day = (values(synthesized.jobs, "submit_s") % 86400.0) // 3600.0
    assert day.max() < 1.0
    first = [kind[0] for kind in kinds[1]]
    weeks = sim.synthesize("programs", jobs=400, seed=3, tables=tmp_path / "log.json")
    assert job_labels(weeks, "user")[:100] == first
    assert np.isnan(weeks.columns.job_deadline).all()


def test_kinds_of_one_name_are_one_program_with_deadlines():
    jobs = [
        {"submit_s": 600.0 * i, "template": f"t{i % 3}", "requested_s": 60.0 * (1 + i % 2),
         "stages": [{"durations_s": [20.0 + i % 7] * (1 + i % 4)}]}
        for i in range(120)
    ]  # fmt: skip
    synthesized = transforms.apply(
        sim.Workload.from_jobs(jobs), "resynthesize", seed=3, jobs=300, deadline=2.0
    )
    assert set(job_labels(synthesized, "template")) == {
        "t0",
        "t1",
        "t2",
    }  # not t0~1: kinds came again
    assert (~np.isnan(synthesized.columns.job_deadline)).sum() > 200


def test_tasks_of_a_stage_spread_as_in_the_fitted_workload():
    rng = np.random.default_rng(1)
    jobs = [
        {"submit_s": 5.0 * i, "template": f"t{i % 5}",
         "stages": [{"durations_s": np.exp(0.7 * rng.normal(size=30) + i % 5).tolist()}]}
        for i in range(100)
    ]  # fmt: skip
    synthesized = transforms.apply(sim.Workload.from_jobs(jobs), "resynthesize", seed=3)
    spread = [profile.spread for profile in fit_profiles(synthesized)]
    assert 0.4 < np.mean(spread) < 0.8


def test_halves_and_a_workload_fitted_to_the_first(real):
    ids = {
        side: set(transforms.apply(real, "half", part=side, split=3).jobs["job_id"].to_pylist())
        for side in ("first", "second")
    }
    assert not ids["first"] & ids["second"]
    assert len(ids["second"]) == second_half(real, 3).sum()
    synthesized = transforms.apply(real, "half", part="made", split=3, seed=1)
    assert synthesized.n_jobs == len(ids["first"])
    assert synthesized.digest != transforms.apply(real, "half", part="made", split=4, seed=1).digest


def test_wrong_files_are_errors(tmp_path):
    with pytest.raises(InputError, match="needs tables=FILE"):
        sim.synthesize("programs")
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="must be of the format"):
        sim.synthesize("programs", tables=path)
    path.write_text('{"format": "programs 3", "programs": [], "tables": {}, "source": ""}')
    with pytest.raises(InputError, match="tables: there is no entry"):
        sim.synthesize("programs", tables=path)
    with pytest.raises(InputError, match="no such file; make it with"):
        sim.synthesize("programs", tables=tmp_path / "none.json")


@pytest.mark.long
@pytest.mark.parametrize("name", [
    "fifo", "las", "sjf", "srpt", "drf", "tetris", "critical_path", "tez", "dagps", "slearn",
    "threesigma", "bayes", "priority", "wing_agg", "wing_mil", "wing_dep", "jockey",
    "jockey_arbiter",
])  # fmt: skip
def test_every_policy_of_the_grand_experiment_runs(fitted, name):
    w = sim.synthesize("programs", jobs=150, seed=1, tables=fitted)
    chosen = {"infeasible": "run"} if name.startswith("jockey") else {}
    r = sim.simulate(w, sim.Cluster.slots(6), policies.build(name, **chosen), seed=0)
    assert (r.jobs["outcome"].to_numpy() == "done").all()
