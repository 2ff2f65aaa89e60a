"""Waits of one schedule: sums by user, queue and period, from the command and Python."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import policies
import sim
import sweep
from sim.base.errors import InputError
from sweep.driver.captured_run import capturing
from sweep.questions.why import recorded, waits, waits_page
from sweep.questions.why.waits import Waits
from tests.axe import violations
from tests.mlflow_ui import browser
from tests.sweep.questions.why.worlds import job, run
from tests.sweep.small import Command

HOUR = 3600.0
JOBS = [
    job("a", 0.0, [2 * HOUR], user="ann"),
    job("b", 0.0, [60.0], user="bob"),
    job("c", 1.5 * HOUR, [60.0], user="bob", queue="short"),
    job("d", 2.5 * HOUR, [60.0], user="ann"),
]
ONE_SLOT = sim.Cluster.slots(1)
LOG = (
    "job_id,submit_s,start_s,end_s,user,cpus\na,0,0,100,ann,2\nb,10,100,150,bob,2\n"
    "c,20,160,200,bob,1\nd,25,105,190,ann,1\n"
)
"""On three slots: b has no room until a ends, and c waits 100 s for b, then 10 s for a turn."""


def test_sums_by_user_queue_and_period() -> None:
    """On one slot b waits two hours for a, c half an hour for a and a minute for b."""
    sums = Waits(run(JOBS, ONE_SLOT), "fifo")
    assert sums.wait_s.tolist() == [0.0, 2 * HOUR, 0.5 * HOUR + 60.0, 0.0]
    assert sums.waits == {"no slot": 2.5 * HOUR + 60.0}
    by_user = {group.name: (group.n_jobs, group.wait_s) for group in sums.by("user")}
    assert by_user == {"bob": (2, 2.5 * HOUR + 60.0), "ann": (2, 0.0)}
    assert [(g.name, g.wait_s) for g in sums.by("hour")] == [
        ("1", 2 * HOUR), ("2", 0.5 * HOUR + 60.0), ("3", 0.0),
    ]  # fmt: skip
    assert [group.n_jobs for group in sums.by("day")] == [4]
    assert sums.columns == ["user", "queue", "hour"]
    with pytest.raises(InputError, match="usr"):
        sums.by("usr")
    first, second = waits.summary(sums)
    assert first.startswith("2 of 4 jobs waited under fifo, 2,265 s on average beside 1,845 s of")
    assert "100 % for a slot" in first
    assert second.startswith("100 % of the wait is that of 50 % of the jobs, of user bob")


def test_every_second_of_every_job_is_counted_once() -> None:
    rng = np.random.default_rng(3)
    jobs = [
        job(f"j{k}", float(k), [float(x) for x in rng.integers(1, 9, 2)], user=f"u{k % 3}")
        for k in range(40)
    ]
    captured = run(jobs, sim.Cluster.slots(2), "srpt")
    sums = Waits(captured, "srpt")
    jct_s = captured.result.job_finish - captured.result.job_submit
    assert sums.wait_s.sum() + sums.running_s == pytest.approx(jct_s.sum())
    for column in ("user", "queue", "hour"):
        assert sum(g.wait_s for g in sums.by(column)) == pytest.approx(sums.wait_s.sum())
    few = Waits(captured, "srpt", max_jobs=10)
    assert sorted(few.wait_s) == sorted(np.sort(sums.wait_s)[-10:])
    assert "of 10 jobs, the 10 that took longest of 40, waited" in waits.summary(few)[0]


def test_a_run_without_waits() -> None:
    idle = Waits(run(JOBS, sim.Cluster.slots(9)), "fifo")
    assert waits.summary(idle) == ("No job waited under fifo.",)
    assert "Waits under fifo" in waits_page.write_text(idle, "here")


def test_the_logs_own_schedule_is_that_of_its_starts(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    log = sim.read_trace("table", tmp_path / "log.csv")
    pool, runs = sim.Cluster.slots(3), []
    fifo = policies.build("fifo", fit="skip")
    capturing(runs)(log, pool, fifo, state=recorded.pinned(log, pool), record="tasks")
    assert runs[0].result.job_start.tolist() == [0.0, 100.0, 160.0, 105.0]
    sums = Waits(runs[0], "the log")
    assert sums.wait_s.tolist() == [0.0, 90.0, 140.0, 80.0]
    assert sums.waits["no slot"] == pytest.approx(90.0 + 45.0)
    assert sums.waits["order"] == pytest.approx(310.0 - 135.0)


def test_what_has_no_recorded_schedule_is_refused() -> None:
    none = sim.Workload.from_jobs(JOBS)
    with pytest.raises(InputError, match="no recorded starts"):
        recorded.pinned(none, ONE_SLOT)
    stages = {"job": [0], "n_tasks": [2], "demand_cpu": [1.0], "duration_s": [5.0]}
    loose = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0], "recorded_start_s": [0.0]}, stages=stages
    )
    with pytest.raises(InputError, match=r"trace\.tasks=job"):
        recorded.pinned(loose, ONE_SLOT)


def test_the_command_and_python_say_the_same(command: Command, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    ran = command("trace=table", f"trace.path={tmp_path / 'log.csv'}", "policy=fifo", "seed=0",
                  "cluster.count=3", "metrics=[jct_mean_s]", "name=waits")  # fmt: skip
    assert ran.code == 0, ran.err
    shown = command.verb("show", "waits", "0", "--why")
    assert shown.code == 0, shown.err
    cell = sweep.load(ran.folder).cell(policy="fifo")
    answer = cell.why()
    assert answer.summary.split(".")[0] in " ".join(shown.out.split())
    assert answer.by("user")["wait_s"].sum() == pytest.approx(answer.jobs["wait_s"].sum())
    assert re.search(r"^user +jobs +wait +a job", shown.out, re.M)
    logged = command.verb("show", "waits", "0", "--why", "--recorded")
    assert logged.code == 0, logged.err
    assert "the log's own schedule" in logged.out
    assert Path(logged.out.strip().splitlines()[-1]).exists()
    assert cell.why(recorded=True).jobs["wait_s"].tolist() == [0.0, 90.0, 140.0, 80.0]
    both = command.verb("show", "waits", "0", "--why", "--recorded", "--against", "srpt")
    assert (both.code, "leave out --against" in both.err) == (2, True)


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    sums, file = Waits(run(JOBS, ONE_SLOT), "fifo"), tmp_path / "waits.html"
    file.write_text(waits_page.write_text(sums, "a sweep"), encoding="utf-8")
    with browser() as tab:
        tab.goto(file.as_uri())
        text = re.sub(r"\s+", " ", tab.text_content("main"))
        assert waits.summary(sums)[0] in text
        assert "bob (2)" in text
        assert violations(tab) == []
        tab.set_viewport_size({"width": 390, "height": 844})
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
