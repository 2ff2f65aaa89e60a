"""Backtest one step at a time: states, starts and quiet moments, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policies
import sim
from sim.cli.main import main as sim_main
from sim.transforms.parts import rebuild
from sim.workload.tables import with_column
from sweep.questions.backtest import step_sentences
from sweep.questions.backtest.mechanisms import Model, without_each
from sweep.questions.backtest.steps import cycle_of, find_moments, judge, steps_table
from tests.examples import COMPILED_WIDE
from tests.sweep.questions.backtest.recorded import SMALL, Logged, two_nodes, workload_of
from tests.sweep.small import Command

pytestmark = pytest.mark.skipif(
    COMPILED_WIDE, reason="loops that begin in a state would be compiled for these alone"
)


def small(policy: str = "slurm") -> Model:
    return Model(workload_of(SMALL), two_nodes(), policies.build(policy))


def test_moments_are_starts_and_what_happens_while_somebody_waits() -> None:
    model = small()
    # bf_interval, the least time between two passes, and two plans of 0.01 s
    assert cycle_of(model, 5.0) == pytest.approx((33.02, 33.02))
    slow = replace(model.policy, cycle_s=1.0, longest_cycle_s=4.0)
    assert cycle_of(model._replace(policy=slow), 5.0) == (35.0, 41.0)
    assert cycle_of(small("fifo"), 5.0) == (5.0, 5.0)
    moments = find_moments(model, 33.0)
    assert moments.start_s.tolist() == [0, 100, 150, 400, 410, 500, 600]
    # at 200 nobody waits; what happens at 0, 100, 150, 400, 410, 500 and 600 has a start
    assert moments.quiet_s.tolist() == [10, 20, 300, 420, 430]


@pytest.mark.parametrize("policy", ["slurm", "fifo"])
def test_what_a_model_starts_in_each_state_of_the_log(policy: str) -> None:
    """The model would start E at 300 already, and G instead of H at 500.

    All but H are found: the log's next start of each is where the model has it. E and F are on
    other nodes: the model takes the first one for E, and the one with less room left for F.
    """
    model = small(policy)
    steps = judge(model, find_moments(model, 33.0))
    matches = dict(zip("ABCDEFGH", steps.matches.tolist(), strict=True))
    assert {name for name, value in matches.items() if value == 0} == {"H"}
    nodes = {name for name, value in matches.items() if value == 2}
    assert nodes == ({*"ABCDG"} if policy == "slurm" else {*"ABCDFG"})  # fifo: the first node
    assert [int(job) for _, job in steps.false] == [6]  # G
    assert steps.quiet.tolist() == [10, 20, 300, 420, 430]
    assert [(int(i), int(job)) for i, job in steps.broken] == [(2, 4)]  # E, at 300
    assert steps.late == 0


def test_a_start_within_the_longest_cycle_breaks_no_quiet_moment() -> None:
    model = small()
    assert len(judge(model, find_moments(model, 33.0, 99.0)).broken) == 1
    assert len(judge(model, find_moments(model, 33.0, 100.0)).broken) == 0  # E, at 400


@pytest.mark.parametrize(("submit_s", "n_broken"), [(310.0, 0), (324.0, 1)])
def test_a_start_that_the_model_gives_up_within_a_cycle(submit_s: float, n_broken: int) -> None:
    """At 290 E would start; X, which comes before the cycle is over, goes first and waits for A."""
    jobs = [
        Logged("A", 0, 0, 400, 1, 400, "a"),
        Logged("E", 290, 460, 500, 1, 100, "a"),
        Logged("X", submit_s, 400, 460, 2, 60, "a"),
    ]
    workload = workload_of(jobs)
    table = with_column(workload.jobs, "priority", np.array([0.0, 0.0, 1.0]))
    cluster = sim.Cluster.mixed([{"cpu": 2, "nodes": "a"}])
    model = Model(
        rebuild(workload, None, jobs=table), cluster, policies.build("priority", fit="strict")
    )
    steps = judge(model, find_moments(model, 33.0))
    assert steps.quiet.tolist() == [290.0, submit_s]
    assert len(steps.broken) == n_broken


def test_in_a_trial_of_periodic_planning_nobody_is_preempted() -> None:
    """Both nodes are full when a job of a higher level comes: its start is not the model's."""
    jobs = [
        Logged("low", 0, 0, 100, 2, 100, "a"),
        Logged("lower", 0, 0, 100, 2, 100, "b"),
        Logged("high", 10, 10, 60, 2, 60, "a"),
    ]
    workload = workload_of(jobs)
    table = with_column(workload.jobs, "priority", np.array([0.0, 0.0, 1.0]))
    workload = rebuild(workload, None, jobs=table)
    policy = policies.build("slurm", preemption={"by": "priority"})
    model = Model(workload, two_nodes(), policy)
    assert judge(model, find_moments(model, 33.0)).matches.tolist() == [2, 2, 0]


