from __future__ import annotations

import json
import math
import re
import shutil
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

import policies
import sweep as api
from sim import Cluster, Workload, simulate
from sim.base import interrupt
from sweep.cli import main
from sweep.driver.sweep_loop import SweepLoop
from sweep.execution.compute import Runner
from sweep.execution.inputs import Inputs
from sweep.execution.workload_build import ANSWER, convert
from sweep.questions.search import target_section
from sweep.questions.search.targets import TargetSearches
from tests.sweep.small import (
    Command,
    FakeResult,
    Ran,
    every_file,
    fake_engine,
    fake_simulate,
    interrupted_after,
)

METRIC = "jct_mean_s"
NEEDS = {"fifo": 50.0, "srpt": 31.0, "sjf": 40.0}
KIND_A = "target.nodes=a"
TARGET = ("target.metric=jct_p99_s", "target.at_most=600", "cluster.count=50", "cluster.load=null")
GRID = ("policy=fifo,srpt,sjf", "capacity=interval(0.3,1.5)", *TARGET)


def simulate_needing(needs: dict[str, float], spread: float = 0.01, bump: float = 0.0) -> Any:
    """Stand in for the simulator: a policy's p99 is 600 s with as many machines as it needs."""

    def simulate(
        workload: Any, cluster: Any, policy: Any, *, seed: int, record: str = "jobs"
    ) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=0)
        machines = float(cluster.total[0])
        noise = np.random.default_rng([seed, len(policy.name)]).normal()
        slow = bump if 0.8 < machines / 50 < 1.3 else 0.0
        value = 600.0 * (needs[policy.name] - 0.5) / machines * (1 + slow)
        result.metrics["jct_p99_s"] = value * math.exp(spread * noise)
        return result

    return simulate


def targets(ran: Ran) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(ran.folder / "targets.parquet").to_pylist()
    return {row["policy"]: row for row in rows}


def test_each_policy_has_its_threshold(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, simulate_needing(NEEDS, 0.001))
    ran = command(*GRID, "baseline=fifo")
    assert ran.code == 0, ran.err
    print(ran.out)
    actual = targets(ran)
    for policy, needed in NEEDS.items():
        row = actual[policy]
        assert (row["status"], row["machines"]) == ("met", needed)
        assert row["capacity"] == needed / 50
        assert row["low"] == (needed - 1) / 50
        assert row["high"] == row["capacity"]
        assert row["target"] == "jct_p99_s <= 600"
    assert "srpt (oracle) needs 31 slots, 0.62 times as many as fifo, which needs 50." in ran.out


@pytest.mark.parametrize(
    ("n", "words"),
    [(162, "as many as fifo."), (81, "0.50 times as many as fifo, which needs 162.")],
)
def test_needs_are_told_beside_the_baselines(n: int, words: str) -> None:
    shared = {"status": "met", "settings": "", "unit": "slots", "value": None, "note": ""}
    rows = [
        {**shared, "policy": policy, "machines": machines, "is_sure": True, "seeds": 1}
        for policy, machines in (("fifo", 162), ("easy", n))
    ]
    sentences = target_section._sentences(rows, "fifo", cast("Any", None))
    assert sentences == [f"easy needs {n} slots, {words}"]


def test_never_and_always_are_results(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, simulate_needing({"fifo": 500.0, "srpt": 31.0, "sjf": 3.0}))
    ran = command(*GRID)
    actual = targets(ran)
    assert (actual["fifo"]["status"], actual["fifo"]["machines"]) == ("never", None)
    assert actual["fifo"]["low"] == 1.5
    assert (actual["sjf"]["status"], actual["sjf"]["machines"]) == ("always", 15.0)
    assert actual["srpt"]["machines"] == 31.0
    assert "fifo misses the target even with 75 slots, the most tried (3" in ran.out
    assert "sjf (oracle) needs at most 15 slots, the fewest tried (" in ran.out
    assert "srpt (oracle) needs 31 slots." in ran.out


