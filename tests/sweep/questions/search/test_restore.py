"""Changes, costs and draws of a log: from words to tables, with a stand-in engine."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sweep.store.folder import SweepFolder
from tests.sweep.small import Command, FakeResult, fake_engine, fake_simulate

METRICS = ("wait_mean_s", "wait_p95_s", "utilization")


def simulate(
    workload: Any, cluster: Any, policy: Any, *, seed: int, record: str = "jobs"
) -> FakeResult:
    """Stand in for the simulator: waits are in proportion to jobs over machines."""
    result = fake_simulate(workload, cluster, policy, seed=0)
    result.metrics |= dict.fromkeys(METRICS, 10.0 * workload.n_jobs / float(cluster.total[0]))
    return result


@pytest.fixture
def fixed(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    fake_engine(monkeypatch, simulate, draws=False)
    return command


def test_a_table_of_changes_and_what_restores_todays_waits(fixed: Command) -> None:
    words = ("what_if.load=2", "what_if.nodes=+20", "what_if.without_queue=a", "cluster.count=10")
    ran = fixed("policy=fifo", *words, "cluster.price_per_machine_h=0.1")
    assert ran.code == 0, ran.err
    rows = {r["what_if"]: r for r in pq.read_table(ran.folder / "what_if.parquet").to_pylist()}
    assert [*rows] == ["", "load=2", "nodes=+20", "without_queue=a"]
    machines = {name: (row["machines"], row["restored_by"]) for name, row in rows.items()}
    assert machines == {
        "": (10, None), "without_queue=a": (10, 5), "nodes=+20": (30, None), "load=2": (10, 20),
    }  # fmt: skip
    assert rows["load=2"]["wait_p95_s"] == 2 * rows[""]["wait_p95_s"] == 12
    assert rows["load=2"]["cost_month"] == pytest.approx(730)
    assert rows["load=2"]["restored_cost_month"] == pytest.approx(1460)
    text = " ".join(ran.out.split())
    assert rows["nodes=+20"]["adds"] == "20 slots more (a pool has no nodes)"
    assert "fifo: nodes=+20: 20 slots more (a pool has no nodes)." in text
    assert (
        "fifo: load=2: p95 wait 12.00 s (today 6.000 s); 20 slots restore it (10 more, 1,460 a "
        "month)." in text
    )
    assert len(ran.rows) == 4
    assert {row["cost_month"] for row in ran.rows} == {730, 2190}
    page = (ran.folder / "report.html").read_text()
    assert "seeds=bootstrap (of a log of 8 hours or more) or seed=range(0,10) says how far" in page
    first, *_ = json.loads(re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)[1])
    (bars,) = first["data"]
    assert dict(zip(bars["y"], bars["x"], strict=True)) == {
        "today": 6, "load=2": 12, "nodes=+20": 2, "without_queue=a": 3,
    }  # fmt: skip
    assert bars["text"][bars["y"].index("load=2")] == "12.00 s; 20 slots restore today's"
    assert page.index('class="plots first"') < page.index("<h2>What if</h2>")
    again = fixed("policy=fifo", *words, "cluster.price_per_machine_h=0.2")
    assert {row["status"] for row in again.rows} == {"cached"}  # no price is part of a key
    words_of_load = next(row for row in ran.rows if row["what_if.load"] == 2)["reproduce"]
    assert "what_if.load=2 what_if.today=false" in words_of_load


def by_group(ran: Any) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = pq.read_table(ran.folder / "what_if_groups.parquet").to_pylist()
    return {(row["what_if"], row["by"], row["group"]): row for row in rows}


def test_waits_of_groups_beside_todays(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(workload: Any, cluster: Any, policy: Any, *, seed: int, record: str = "jobs") -> Any:
        """Let jobs of row k wait for 60 k s over the machines, of odd seeds a tenth more."""
        result = simulate(workload, cluster, policy, seed=seed)
        row = np.arange(workload.n_jobs)
        wait_s = 60.0 * row / float(cluster.total[0]) * (1.1 if seed % 2 else 1.0)
        result.job_start = result.job_submit + wait_s
        return result

    fake_engine(monkeypatch, waits)
    words = ("what_if.nodes=+10", "what_if.load=queue=a:2", "what_if.restore=null", "seed=0,1,2,3")
    ran = command("policy=fifo", "cluster.count=10", *words)
    assert ran.code == 0, ran.err
    rows = by_group(ran)
    whole = rows["nodes=+10", "all", ""]
    n = whole["jobs"]
    assert whole["wait_mean_today_s"] == pytest.approx(1.05 * 3 * (n - 1))
    assert (whole["change"], whole["change_low"]) == pytest.approx((-0.5, -0.5))
    assert whole["low"] < whole["wait_mean_s"] < whole["high"]
    assert whole["seeds"] == 4
    queues = [row for (label, by, _), row in rows.items() if (label, by) == ("nodes=+10", "queue")]
    assert sum(row["jobs"] for row in queues) == n
    load = rows["load=queue=a:2", "queue", "a"]
    assert load["jobs"] == 2 * load["jobs_today"]
    text = " ".join(ran.out.split())
    assert "fifo: 10 more machines (nodes=+10): mean wait " in text
    assert "s (−50 % [−50, −50])." in text or "s (−50 %)." in text
    (entry, _) = json.loads((ran.folder / "answer.json").read_text())["what_if"]
    assert (entry["what_if"], entry["change"]) == ("nodes=+10", "10 more machines")
    assert entry["sentences"][0].startswith("10 more machines (nodes=+10): mean wait ")


def test_a_fixed_log_takes_one_seed_and_says_the_cheapest(fixed: Command) -> None:
    ran = fixed(
        "policy=fifo", "capacity=interval(0.5,3)", "cluster.count=10", "target.metric=wait_p95_s",
        "target.at_most=4", "cluster.price_per_machine_h=1",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (row,) = pq.read_table(ran.folder / "targets.parquet").to_pylist()
    assert (row["machines"], row["seeds"], row["is_sure"]) == (15, 1, True)
    assert row["cost_month"] == 15 * 730
    assert "The cheapest cluster for fifo costs 10,950 a month (15 slots)." in " ".join(
        ran.out.split()
    )
    assert "the search takes one" in ran.err


def test_draws_of_a_log_give_intervals(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def noisy(workload: Any, cluster: Any, policy: Any, *, seed: int, record: str = "jobs") -> Any:
        result = fake_simulate(workload, cluster, policy, seed=0)
        slow = 1.0 if policy.name == "fifo" else 0.9
        result.metrics["wait_p95_s"] = slow * (100 + 3 * seed) / float(cluster.total[0])
        return result

    fake_engine(monkeypatch, noisy, draws=False)
    words = ("policy=fifo,easy", "baseline=fifo", "seeds=bootstrap", "seeds_block=user")
    monkeypatch.setattr("sim.transforms.draws.MIN_BLOCKS", 1)
    ran = command(*words, "cluster.count=10", "metrics=[wait_p95_s]", "verdict.metric=wait_p95_s")
    assert ran.code == 0, ran.err
    fifo = [row["wait_p95_s"] for row in ran.rows if row["policy"] == "fifo"]
    assert fifo == [(100 + 3 * seed) / 10 for seed in range(10)]
    (entry,) = SweepFolder(ran.folder).verdict()
    spread = 0.9 * 0.3 * 3.0276503540974917 * (1 + 1 / 10) ** 0.5 * 2.2621571628540993
    mean = 0.9 * (100 + 13.5) / 10
    ends = [mean * math.exp(sign * spread / mean) for sign in (-1, 1)]
    assert entry["interval"] == pytest.approx(ends)
    assert entry["against_interval"] == pytest.approx([1 / 0.9] * 2)  # paired: the same draws
    assert "10 draws of the log (bootstrap)" in ran.out
    goal = ("capacity=interval(0.5,3)", "target.metric=wait_p95_s", "target.at_most=10")
    outcome = command(*words, *goal, "cluster.count=10")
    by_policy = {
        r["policy"]: r for r in pq.read_table(outcome.folder / "targets.parquet").to_pylist()
    }
    row = by_policy["fifo"]
    assert row["machines"] == 12  # the mean over draws is 113.5 / machines
    half = spread / 0.9 * 10
    assert (row["machines_low"], row["machines_high"]) == (
        (113.5 - half) // 10, (113.5 + half) // 10 + 1,
    )  # fmt: skip
    assert f"95 % interval: more than {row['machines_low']:g}, at most" in " ".join(
        outcome.out.split()
    )


def test_a_capacity_at_which_nothing_waits_is_said(fixed: Command) -> None:
    ran = fixed("policy=fifo", "cluster.count=100", "capacity=0.01,1")
    assert "policies are alike at 1; give capacity=0.0" in ran.err
    assert re.search(
        r": next to nothing waits from .* \(at most \d+ slots in use at once\)", ran.err
    )
    what_if = fixed("policy=fifo", "cluster.count=100", "what_if.faster=2", "what_if.restore=null")
    assert "parquet, faster=2: next to nothing waits" in what_if.err
    assert "nothing waits" not in fixed("policy=fifo", "cluster.count=3").err
