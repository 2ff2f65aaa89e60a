"""Versions of WfFormat, and the account of what a workflow's file states."""

from __future__ import annotations

import copy
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.base.errors import InputError
from sim.check.account import check_account
from tests.examples import examples
from tests.policies.wing.test_wfcommons import executed, load, task

EDGES = [("a1", "b1"), ("a1", "b2"), ("b1", "c1"), ("b2", "c1")]
SECONDS = {"a1": 10, "b1": 20, "b2": 30, "c1": 0}


def demo(sides=("parents", "children"), outputs=None):
    """Return a workflow of four tasks; `sides` state its edges."""
    tasks = []
    for name in SECONDS:
        parents = [up for up, down in EDGES if down == name and "parents" in sides]
        children = [down for up, down in EDGES if up == name and "children" in sides]
        reads = [f"f{up}" for up, down in EDGES if down == name]
        tasks.append(task(name, parents, reads, (outputs or {}).get(name, ())))
        tasks[-1] |= {"children": children, "name": name[0]}
    runs = [executed(name, s, coreCount=1 + (name == "b1")) for name, s in SECONDS.items()]
    return {
        "name": "demo",
        "schemaVersion": "1.5",
        "workflow": {"specification": {"tasks": tasks}, "execution": {"tasks": runs}},
    }


def write(tmp_path, content, name="demo.json"):
    (tmp_path / name).write_text(json.dumps(content))
    return tmp_path / name


def edges(w):
    names = w.stages["name"].to_pylist()
    pairs = zip(*(w.stage_edges[c].to_pylist() for c in ("parent", "child")), strict=True)
    return sorted((names[up], names[down]) for up, down in pairs)


@pytest.mark.parametrize("sides", [("parents",), ("children",), ("parents", "children")])
def test_parents_or_children_state_the_edges(tmp_path, sides):
    w = load(write(tmp_path, demo(sides)))
    assert edges(w) == EDGES
    check_account(w, cpu_s=10 + 40 + 30 + 0, jobs=1, tasks=4, edges=4)
    assert w.meta["report"]["noticed"] == {}


def test_an_edge_of_one_statement_alone_counts_and_is_told(tmp_path):
    content = demo()
    content["workflow"]["specification"]["tasks"][3]["parents"].remove("b2")
    content["workflow"]["specification"]["tasks"][0]["children"].remove("b1")
    w = load(write(tmp_path, content))
    assert edges(w) == EDGES
    counts = {"dependency that parents or children alone state": 2}
    assert w.meta["report"]["noticed"] == counts


def test_edges_that_files_do_not_show_are_told(tmp_path):
    w = load(write(tmp_path, demo()), read_as="logs")
    assert w.job_edges.num_rows == w.meta["report"]["edges"] == 0
    account = check_account(w, tokens_s=10 + 40 + 30, jobs=4, tasks=4, edges=4)
    assert account["edges"]["left_out"] == 4
    text = (
        "4 of 4 recorded edges are not found in the files that tasks read and write (the first: "
        "a1 -> b1), so these tasks do not wait for each other; read_as=dag keeps them"
    )
    assert w.meta["report"]["warnings"] == [text]
    copies = load(write(tmp_path, demo()), read_as="logs", copies=2)
    assert copies.meta["report"]["warnings"] == [text]
    assert copies.meta["report"]["edges"] == 0


def test_edges_that_files_alone_show_are_told(tmp_path):
    outputs = {name: [f"f{name}"] for name in SECONDS}
    w = load(write(tmp_path, demo(("parents",), outputs)), read_as="logs")
    assert "warnings" not in w.meta["report"]
    assert check_account(w, edges=4)["edges"]["workload"] == 4
    content = demo(("parents",), outputs)
    content["workflow"]["specification"]["tasks"][3]["parents"].remove("b1")
    account = check_account(load(write(tmp_path, content), read_as="logs"), edges=3)
    assert account["edges"]["changed_by"] == {"dependency that the files of tasks alone show": -1}


