"""Workflows of Argo become jobs, whose stages are pods that wait for each other through groups."""

from __future__ import annotations

import base64
import gzip
import json
import random
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.check.account import check_account
from sim.traces import read_trace
from sim.workload.attempts import FAILED, NEVER_RAN, RUNNING, WAITING
from tests.examples import examples
from tests.sim.traces.kubernetes_objects import container, node, workflow, write


def load(folder: Path, *flows: Any, **options: Any) -> sim.Workload:
    return read_trace("argo", write(folder / "workflows.json", *flows), **options)


def report(w: sim.Workload, part: str) -> Any:
    return w.meta["report"][part]


def edges(w: sim.Workload) -> set[tuple[str, str]]:
    names = w.stages["name"].to_pylist()
    return {(names[e["parent"]], names[e["child"]]) for e in w.stage_edges.to_pylist()}


def critical_path_s(w: sim.Workload) -> float:
    table: dict[str, list[float]] = sim.lower_bound(w, sim.Cluster.slots(99)).to_pydict()
    return max(table["cp_len"])


def fruit() -> dict[str, Any]:
    """Return wash → cut (a Retry: the first try failed) → press, and gift, which was omitted."""
    return workflow(
        node("w", "DAG", 0, 300, ("w.wash",), boundary=""),
        node("w.wash", "Pod", 0, 60, ("w.cut",), resourcesDuration={"cpu": 60, "memory": 120}),
        node("w.cut", "Retry", 60, 200, ("w.cut(0)", "w.cut(1)", "w.press")),
        node("w.cut(0)", "Pod", 60, 120, phase="Failed"),
        node("w.cut(1)", "Pod", 130, 200, ("w.press",)),
        node("w.press", "Pod", 200, 300),
        node("w.gift", "Skipped", 300, 300, phase="Omitted"),
    )


def test_the_last_try_counts_and_groups_are_no_work(tmp_path: Path) -> None:
    w = load(tmp_path, fruit())
    assert w.jobs["job_id"].to_pylist() == ["grove/w"]
    assert w.stages["name"].to_pylist() == ["wash", "cut(1)", "press"]
    assert edges(w) == {("wash", "cut(1)"), ("cut(1)", "press")}
    assert w.tasks["duration_s"].to_pylist() == [60.0, 70.0, 100.0]
    assert critical_path_s(w) == 230.0
    assert w.stages["demand_cpu"].to_pylist() == [1.0, 1.0, 1.0]
    assert w.stages["demand_mem"].to_pylist() == [200 / 1024, 0.0, 0.0]
    assert report(w, "dropped") == {FAILED: 1}
    assert report(w, "filled") == {"CPUs unknown: 1": 2}
    assert report(w, "noticed") == {"nodes without a pod: Skipped, Omitted": 1}
    account = check_account(w, cpu_s=60, jobs=1, tasks=4, edges=2)
    assert account["cpu_s"]["changed"] == -170


def test_requests_are_those_of_the_template(tmp_path: Path) -> None:
    flow = fruit()
    asks = container({"nvidia.com/gpu": 1}, cpu="2", memory="4Gi")
    flow["spec"]["templates"] = [
        {"name": "cut", "container": asks, "sidecars": [container(cpu="500m")]}
    ]
    flow["status"]["storedTemplates"] = {
        "namespaced/shop/press": {"name": "press", "script": container(cpu="3")}
    }
    nodes = flow["status"]["nodes"]
    nodes["w.cut(0)"]["templateName"] = nodes["w.cut(1)"]["templateName"] = "cut"
    nodes["w.press"]["templateRef"] = {"name": "shop", "template": "press"}
    w = load(tmp_path, flow)
    assert w.stages["demand_cpu"].to_pylist() == [1.0, 2.5, 3.0]
    assert w.stages["demand_gpu"].to_pylist() == [0.0, 1.0, 0.0]
    account = check_account(w, cpu_s=60 + 2.5 * 130 + 300, gpu_s=130)
    assert account["cpu_s"]["left_out_by"] == {FAILED: 150.0}


def test_steps_and_fans_wait_through_their_groups(tmp_path: Path) -> None:
    flow = workflow(
        node("w", "Steps", 0, 90, ("w[0]",), boundary=""),
        node("w[0]", "StepGroup", 0, 30, ("w[0].fan",)),
        node("w[0].fan", "TaskGroup", 0, 30, ("w[0].fan(0:a)", "w[0].fan(1:b)")),
        node("w[0].fan(0:a)", "Pod", 0, 20, ("w[1]",)),
        node("w[0].fan(1:b)", "Pod", 0, 30, ("w[1]",)),
        node("w[1]", "StepGroup", 30, 60, ("w[1].wait",)),
        node("w[1].wait", "Suspend", 30, 60, ("w[2]",)),
        node("w[2]", "StepGroup", 60, 90, ("w[2].sum",)),
        node("w[2].sum", "Pod", 60, 90, ("w[2].sum.inner",)),
        node("w[2].sum.inner", "Container", 60, 90, boundary="w[2].sum"),
    )
    w = load(tmp_path, flow)
    assert edges(w) == {("fan(0:a)", "sum"), ("fan(1:b)", "sum")}
    assert report(w, "noticed") == {"nodes without a pod: Suspend, Succeeded": 1}