def test_too_few_seeds_leave_an_interval(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, simulate_needing(NEEDS, 0.15))
    row = targets(ran := command("policy=srpt", *GRID[1:], "seeds_max=10"))["srpt"]
    assert row["status"] == "met"
    assert row["seeds"] == 10
    assert not row["is_sure"]
    assert row["machines_low"] < 31 - 1 < row["machines_high"]
    assert "10 seeds (seeds_max) are too few for 95 % confidence" in " ".join(ran.out.split())
    assert row["machines_low"] < row["machines"] < row["machines_high"]
    ends = f"surely more than {row['machines_low']:g}"
    assert f"{ends} and surely at most {row['machines_high']:g}." in " ".join(ran.out.split())
    with_more = targets(command("policy=srpt", *GRID[1:], "seeds_max=30"))["srpt"]
    left = [
        table_row["machines_high"] - table_row["machines_low"] for table_row in (row, with_more)
    ]
    assert left[1] <= left[0]


def test_a_metric_that_is_not_monotone_is_seen(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, simulate_needing({"srpt": 31.0}, bump=1.0))
    ran = command("policy=srpt", *GRID[1:])
    row = targets(ran)["srpt"]
    assert (row["status"], row["machines"]) == ("met", 31.0)
    assert row["machines_safe"] == 61.0
    assert row["capacity_safe"] == 61 / 50
    assert "not monotone: 60 misses the target, all tried from 61 on meet it" in row["note"]
    assert row["is_sure"]
    assert f"srpt (oracle) needs 31 slots; {row['note']}." in " ".join(ran.out.split())
    is_met = {probe["machines"]: probe["is_met"] for probe in row["probes"]}
    assert (is_met[31.0], is_met[60.0], is_met[61.0]) == (True, False, True)
    # the tables of means show a few of the capacities tried
    assert len(json.loads((ran.folder / "verdict.json").read_text())) == 5


def test_omissions_of_the_trace_are_reported_once(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, simulate_needing(NEEDS))
    jobs = command.trace / "jobs.parquet"
    table = pq.read_table(jobs)
    pq.write_table(table.append_column("application_name", [["a"] * table.num_rows]), jobs)
    ran = command(*GRID)
    assert ran.err.count("did you mean application?") == 1


def test_the_plot_marks_sizes_that_meet_the_target(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, simulate_needing({"srpt": 31.0}, 0.0))
    words = ("policy=srpt", "capacity=interval(0.1,2)", *TARGET, "seed=0")
    actual = pq.read_table(command(*words).folder / "targets.parquet")
    goal = {"metric": "jct_p99_s", "bound": 600.0, "is_most": True, "low": 0.1, "high": 2.0}
    (plot,) = target_section.build(actual, {"goal": goal, "baseline": None}).plots
    srpt, target = plot.figure["data"]
    for n, symbol in zip(srpt["x"], srpt["marker"]["symbol"], strict=True):
        assert symbol == ("circle" if n >= 31 else "circle-open")
    assert target["y"] == [600.0, 600.0]
    assert target["text"][0] == "target: at most 600 s"
    # 183 s to 3,660 s, and 5 to 100 slots
    assert plot.figure["layout"]["yaxis"]["type"] == "log"
    assert plot.figure["layout"]["yaxis"]["ticktext"][:2] == ["200 s", "500 s"]
    assert plot.figure["layout"]["xaxis"]["tickvals"] == [5, 10, 20, 50, 100]
    near = ("policy=srpt", "capacity=interval(0.5,2)", *TARGET, "seed=0")
    actual = pq.read_table(command(*near).folder / "targets.parquet")
    (plot,) = target_section.build(actual, {"goal": goal, "baseline": None}).plots
    assert plot.figure["layout"]["yaxis"] == {"type": "linear", "ticksuffix": " s"}


def test_at_least(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=seed)
        result.metrics["value_attained"] = min(1.0, float(cluster.total[0]) / 40)
        return result

    fake_engine(monkeypatch, simulate)
    request = ("target.metric=value_attained", "target.at_least=0.9", *GRID[4:])
    ran = command("policy=fifo", GRID[1], *request)
    assert targets(ran)["fifo"]["machines"] == 36.0
    assert "value_attained at least 90%" in ran.out