def test_fractions_of_cores_keep_their_work(tmp_path):
    content = demo()
    content["workflow"]["execution"]["tasks"][0]["coreCount"] = 2.5
    path = write(tmp_path, content)
    for kind, options in (("cpu_s", {}), ("tokens_s", {"read_as": "logs"})):
        account = check_account(load(path, **options), **{kind: 2.5 * 10 + 40 + 30})
        assert account[kind]["changed"] == 0
        assert account[kind]["workload"] == 95
    quanta = load(path).columns.stage_demand[:, 0] * load(path).quantum["cpu"]
    assert quanta.tolist() == [2.5, 2.0, 1.0, 1.0]


def test_executions_that_are_no_task_are_left_out_with_their_work(tmp_path):
    content = demo()
    runs = content["workflow"]["execution"]["tasks"]
    runs += [dict(runs[1]), executed("gone", 7.0, coreCount=3, memoryInBytes=2**30)]
    account = check_account(load(write(tmp_path, content)), cpu_s=80 + 40 + 21, tasks=6, jobs=1)
    assert account["cpu_s"]["left_out_by"] == {
        "execution given twice": 40.0,
        "execution of a task that is not specified": 21.0,
    }


def combined(version="1.4"):
    """Return the workflow as versions before 1.5 have it: names refer to tasks."""
    old = version == "1.3"
    duration, memory = ("runtime", "memory") if old else (
        "runtimeInSeconds", "memoryInBytes"
    )  # fmt: skip
    tasks = [
        {
            "name": name, "id": f"ID{row}", "type": "compute", duration: float(seconds), "cores": 2,
            "parents": [up for up, down in EDGES if down == name],
            "children": [down for up, down in EDGES if up == name],
            memory: 2**20 if version == "1.3" else 1000 * 2**20,
            "files": [{"link": "output", "name": name, "path": "/w/", "sizeInBytes": 1}]
            + [{"link": "input", "name": f"/w/{up}", "sizeInBytes": 1}
               for up, down in EDGES if down == name],
        }
        for row, (name, seconds) in enumerate(SECONDS.items())
    ]  # fmt: skip
    makespan = "makespan" if version == "1.3" else "makespanInSeconds"
    return {"name": "demo", "schemaVersion": version, "workflow": {makespan: 70, "tasks": tasks}}


@pytest.mark.parametrize("version", ["1.3", "1.4"])
def test_versions_before_1_5_are_read(tmp_path, version):
    path = write(tmp_path, combined(version))
    w = load(path)
    mem_gib = 1000 * 2**20 / 2**30
    check_account(w, cpu_s=2 * 60, mem_gib_s=mem_gib * 60, jobs=1, tasks=4, edges=4)
    assert w.stages["name"].to_pylist() == ["a1_ID0", "b1_ID1", "b2_ID2", "c1_ID3"]
    assert [(up[:2], down[:2]) for up, down in edges(w)] == EDGES
    assert w.jobs["recorded_finish_s"].to_pylist() == [70.0]
    logs = load(path, read_as="logs")
    assert logs.job_edges.num_rows == 4
    assert "warnings" not in logs.meta["report"]


def test_a_name_that_tasks_share_refers_to_all_of_them(tmp_path):
    content = combined()
    tasks = content["workflow"]["tasks"]
    for row, name in enumerate(("ALIGN", "CALL", "CALL", "REPORT")):
        tasks[row]["name"] = name
    tasks[0] |= {"parents": [], "children": ["CALL", "SKIPPED"]}
    tasks[1] |= {"parents": ["ALIGN"], "children": ["REPORT"]}
    tasks[2] |= {"parents": ["ALIGN"], "children": ["REPORT"]}
    tasks[3] |= {"parents": ["CALL"], "children": []}
    w = load(write(tmp_path, content))
    assert len(edges(w)) == 4
    account = check_account(w, edges=5)
    assert account["edges"]["left_out_by"] == {
        "dependency on a task that the file does not have": 1.0
    }


