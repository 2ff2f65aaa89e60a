"""Releases of Slurm's jobs: throttles and dependencies are simulated, begin and hold shift them."""

from __future__ import annotations

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.workload.delays import delayed, kind_of, reasons, share_before_eligible
from tests.sim.traces.test_sacct import DAY, HEAD, load, record

COLUMNS = HEAD + "|Eligible|Reason|SubmitLine"


def row(job, eligible, start, reason="None", command="sbatch a.sh", submit="09:00:00", **changes):
    """Return a record of a job of ten minutes that was submitted at nine."""
    hour, minute, second = (int(part) for part in start.split(":"))
    end = f"{hour + (minute + 10) // 60:02}:{(minute + 10) % 60:02}:{second:02}"
    times = {"Submit": DAY + submit, "Start": DAY + start, "End": DAY + end}
    return record(job, **{**times, **changes}) + f"|{DAY}{eligible}|{reason}|{command}"


def array(limit="%2", reasons_=True, command=True):
    """Return four elements of which two might run at once."""
    late = "JobArrayTaskLimit" if reasons_ else "None"
    text = f"sbatch --array=1-4{limit} a.sh" if command else "sbatch a.sh"
    return [
        row("7_1", "09:00:00", "09:00:00", command=text),
        row("7_2", "09:00:00", "09:00:05", command=text),
        row("7_3", "09:10:00", "09:10:01", late, text),
        row("7_4", "09:10:05", "09:10:06", late, text),
    ]


def by_id(workload, name):
    return dict(
        zip(workload.jobs["job_id"].to_pylist(), workload.jobs[name].to_pylist(), strict=True)
    )


@pytest.mark.parametrize(
    "rows",
    [
        array(),
        [line.replace("--array=", "-a ") for line in array()],
        array(command=False),  # inferred from reasons and from elements that came free later
        array(command=False, reasons_=False),
        [*array(command=False), row("7_[5-9%2]", "09:00:00", "09:00:00", State="PENDING")],
    ],
)
@pytest.mark.parametrize("tasks", ["cpus", "nodes"])
def test_a_throttle_is_simulated(tmp_path, rows, tasks):
    w = load(tmp_path, *rows, head=COLUMNS, tasks=tasks)
    assert w.jobs["array"].to_pylist() == ["7"] * 4
    assert w.jobs["throttle"].to_pylist() == [2] * 4
    assert w.jobs["submit_s"].to_pylist() == [0.0] * 4
    assert by_id(w, "delayed_by") == {"7_1": "", "7_2": "", "7_3": "throttle", "7_4": "throttle"}
    assert delayed(w).simulated == {"throttle": 2}
    result = sim.simulate(w, sim.Cluster.slots(9), policies.build("easy"))
    assert result.jobs["start_s"].to_pylist() == [0.0, 0.0, 600.0, 600.0]


def test_no_throttle_is_made_up(tmp_path):
    free = [row(f"7_{i}", "09:00:01", f"09:{10 * i}:00") for i in range(1, 5)]
    w = load(tmp_path, *free, head=COLUMNS, arrays="jobs")
    assert w.jobs["throttle"].to_pylist() == [0] * 4
    joined = load(tmp_path, *free, head=COLUMNS)
    assert joined.jobs["job_id"].to_pylist() == ["7"]
    assert "throttle" not in joined.jobs.column_names
    by_element = [
        row(f"7_{i}", f"09:{10 * i}:00", f"09:{10 * i}:00", command="sbatch -d aftercorr:6 a.sh")
        for i in range(1, 5)
    ]
    w = load(tmp_path, *by_element, head=COLUMNS, arrays="jobs")
    assert w.jobs["throttle"].to_pylist() == [0] * 4


def test_elements_of_a_held_array_are_free_together(tmp_path):
    text = "sbatch -H --array=1-3%1 a.sh"
    times = (("1", "09:30:00"), ("2", "09:40:00"), ("3", "09:50:00"))
    rows = [row("6", "09:00:00", "09:00:00")]
    rows += [row(f"7_{i}", start, start, "JobArrayTaskLimit", text) for i, start in times]
    w = load(tmp_path, *rows, head=COLUMNS)
    assert w.jobs["submit_s"].to_pylist() == [0.0, 1800.0, 1800.0, 1800.0]
    result = sim.simulate(w, sim.Cluster.slots(9), policies.build("easy"))
    assert result.jobs["start_s"].to_pylist() == [0.0, 1800.0, 2400.0, 3000.0]