def test_the_same_command_again_runs_nothing(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, simulate_needing(NEEDS))
    first = command(*GRID)
    before = every_file(first.folder)
    again = command(*GRID)
    assert again.folder == first.folder
    assert "every cell is cached" in again.err
    after = every_file(again.folder)
    assert {name for name in before if before[name] != after[name]} == {
        "cells.parquet",
        "SHA256SUMS",
    }
    # another target is another sweep, which shares what it can
    other = command(*GRID[:3], "target.at_most=601", *GRID[4:])
    assert other.folder != first.folder
    assert {"cached", "done"} >= {row["status"] for row in other.rows}


def test_an_interrupted_search_ends_with_the_same_bytes(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    whole_simulate = simulate_needing(NEEDS, 0.05)
    fake_engine(monkeypatch, whole_simulate)
    words = list(GRID)
    words_without_paths = [word for word in command.words(*words) if not word.startswith("paths")]
    whole = command.bare(*words_without_paths, f"paths.results={tmp_path / 'whole'}")
    for n in (3, 80):
        fake_engine(monkeypatch, interrupted_after(whole_simulate, n))
        assert command(*words).code == interrupt.INTERRUPTED
    fake_engine(monkeypatch, whole_simulate)
    assert every_file(command(*words).folder) == every_file(whole.folder)


def test_other_verbs_know_its_cells(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, simulate_needing(NEEDS))
    planned = command.bare("plan", *command.words(*GRID))
    assert "270 cells, 0 cached, 270 to run" in planned.out
    assert "the search starts with" in planned.out
    ran = command(*GRID)
    planned = command.bare("plan", *command.words(*GRID))
    assert "270 cells, 270 cached, 0 to run" in planned.out
    assert "5 of 5 cells are the same" in command.verb("verify").out
    assert command.verb("retry", "launcher=inline", "tracking=none").folder == ran.folder
    before = (ran.folder / "report.md").read_text()
    assert command.verb("report").code == 0
    assert (ran.folder / "report.md").read_text() == before
    assert "srpt (oracle) needs 31 slots, 0.62 times as many as fifo" in before
    assert 'id="targets"' in (ran.folder / "report.html").read_text()
    assert "finished in" in command.verb("status").out
    sentence = "srpt (oracle) needs 31 slots, 0.62 times as many as fifo, which needs 50."
    assert sentence in command.verb("list").out
    loaded = api.load(ran.folder)
    assert sentence in repr(loaded)
    assert all(sentence in entry["answer"] for entry in loaded.verdict)
    assert len(loaded.verdict) == 5


def test_too_small_a_cluster_misses(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, simulate_needing({"fifo": 1.0}))
    shape = ("cluster=machines", "cluster.shape={cpu:1}", "cluster.count=4", "cluster.load=null")
    ran = command("policy=fifo", "capacity=interval(0.2,1)", *TARGET[:2], *shape)
    assert ran.code == 0, ran.err
    assert targets(ran)["fifo"]["unit"] == "machines"


def test_failed_cells_end_a_search(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    good = simulate_needing(NEEDS)

    def broken(workload: Any, cluster: Any, policy: Any, **options: Any) -> FakeResult:
        if policy.name == "srpt" and cluster.total[0] < 30:
            raise RuntimeError("no")
        return good(workload, cluster, policy, **options)  # type: ignore[no-any-return]

    fake_engine(monkeypatch, broken)
    ran = command(*GRID)
    assert ran.code == 1
    actual = targets(ran)
    srpt = actual["srpt"]
    assert (srpt["status"], srpt["machines"], srpt["low"]) == ("met", 31.0, 0.6)
    assert srpt["note"] == "cells failed at 29"
    assert srpt["is_sure"]
    assert "which needs 50; cells failed at 29." in " ".join(ran.out.split())
    assert actual["fifo"]["machines"] == 50.0


def test_one_seed_is_exact(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, simulate_needing(NEEDS, 0.0))
    row = targets(command(*GRID, "seed=3"))["srpt"]
    assert (row["machines"], row["seeds"]) == (31.0, 1)


def test_tolerance(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, simulate_needing(NEEDS, 0.0))
    row = targets(command(*GRID, "target.tolerance=0.2"))["fifo"]
    assert row["machines_low"] < 50 <= row["machines"] <= 60
    assert row["machines"] - row["machines_low"] <= 0.2 * row["machines"]


def test_a_metric_without_a_value_is_an_error(fake: Command) -> None:
    words = ("target.metric=deadlines_missed", "target.at_most=0.1", "policy=fifo", GRID[1])
    ran = fake(*words)
    assert ran.code == main.WRONG
    assert "target.metric=deadlines_missed has no value for fifo on parquet" in ran.err


def test_variants_of_a_policy_have_separate_rows(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        result = fake_simulate(workload, cluster, policy, seed=seed)
        result.metrics["jct_p99_s"] = 600.0 * (10 * policy.queues - 0.5) / float(cluster.total[0])
        return result

    fake_engine(monkeypatch, simulate)
    ran = command("policy=las", "policy.queues=3,4", *GRID[1:])
    rows = pq.read_table(ran.folder / "targets.parquet").to_pylist()
    assert [(row["settings"], row["machines"]) for row in rows] == [
        ("policy.queues=3", 30.0),
        ("policy.queues=4", 40.0),
    ]
    assert (
        "las policy.queues=4 needs 40 slots, 1.33 times as many as las policy.queues=3" in ran.out
    )


def test_it_stops_after_so_many_failures(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> FakeResult:
        raise RuntimeError("no")

    fake_engine(monkeypatch, broken)
    ran = command(*GRID, "max_failures=2")
    assert ran.code == 1
    assert sum(row["error_type"] == "RuntimeError" for row in ran.rows) == 2
    for row in targets(ran).values():
        assert (row["status"], row["is_sure"], row["machines"]) == ("never", False, None)
    assert "srpt (oracle) misses the target even with 75 slots" in ran.out


def test_the_high_end_must_fit(fake: Command) -> None:
    demanding(fake, 3)
    words = ("cluster=machines", "cluster.shape={slot:2}", "cluster.count=10", "cluster.load=null")
    ran = fake("policy=fifo", GRID[1], *TARGET[:2], *words)
    assert ran.code == main.WRONG
    assert "the high end of capacity's interval: at capacity 1.5" in ran.err


def test_a_trace_is_sized_where_it_is_converted(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the driver loads no trace")

    request = fake.request(*GRID)
    local_labels = [cell.labels for cell in SweepLoop(TargetSearches(request)).first.grid.cells]
    monkeypatch.setattr(Inputs, "workload", refuse)
    shutil.rmtree(fake.results)
    remote_loop = SweepLoop(
        TargetSearches(request), cast("Runner", SimpleNamespace(convert=convert))
    ).first
    assert [cell.labels for cell in remote_loop.grid.cells] == local_labels
    (name,) = {cell.workload for cell in remote_loop.planned}
    assert set(remote_loop.inputs.describe(name)).isdisjoint({ANSWER})


def demanding(command: Command, slots: float) -> None:
    """Replace the trace by jobs whose tasks hold this many slots each."""
    stages = [{"durations_s": [1.0] * 7, "demand": {"slot": slots}}]
    jobs = [{"submit_s": 9.0 * index, "stages": stages} for index in range(9)]
    Workload.from_jobs(jobs).write(command.trace)


def test_machines_are_whole_ones(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        seen.append((cluster.n_machines, float(cluster.total[0])))
        result = fake_simulate(workload, cluster, policy, seed=seed)
        result.metrics["jct_p99_s"] = 600.0 * 17.5 / cluster.n_machines
        return result

    fake_engine(monkeypatch, simulate)
    words = ("cluster=machines", "cluster.shape={slot:3}", "cluster.load=0.01")
    demanding(command, 1)
    ran = command("policy=fifo", "capacity=interval(0.5,1.5)", *TARGET[:2], *words)
    assert ran.code == 0, ran.err
    assert all(total == 3 * n for n, total in seen)
    row = targets(ran)["fifo"]
    assert (row["machines"], row["machines_low"], row["unit"]) == (18.0, 17.0, "machines")
    for row in ran.rows:  # in few digits
        assert len(repr(row["capacity"])) <= 14


KINDS = "cluster.shape=[{class: a, count: 8, slot: 3}, {class: b, count: 5, slot: 1}]"


def test_machines_of_a_kind_alone(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def simulate(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> FakeResult:
        sizes = cluster.capacity[:, 0].tolist()
        assert sizes.count(1.0) == 5  # as they are
        seen.add(sizes.count(3.0))
        result = fake_simulate(workload, cluster, policy, seed=seed)
        result.metrics["jct_p99_s"] = 600.0 * NEEDS[policy.name] / 10 / sizes.count(3.0)
        return result

    fake_engine(monkeypatch, simulate)
    demanding(command, 2)
    words = ("cluster=machines", KINDS, "cluster.count=1", "cluster.load=null")
    ran = command("policy=fifo,srpt", "capacity=interval(0,1.5)", *TARGET[:2], *words, KIND_A)
    assert ran.code == 0, ran.err
    assert min(seen) == 1  # none has no room for a task
    assert max(seen) == 12
    rows = targets(ran)
    assert {name: row["machines"] for name, row in rows.items()} == {"fifo": 5.0, "srpt": 4.0}
    assert (rows["fifo"]["capacity"], rows["fifo"]["unit"]) == (5 / 8, "a machines")
    assert {row["capacity"] for row in ran.rows} == {1.0}
    assert {row["cluster.extra"] for row in ran.rows} == {n - 8 for n in seen}
    assert "fifo needs 5 a machines; its largest job needs 1 a machine." in ran.out
    assert "Fewest a machines with jct_p99_s at most 600 s" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cluster.shape={slot:3}",), "names no kind"),
        ((KINDS, "target.nodes=c"), "nodes=c .* names no kind"),
        ((KINDS, "cluster.extra=2"), "target.nodes=a sets cluster.extra"),
        ((KINDS, "capacity=interval(0.01,0.02)"), "no number of machines lies between"),
    ],
)
def test_kinds_that_can_not_be_searched(command: Command, words: Any, message: str) -> None:
    own = ("cluster=machines", "cluster.count=1", "cluster.load=null", KIND_A)
    ran = command("policy=fifo", "capacity=interval(0.5,1.5)", *TARGET[:2], *own, *words)
    assert ran.code == 2
    assert re.search(message, ran.err)


@pytest.mark.parametrize("number", range(3))
def test_real_workloads_against_every_number_of_slots(command: Command, number: int) -> None:
    rng = np.random.default_rng(number)
    jobs = [
        {
            "submit_s": float(20 * (index // 5)),
            "stages": [{"durations_s": [float(rng.integers(5, 40))] * int(rng.integers(1, 9))}],
        }
        for index in range(25)
    ]
    workload = Workload.from_jobs(jobs)
    workload.write(command.trace)
    exact = {
        policy: [
            simulate(workload, Cluster.slots(n), policies.build(policy), seed=0).metrics[METRIC]
            for n in range(4, 25)
        ]
        for policy in ("fifo", "srpt")
    }
    bound = float(np.median(exact["fifo"]))
    request = (f"target.metric={METRIC}", f"target.at_most={bound!r}", "seed=0")
    cluster = ("cluster.count=20", "cluster.load=null", "capacity=interval(0.2,1.2)")
    ran = command("policy=fifo,srpt", *request, *cluster)
    assert ran.code == 0, ran.err
    for policy, row in targets(ran).items():
        meets = [n for n, value in enumerate(exact[policy], start=4) if value <= bound]
        actual = int(row["machines"])
        assert actual in meets
        assert row["value"] == exact[policy][actual - 4]
        # the smallest, unless the metric is not monotone between probes
        is_monotone = meets == list(range(meets[0], 25))
        assert actual == meets[0] or not is_monotone
