"""State of now of a site of Kueue: Workloads that run and wait, and when these are to start."""

from __future__ import annotations

import json

import numpy as np
import pytest

import policies
import sim
from sim.cli.main import main
from sim.evaluators import starts
from sim.simulation import simulate
from sim.traces import sites
from tests.sim.traces.test_kueue_site import JOBS, SITE, meta, time, workload

NOW_S = 120.0
"""A node told its state last then, s after the first submission."""


def pod(workload_name, node_name, second, end=None, namespace="b", i=0, cpu=1):
    """Return a pod of a Workload, scheduled at a second; it ended at `end`, if that is known."""
    name = f"{workload_name}-{i}"
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}]}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": time(second)}
    status = {"phase": "Running", "conditions": [scheduled]}
    if end is not None:
        terminated = {"terminated": {"startedAt": time(second), "finishedAt": time(end)}}
        status |= {"phase": "Succeeded", "containerStatuses": [{"name": "c", "state": terminated}]}
    marks = {"annotations": {"kueue.x-k8s.io/workload": workload_name}}
    return {"apiVersion": "v1", "kind": "Pod", "status": status,
            "metadata": meta(name, namespace, second, **marks),
            "spec": spec | ({"nodeName": node_name} if node_name else {})}  # fmt: skip


def heartbeat(item, second=NOW_S):
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": time(int(second)),
                 "lastTransitionTime": time(0)}  # fmt: skip
    return item | {"status": item["status"] | {"conditions": [condition]}}


def read(tmp_path, *jobs, site=SITE):
    """Return a site whose first node tells its state, with these jobs beside those that ended."""
    path = tmp_path / "exports"
    path.mkdir(exist_ok=True)
    items = [heartbeat(x) if x["metadata"]["name"] == "c1" else x for x in site]
    items += [*JOBS[:4], *jobs]
    (path / "all.json").write_text(json.dumps({"kind": "List", "items": items}))
    return sites.read_site(path)


def by_name(site, column):
    ids = site.queue.jobs["job_id"].to_pylist()
    return dict(zip(ids, site.queue.jobs[column].to_pylist(), strict=True))


def test_jobs_that_ended_run_and_wait(tmp_path):
    reserved = workload("reserved", "b", "user", 80, None, None)
    reserved["status"]["conditions"] = [
        {"type": "QuotaReserved", "status": "True", "lastTransitionTime": time(85)},
        {"type": "Admitted", "status": "False", "lastTransitionTime": time(80)},
    ]
    site = read(tmp_path, *JOBS[4:], reserved, pod("five", "c2", 61))
    assert site.workload.jobs["job_id"].to_pylist() == ["a/one", "a/two", "b/three", "b/four"]
    start, end = by_name(site, "recorded_start_s"), by_name(site, "recorded_finish_s")
    assert (start["b/four"], end["b/four"]) == (60, 70)
    assert start["b/five"] == 61
    assert [end["b/five"], start["b/six"], start["b/reserved"]] == [None] * 3
    assert by_name(site, "queue")["b/six"] == "team-b"
    assert site.queue.meta["now_s"] == NOW_S
    assert any("reserved has quota and is not admitted" in note for note in site.notes)
    cluster = sim.Cluster.mixed(site.queue_cluster["shape"])
    state = sim.state_at(site.queue, cluster, NOW_S)
    row = [*start].index("b/five")
    task = site.queue.columns.stage_task0[site.queue.columns.job_stage0[row]]
    assert cluster.names[state.machine[task]] == "c2"
    assert np.isnan(state.placed_s[[*start].index("b/six")])


def test_without_open_workloads_there_is_no_queue(tmp_path):
    assert read(tmp_path).queue is None