def test_a_workflow_without_dependencies_is_told(tmp_path):
    w = load(write(tmp_path, demo(())))
    (warning,) = w.meta["report"]["warnings"]
    assert warning.startswith("1 of 1 workflows (demo) record no dependency between their tasks")


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_older_versions_are_named(tmp_path, version):
    jobs = [{"name": "a_1", "type": "compute", "runtime": 8.4, "parents": [], "files": []}]
    old = {"name": "demo", "schemaVersion": version, "workflow": {"makespan": 100, "jobs": jobs}}
    with pytest.raises(
        InputError, match=rf"this is WfFormat {version} .*convert it with"
    ) as caught:
        load(write(tmp_path, old))
    assert caught.value.rule == "old version"


def test_a_task_without_a_run_time_is_an_error(tmp_path):
    content = combined()
    del content["workflow"]["tasks"][2]["runtimeInSeconds"]
    with pytest.raises(InputError, match="'b2_ID2' has no run time"):
        load(write(tmp_path, content))
    content = combined()
    content["workflow"]["tasks"][2]["files"][0]["link"] = "both"
    with pytest.raises(InputError, match="must be input or output, not 'both'"):
        load(write(tmp_path, content))


NUMBER = st.sampled_from([0, 0.5, 1, 2.5, 3, 130.0])
RUN = st.fixed_dictionaries(
    {"runtimeInSeconds": st.sampled_from([0.0, 0.25, 7.0, 1e5])},
    optional={"coreCount": NUMBER, "avgCPU": NUMBER, "memoryInBytes": st.just(2**31)},
)


@st.composite
def workflow(draw):
    """Draw a workflow whose tasks depend on earlier ones; either statement may lack an edge."""
    n = draw(st.integers(1, 5))
    pairs = [(up, down) for down in range(n) for up in range(down)]
    stated = {
        pair: draw(st.sampled_from([(), ("parents",), ("children",), ("parents", "children")]))
        for pair in pairs
    }
    tasks = [task(f"t{row}") for row in range(n)]
    for (up, down), sides in stated.items():
        if "parents" in sides:
            tasks[down]["parents"].append(f"t{up}")
        if "children" in sides:
            tasks[up]["children"].append(f"t{down}")
    runs = [draw(RUN) | {"id": f"t{row}"} for row in range(n)]
    runs += [copy.copy(runs[row]) for row in draw(st.sets(st.integers(0, n - 1)))]
    runs += [draw(RUN) | {"id": f"gone{k}"} for k in range(draw(st.integers(0, 2)))]
    specification, execution = {"tasks": tasks}, {"tasks": draw(st.permutations(runs))}
    return {"workflow": {"specification": specification, "execution": execution}}


def width(run):
    """Return the cores that a file records for a run."""
    return run.get("coreCount") or run.get("avgCPU", math.nan) / 100


@given(st.lists(workflow(), min_size=1, max_size=3), st.sampled_from(["dag", "logs"]))
@settings(max_examples=examples(120), deadline=None)
def test_the_account_has_the_files_amounts(tmp_path_factory, contents, read_as):
    folder = tmp_path_factory.mktemp("flows")
    for number, content in enumerate(contents):
        write(folder, content, f"{number}.json")
    runs = [run for c in contents for run in c["workflow"]["execution"]["tasks"]]
    work = sum(width(r) * r["runtimeInSeconds"] for r in runs if not math.isnan(width(r)))
    n_edges = 0
    for content in contents:
        tasks = content["workflow"]["specification"]["tasks"]
        stated = {(up, t["id"]) for t in tasks for up in t["parents"]}
        n_edges += len(stated | {(t["id"], down) for t in tasks for down in t["children"]})
    log = {"edges": n_edges, "tasks": len(runs), "cpu_s" if read_as == "dag" else "tokens_s": work}
    if read_as == "dag":
        mem = (r.get("memoryInBytes", 0) / 2**30 * r["runtimeInSeconds"] for r in runs)
        log |= {"jobs": len(contents), "mem_gib_s": sum(mem)}
    check_account(sim.read_trace("wfcommons", folder, read_as=read_as), **log)