def test_a_retried_group_loses_all_of_its_first_try(tmp_path: Path) -> None:
    flow = workflow(
        node("w", "Retry", 0, 90, ("w(0)", "w(1)"), boundary=""),
        node("w(0)", "DAG", 0, 30, ("w(0).a",), phase="Failed", boundary=""),
        node("w(0).a", "Pod", 0, 20, ("w(0).b",), boundary="w(0)"),
        node("w(0).b", "Pod", 20, 30, phase="Failed", boundary="w(0)"),
        node("w(1)", "DAG", 30, 90, ("w(1).a",), boundary=""),
        node("w(1).a", "Pod", 30, 50, ("w(1).b",), boundary="w(1)"),
        node("w(1).b", "Pod", 50, 90, boundary="w(1)"),
    )
    w = load(tmp_path, flow)
    assert edges(w) == {("w(1).a", "w(1).b")}
    assert report(w, "dropped") == {FAILED: 2}
    check_account(w, tasks=4, edges=1)


def test_exit_handlers_wait_for_all_and_nobody_for_a_daemon(tmp_path: Path) -> None:
    flow = workflow(
        node("w", "DAG", 0, 60, ("w.db", "w.g"), boundary=""),
        node("w.db", "Pod", 0, 60, ("w.use",), daemoned=True),
        node("w.use", "Pod", 5, 40),
        node("w.g", "DAG", 0, 20, ("w.g.x", "w.g.onExit")),
        node("w.g.x", "Pod", 0, 20, boundary="w.g"),
        node("w.g.onExit", "Pod", 20, 25),
        node("w.onExit", "Pod", 60, 70, boundary=""),
        node("w.old", "Pod", 0, 0, memoizationStatus={"hit": True}),
        node("w.no", "Pod", 0, 0, phase="Skipped"),
    )
    flow["status"]["nodes"]["w.db"]["displayName"] = "db"
    w = load(tmp_path, flow)
    names = w.stages["name"].to_pylist()
    assert names.count("w.g.onExit") == names.count("w.onExit") == 1
    assert edges(w) == {("x", "w.g.onExit"), ("use", "w.onExit"), ("w.g.onExit", "w.onExit")}
    rule = "dependencies on a daemon, which goes on beside what waits for it"
    account = check_account(w, tasks=5)
    assert account["edges"]["left_out_by"] == {rule: 2}
    rules = [f"nodes without a pod: Pod, {state}" for state in ("remembered", "Skipped")]
    assert report(w, "noticed") == dict.fromkeys(rules, 1)


def test_unfinished_workflows_are_censored(tmp_path: Path) -> None:
    running = workflow(
        node("w", "DAG", 0, None, ("w.a",), phase="Running", boundary=""),
        node("w.a", "Pod", 0, 30), node("w.b", "Pod", 30, None, phase="Running"),
        node("w.c", "Pod", 30, None, phase="Pending"), name="open", phase="Running",
    )  # fmt: skip
    failed = workflow(node("w.a", "Pod", 0, None, phase="Pending"), name="failed", phase="Failed")
    waiting = workflow(name="waiting", phase="")
    w = load(tmp_path, running, failed, waiting, fruit())
    assert report(w, "dropped") == {RUNNING: 2, WAITING: 2, NEVER_RAN: 1, FAILED: 1}
    check_account(w, jobs=4, tasks=9)
    assert report(w, "warnings")[0].startswith("1 of 4 jobs still ran when the log ended")


def test_nodes_may_be_packed_or_elsewhere(tmp_path: Path) -> None:
    packed = fruit()
    text = json.dumps(packed["status"].pop("nodes")).encode()
    packed["status"]["compressedNodes"] = base64.b64encode(gzip.compress(text)).decode()
    w = load(tmp_path, packed)
    assert w.digest == load(tmp_path, fruit()).digest
    offloaded = workflow(name="away", status={"offloadNodeStatusVersion": "fnv:1"})
    both = load(tmp_path, fruit(), offloaded)
    assert any("argo get -o json has them" in rule for rule in report(both, "dropped"))
    check_account(both, jobs=2)
    packed["status"]["compressedNodes"] = "H4sIAAAA"
    with pytest.raises(sim.InputError, match="compressedNodes can't be unpacked"):
        load(tmp_path, packed)


def test_columns_of_the_job(tmp_path: Path) -> None:
    flow = fruit()
    flow["metadata"] |= {"generateName": "w-"}
    flow["spec"] |= {"priority": 3, "activeDeadlineSeconds": 900}
    (row,) = load(tmp_path, flow).jobs.to_pylist()
    assert (row["template"], row["queue"], row["user"]) == ("grove/w-", "grove", "grove")
    assert (row["priority"], row["requested_s"]) == (3.0, 900.0)
    flow["spec"]["workflowTemplateRef"] = {"name": "fruit"}
    assert load(tmp_path, flow).jobs["template"].to_pylist() == ["grove/fruit"]