def test_the_table_has_the_model_and_the_model_without_each_mechanism() -> None:
    table = steps_table("slurm", small(), 5.0).to_pandas()
    assert table["without"].tolist() == ["", "time limits", "whole-node reservations"]
    assert (table["partition"] == "").all()
    whole = table.iloc[0]
    assert (whole["starts"], whole["found"], whole["false_starts"]) == (8, 7, 1)
    assert (whole["quiet"], whole["quiet_kept"], whole["same_nodes"]) == (5, 4, 5)
    first, *_ = step_sentences.sentences(steps_table("slurm", small(), 5.0))
    assert first == (
        "slurm: one step at a time 87.5 % of 8 starts are found, 1 false starts, 80.0 % of 5 "
        "quiet moments are kept; 71.4 % of those found on the same nodes"
    )


def test_a_job_that_does_not_fit_where_the_log_has_it_is_placed_later() -> None:
    crowded = [job._replace(node="a") if job.name == "H" else job for job in SMALL]
    model = Model(workload_of(crowded), two_nodes(), policies.build("slurm"))
    assert judge(model, find_moments(model, 33.0)).late == 1


def test_each_mechanism_of_a_site_can_be_taken_out() -> None:
    cluster = (
        sim.Cluster.mixed(
            [
                {"cpu": 2, "mem": 4, "nodes": "a", "partitions": ["p*"], "devices": {"gpu": 1}},
                {"cpu": 2, "mem": 4, "nodes": "b", "partitions": ["p*", "q"]},
            ]
        )
        .with_partitions({"q": {"tier": 3}})
        .with_limits(
            [
                {"of": "cpu", "by": ["user"], "at_most": 8, "where": {"qos": "normal"}},
                {"of": "cpu", "by": ["account"], "at_most": {"x": 9}},
                {"of": "running_jobs", "by": ["user"], "at_most": 9},
            ]
        )
        .with_reservations([{"name": "m", "machine": [0], "from_s": 900, "until_s": 999}])
    )
    jobs = [
        {
            "job_id": f"{i}",
            "submit_s": 0.0,
            "user": "u",
            "account": "x",
            "qos": "normal",
            "requested_s": 9.0,
            "exclusive": i == 0,
            "array": "y",
            "throttle": 2,
            "after": {"afterok": {"0": 0.0}} if i == 2 else {},
            "stages": [{"durations_s": [1.0], "demand": {"cpu": 1, "mem": 1, "gpu": i % 2}}],
        }
        for i in range(3)
    ]
    workload = sim.Workload.from_jobs(jobs)
    model = Model(workload, cluster, policies.build("multifactor_slurm"))
    names = [name for name, _ in without_each(model)]
    assert names == [
        *("node sets of partitions", "QOS limits", "account limits", "other limits", "tiers"),
        *("priority order", "array throttle", "time limits", "exclusive", "memory", "GPUs"),
        *("dependencies", "whole-node reservations", "maintenance and outages"),
    ]
    for name, other in without_each(model):
        again = [left for left, _ in without_each(other)]
        # they are gone, but for amounts and limits, which are set to nothing
        assert (name in again) == (name in ("time limits", "memory", "GPUs"))
        sim.simulate(other.workload, other.cluster, other.policy)


def test_a_log_without_nodes_is_judged_by_free_runs_alone(command: Command, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("submit_s,start_s,end_s,cpus,user\n0,0,100,1,u\n5,100,130,1,v\n")
    words = ("trace=table", f"trace.path={log}", "policy=fifo", "runs=2", "steps=true")
    ran = command("backtest", *words)
    assert ran.code == 0, ran.err
    assert step_sentences.NO_NODES.split(",")[0] in " ".join(ran.out.split())
    assert not (ran.folder / "steps.parquet").exists()
    groups = pd.read_parquet(ran.folder / "backtest_groups.parquet").set_index("group")
    assert groups.loc["v", "by"] == "user"
    assert groups.loc["v", "wait_mean_recorded_s"] == groups.loc["v", "wait_mean_s"] == 95.0


@pytest.mark.long
def test_a_small_site_one_step_at_a_time(
    command: Command, shared_real: Path, tmp_path: Path
) -> None:
    site, twin = shared_real / "site", tmp_path / "twin"
    assert sim_main(["site", str(site), "--out", str(twin)]) == 0
    words = ("--config-dir", str(twin), "trace=site", "policy=site", "runs=2", "steps=true")
    ran = command("backtest", *words)
    assert ran.code == 0, ran.err
    table = pd.read_parquet(ran.folder / "steps.parquet").set_index(["without", "partition"])
    whole = table.loc[("", "")]
    assert whole["starts"] == 271
    assert whole["found"] >= 0.95 * 271
    assert whole["quiet_kept"] >= 0.95 * whole["quiet"]
    # each partition has its own, and what is left out is missed
    assert table.loc[""].drop("")["found"].sum() == whole["found"]
    for name in ("node sets of partitions", "array throttle", "memory", "GPUs"):
        without = table.loc[(name, "")]
        right = without["found"] + without["quiet_kept"] - without["false_starts"]
        assert right < whole["found"] + whole["quiet_kept"] - whole["false_starts"], name