@pytest.mark.parametrize(
    ("reason", "command", "cause"),
    [
        ("BeginTime", "sbatch a.sh", "begin"),
        ("QOSMaxCpuPerUserLimit", "sbatch --begin=2026-03-01T09:20:00 a.sh", "begin"),
        ("JobHeldUser", "sbatch a.sh", "hold"),
        ("Priority", "sbatch --hold a.sh", "hold"),
        ("Dependency", "sbatch a.sh", "dependency"),  # on a job that the log does not name
        ("None", "sbatch a.sh", "other"),
    ],
)
def test_what_no_schedule_changes_shifts_the_release(tmp_path, reason, command, cause):
    rows = [row("1", "09:00:00", "09:00:00"), row("2", "09:20:00", "09:25:00", reason, command)]
    w = load(tmp_path, *rows, head=COLUMNS)
    assert w.jobs["submit_s"].to_pylist() == [0.0, 1200.0]
    assert w.jobs["recorded_submit_s"].to_pylist() == [0.0, 0.0]
    assert delayed(w).shifted == {cause: 1}
    assert delayed(w).simulated == {}


def test_a_dependency_is_simulated(tmp_path):
    rows = [
        row("1", "09:00:00", "09:05:00"),
        row("2", "09:15:00", "09:20:00", "Dependency", "sbatch --dependency=afterany:1 a.sh"),
    ]
    w = load(tmp_path, *rows, head=COLUMNS)
    assert w.jobs["submit_s"].to_pylist() == [0.0, 0.0]
    assert w.job_edges.to_pylist() == [{"upstream": 0, "downstream": 1, "kind": "afterany"}]
    assert delayed(w).simulated == {"dependency": 1}
    result = sim.simulate(w, sim.Cluster.slots(9), policies.build("fifo"))
    assert result.jobs["start_s"].to_pylist() == [0.0, 600.0]  # recorded: 300 and 1200
    assert result.metrics["wait_mean_s"] == 300.0  # from submission on


def test_reasons(tmp_path):
    texts = {
        "JobArrayTaskLimit": "throttle", "QOSGrpCpuLimit": "limit", "AssocMaxJobsLimit": "limit",
        "Dependency": "dependency", "JobHeldAdmin": "hold", "BeginTime": "begin time",
        "Priority": "", "Resources": "", "PartitionNodeLimit": "limit", "MaxMemPerLimit": "limit",
        "Licenses": "",
    }  # fmt: skip
    assert {text: kind_of(text) for text in texts} == texts
    rows = [
        row("1", "09:00:00", "09:10:00", "Priority"),
        row("2", "09:00:00", "09:20:00", "QOSGrpCpuLimit"),
        row("3", "09:15:00", "09:20:00", "JobHeldUser"),
        row("4", "09:00:00", "09:00:00", "ReqNodeNotAvail, UnavailableNodes:n[1-3]"),
        row("5", "09:00:00", "09:10:00", "None"),
    ]
    w = load(tmp_path, *rows, head=COLUMNS)
    assert set(w.jobs["reason"].to_pylist()) == {
        "Priority", "QOSGrpCpuLimit", "JobHeldUser", "ReqNodeNotAvail", "",
    }  # fmt: skip
    counts = reasons(w)
    assert (counts.n_jobs, counts.wait_s, counts.n_named) == (5, 3600.0, 2)
    assert counts.jobs == {"limit": 1, "hold": 1}
    assert counts.waits_s == {"limit": 1200.0, "hold": 1200.0}
    assert counts.share == pytest.approx(2 / 3)
    assert share_before_eligible(w) == pytest.approx(900 / 3600)
    assert reasons(load(tmp_path, record())) is None


@pytest.mark.parametrize("tasks", ["cpus", "nodes"])
def test_arrays_and_policies_that_reserve(tmp_path, tasks):
    rows = [record(f"7_{i}", AllocCPUS=2, State="COMPLETED") for i in (1, 2)]
    rows += [record("8"), record("9_1", AllocCPUS=4)]
    easy, cluster = policies.build("easy"), sim.Cluster.slots(9)
    free = load(tmp_path, *rows, tasks=tasks)  # no option is needed
    assert free.jobs["job_id"].to_pylist()[:2] == ["7_1", "7_2"]
    assert sim.simulate(free, cluster, easy).jobs.num_rows == 4
    single = [record(f"7_{i}") for i in (1, 2)]
    joined = load(tmp_path, *single, tasks=tasks, arrays="job")
    with pytest.raises(InputError, match=r"make its elements jobs .*trace\.arrays=jobs"):
        sim.simulate(joined, cluster, easy)