def test_pods_that_ended_hold_nothing_and_those_without_a_node_are_of_the_gang(tmp_path):
    job = workload("wide", "b", "user", 50, 60, None, n=3)
    pods = [pod("wide", "c1", 60, 90, i=0), pod("wide", "c1", 60, i=1), pod("wide", "", 60, i=2)]
    pods[2]["status"] = {"phase": "Pending"}
    site = read(tmp_path, job, *pods)
    row = [*by_name(site, "job_id")].index("b/wide")
    assert site.queue.columns.job_n_tasks[row] == 2
    assert by_name(site, "min_tasks")["b/wide"] == 2
    assert by_name(site, "recorded_start_s")["b/wide"] == 60


def test_what_can_not_be_told_is_noted(tmp_path):
    stopped = workload("stopped", "b", "user", 90, None, None, active=False)
    huge = workload("huge", "b", "user", 95, None, None, cpu=99)
    site = read(tmp_path, JOBS[4], stopped, huge)
    assert {*by_name(site, "job_id")} == {"a/one", "a/two", "b/three", "b/four", "b/five"}
    text = "\n".join(site.notes)
    for part in (
        "b/five runs, and no pod tells where", "b/stopped is not active", "b/huge can never start",
    ):  # fmt: skip
        assert part in text, part


def test_jobs_that_can_never_start_are_no_queue(tmp_path):
    path = tmp_path / "exports"
    path.mkdir()
    waits = workload("wide", "a", "user", 70, None, None, cpu=999)
    (path / "all.json").write_text(json.dumps({"kind": "List", "items": [*SITE, waits]}))
    site = sites.read_site(path)
    assert site.queue is None
    assert any("a/wide can never start" in note for note in site.notes)


def test_closed_nodes_stay_closed(tmp_path):
    site = read(tmp_path, JOBS[5])
    closed = [i for i, item in enumerate(site.nodes) if item.name == "c3"]
    assert [row["machine"] for row in site.queue_cluster["outages"]] == closed
    assert site.queue_cluster["outages"][0]["from_s"] == NOW_S
    assert "outages" not in site.cluster


def test_a_job_is_expected_to_start_when_the_running_one_ends(tmp_path):
    """Two nodes of 8 CPUs, and a quota of 7.5, with 4 of the cohort and 2 that team-a lends.

    A job of 7 CPUs has run since 60, and ends at its limit, 660, as no past job with a limit ran
    for so long. One of 7 CPUs would need 14 in all: it waits until then. One of 2 CPUs starts now.
    """
    runs = workload("runs", "b", "user", 55, 60, None, cpu=7, maximumExecutionTimeSeconds=600)
    waits = [
        workload(f"waits{cpu}", "b", "user", 100 + cpu, None, None, cpu=cpu,
                 maximumExecutionTimeSeconds=600)
        for cpu in (2, 7)
    ]  # fmt: skip
    site = read(tmp_path, runs, *waits, pod("runs", "c1", 60, cpu=7))
    config = site.queue_cluster
    cluster = sim.Cluster.mixed(config["shape"]).with_quotas(config["quotas"])
    policy = policies.build(**site.policy)
    metrics, jobs = starts.evaluate(
        simulate, site.queue, cluster, policy, 0, arrivals=False, draws=4
    )
    assert (metrics["jobs_waiting"], metrics["jobs_running"]) == (2, 1)
    ids = site.queue.jobs["job_id"].to_pylist()
    medians = {
        ids[row]: s
        for row, s in zip(*(jobs[c].to_pylist() for c in ("job", "median_s")), strict=True)
    }
    assert medians == {"b/waits2": NOW_S, "b/waits7": pytest.approx(660)}


@pytest.mark.long
def test_options_of_the_queue_are_written(tmp_path):
    read(tmp_path, *JOBS[4:], pod("five", "c2", 61))
    out = tmp_path / "twin"
    assert main(["site", str(tmp_path / "exports"), "--out", str(out), "--name", "lab"]) == 0
    for file in ("cluster/lab_queue.yaml", "trace/lab_queue.yaml", "queue/jobs.parquet"):
        assert (out / file).exists()