def test_children_of_each_other_are_an_error(tmp_path: Path) -> None:
    flow = workflow(node("w.a", "Pod", 0, 1, ("w.b",)), node("w.b", "Pod", 1, 2, ("w.a",)))
    with pytest.raises(sim.InputError, match=r"Workflow grove/w: nodes .* children of each other"):
        load(tmp_path, flow)
    w = load(tmp_path, flow, {**fruit(), "metadata": {**fruit()["metadata"], "uid": "x"}},
             on_bad_row="skip")  # fmt: skip
    assert report(w, "bad_rows") == {"cycle": 1}


@st.composite
def flows(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """Draw a DAG of pods and Retry nodes with their tries; edges lead to later nodes."""
    names = [f"w.n{i}" for i in range(draw(st.integers(1, 6)))]
    nodes = [node("w", "DAG", 0, 99, (names[0],), boundary="")]
    for i, name in enumerate(names):
        later = tuple(n for n in names[i + 1 :] if draw(st.booleans()))
        start, run = draw(st.integers(0, 50)), draw(st.integers(-1, 20))
        used = (
            {"resourcesDuration": {"cpu": draw(st.integers(0, 40))}} if draw(st.booleans()) else {}
        )
        if draw(st.booleans()):
            tries = [f"{name}({k})" for k in range(draw(st.integers(1, 3)))]
            nodes.append(node(name, "Retry", start, start + run, tuple(tries)))
            for item in tries:
                phase = "Succeeded" if item == tries[-1] else "Failed"
                children = later if item == tries[-1] else ()
                nodes.append(node(item, "Pod", start, start + run, children, phase=phase, **used))
        else:
            phase = draw(st.sampled_from(["Succeeded", "Failed", "Pending", "Skipped"]))
            nodes.append(node(name, "Pod", start, start + run, later, phase=phase, **used))
    phase = draw(st.sampled_from(["Succeeded", "Failed", "Running"]))
    flow = workflow(*nodes, name=f"w{number}", phase=phase)
    if draw(st.integers(0, 7)) == 0:
        flow["metadata"]["creationTimestamp"] = 7
    return flow


MANY = st.integers(0, 4).flatmap(lambda n: st.tuples(*(flows(i) for i in range(n))))


def plain_count(path: Path) -> dict[str, float]:
    total = {"cpu_s": 0.0, "tasks": 0.0, "jobs": 0.0, "edges": 0.0}
    for flow in json.loads(path.read_text())["items"]:
        total["jobs"] += 1
        if flow["metadata"]["creationTimestamp"] == 7:
            continue
        nodes, graph = flow["status"]["nodes"], nx.DiGraph()
        pods = [n for n in nodes.values() if n["type"] == "Pod" and n["phase"] != "Skipped"]
        total["tasks"] += max(len(pods), 1)
        tasks = []
        for item in pods:
            ends, starts = (datetime.fromisoformat(item[k]).timestamp()
                            for k in ("finishedAt", "startedAt"))  # fmt: skip
            if item["phase"] != "Pending" and ends > starts:
                total["cpu_s"] += item.get("resourcesDuration", {}).get("cpu", 0)
            retry = nodes.get(item["name"].partition("(")[0], item)
            tries = [child for child in retry["children"] if child.endswith(")")]
            is_last = retry is item or tries[-1] == item["id"]
            if item["phase"] != "Pending" and ends >= starts and is_last:
                tasks.append(item["id"])
        for item in nodes.values():
            graph.add_edges_from((item["id"], child) for child in item["children"])
        graph.add_nodes_from(nodes)
        if flow["status"]["phase"] != "Running":
            reduced = nx.transitive_closure_dag(graph).subgraph(tasks)
            total["edges"] += nx.transitive_reduction(reduced).number_of_edges()
    return total


@settings(max_examples=examples(160), deadline=None)
@given(MANY)
def test_all_work_of_workflows_is_counted(drawn: tuple[dict[str, Any], ...]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name) / "w.json", fruit(), *drawn)
        counted = plain_count(path)
        check_account(read_trace("argo", path, on_bad_row="skip"), **counted)


@settings(max_examples=examples(80), deadline=None)
@given(MANY, st.randoms(use_true_random=False))
def test_order_files_and_compression_change_nothing(
    drawn: tuple[dict[str, Any], ...], rng: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as name:
        flows_drawn = [fruit(), *drawn]
        whole = read_trace("argo", write(Path(name) / "w.json", *flows_drawn), on_bad_row="skip")
        folder = Path(name) / "parts"
        folder.mkdir()
        for i, flow in enumerate(rng.sample(flows_drawn, len(flows_drawn))):
            nodes = [*flow["status"]["nodes"].items()]
            rng.shuffle(nodes)
            text = json.dumps({**flow, "status": {**flow["status"], "nodes": dict(nodes)}})
            (folder / f"{i}.json.gz").write_bytes(gzip.compress(text.encode()))
        again = read_trace("argo", folder, on_bad_row="skip")
        assert again.digest == whole.digest
