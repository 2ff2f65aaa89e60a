"""Workflows of WfFormat: as DAGs, as logs, and as copies that recur for four weeks."""

from __future__ import annotations

import copy
import gzip
import json
from collections import Counter

import numpy as np
import pytest

import policies
import sim
from policies.wing import wfcommons
from policies.wing.lineage.dependencies import single_hop
from policies.wing.wfcommons.instances import read_instances
from sim.base.errors import InputError
from sim.check.account import check_account

DAY = 86_400.0


def task(name, parents=(), reads=(), writes=()):
    return {
        "id": name, "name": name, "parents": list(parents), "children": [],
        "inputFiles": list(reads), "outputFiles": list(writes),
    }  # fmt: skip


def executed(name, seconds, **more):
    return {"id": name, "runtimeInSeconds": seconds, **more}


SMALL = {
    "name": "small",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                task("merge_ID03", ["part_ID01", "part_ID02"], ["b", "c"], ["d"]),
                task("part_ID01", ["split"], ["a"], ["b"]),
                task("part_ID02", ["split"], ["a"], ["c"]),
                task("split", [], ["in"], ["a"]),
            ],
            "files": [],
        },
        "execution": {
            "tasks": [
                executed("split", 4.0, coreCount=2, memoryInBytes=2**31),
                executed("part_ID01", 10.0, avgCPU=130.0),
                executed("part_ID02", 20.0),
                executed("merge_ID03", 5.0),
            ],
        },
    },
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small-1.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SMALL).encode()))
    return path


def load(path, **options):
    return sim.read_trace("wfcommons", path, **options)


def test_a_workflow_is_a_dag(file):
    w = load(file)
    assert w.jobs["job_id"].to_pylist() == ["small-1"]
    assert w.jobs["template"].to_pylist() == ["small"]
    assert w.stages["name"].to_pylist() == ["merge_ID03", "part_ID01", "part_ID02", "split"]
    assert w.stages["demand_cpu"].to_pylist() == [1.0, 2.0, 1.0, 2.0]
    assert w.stages["demand_mem"].to_pylist() == [0.0, 0.0, 0.0, 2.0]
    edges = zip(*(w.stage_edges[c].to_pylist() for c in ("parent", "child")), strict=True)
    assert set(edges) == {(3, 1), (3, 2), (1, 0), (2, 0)}
    run = sim.simulate(w, sim.Cluster.machines(1, cpu=8, mem=8), policies.build("fifo"))
    assert run.jobs["finish_s"].to_pylist() == [4.0 + 20.0 + 5.0]
    report = w.meta["report"]
    counts = {key: report[key] for key in ("workflows", "tasks", "edges", "files", "noticed")}
    assert counts == {"workflows": 1, "tasks": 4, "edges": 4, "files": 5, "noticed": {}}
    account = check_account(w, cpu_s=2 * 4 + 1.3 * 10, mem_gib_s=2 * 4, jobs=1, tasks=4, edges=4)
    assert account["cpu_s"]["changed_by"] == {
        "mean use of CPUs rounded up to whole cores": -7.0,
        "number of cores unknown: one": -25.0,
    }


def test_a_task_is_a_job_that_reads_and_writes(file):
    w = load(file, read_as="logs", gap_s=2.0)
    ids = [name.split("/")[-1] for name in w.jobs["job_id"].to_pylist()]
    assert ids == ["split", "part_ID01", "part_ID02", "merge_ID03"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 6.0, 6.0, 28.0]
    assert w.jobs["template"].to_pylist()[1:3] == ["small-1/part"] * 2
    assert w.jobs["input_mode"].to_pylist() == ["none", "poll", "poll", "poll"]
    edges = zip(*(w.job_edges[c].to_pylist() for c in ("upstream", "downstream")), strict=True)
    assert set(edges) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert set(w.job_edges["kind"].to_pylist()) == {"hard"}
    run = sim.simulate(w, sim.Cluster.machines(1, tokens=8), policies.build("fifo"))
    assert run.jobs["finish_s"].to_pylist() == [4.0, 16.0, 26.0, 33.0]
    slow = sim.simulate(w, sim.Cluster.machines(1, tokens=2), policies.build("fifo"))
    assert slow.jobs["finish_s"].to_pylist()[-1] == 4 + 2 + 10 + 20 + 2 + 5


@pytest.mark.parametrize("gap_s", [0.0, 1.0])
def test_the_profiler_finds_each_declared_edge_and_no_other(shared_traces, gap_s):
    folder = shared_traces / "wfcommons"
    instances = read_instances(folder)
    logs = wfcommons.logs(folder, gap_s=gap_s)
    edges = single_hop(logs).dependencies
    names = logs.jobs["job_id"].to_pylist()
    declared = {
        (f"{i.name}/0/{i.task_id[u]}", f"{i.name}/0/{i.task_id[d]}")
        for i in instances
        for u, d in zip(i.up, i.down, strict=True)
    }
    inferred = {(names[u], names[d]) for u, d in zip(edges.upstream, edges.downstream, strict=True)}
    assert len(declared) == 1169
    assert inferred == declared


def test_copies_recur_and_have_a_history(file):
    w = load(file, read_as="logs", copies=5, seed=3)
    assert w.n_jobs >= 5 * 4 * 7
    assert w.meta["known"]["jobs of recurring programs"] == 1.0
    runs = Counter(w.jobs["template"].to_pylist())
    assert len(runs) == 5 * 3
    assert set(runs.values()) <= {7 * n * k for n in (1, 2, 4) for k in (1, 2)}
    assert w.history.num_rows == pytest.approx(2 * w.n_jobs, abs=12)
    # each run's last task is downloaded, of the most valued copy five times
    value = dict(zip(w.jobs["template"].to_pylist(), w.jobs["value"].to_pylist(), strict=True))
    assert sorted(v for t, v in value.items() if t.endswith("/merge")) == [1, 1, 1, 2, 5]
    assert not any(v for t, v in value.items() if not t.endswith("/merge"))
    result = sim.simulate(w, sim.Cluster.machines(9, tokens=100_000), policies.build("wing_agg"))
    assert result.metrics["jobs_failed"] == 0
    assert result.metrics["value_attained"] == 1.0
    work_token_s = (w.stages["demand_tokens"].to_numpy() * w.tasks["duration_s"].to_numpy()).sum()
    assert work_token_s <= 0.34 * 100_000 * 7 * DAY


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(file):
    digests = [load(file, read_as="logs", copies=2, seed=s).digest for s in (3, 3, 4)]
    assert digests[0] == digests[1] != digests[2]


def changed(*path_and_value):
    *path, last, value = path_and_value
    content = copy.deepcopy(SMALL)
    part = content["workflow"]
    for key in path:
        part = part[key]
    part[last] = value
    return content


@pytest.mark.parametrize(
    ("content", "rule", "words"),
    [
        ([], "wrong shape", "the file must be an object"),
        ({"workflow": {}}, "wrong shape", "WfFormat 1.5 has no specification and no tasks"),
        ({"workflow": {"tasks": []}}, "empty workflow", "has no tasks"),
        (changed("specification", []), "wrong shape", "specification of WfFormat 1.5 must be an"),
        (changed("specification", "tasks", []), "empty workflow", "has no tasks"),
        (changed("specification", "tasks", 1, task("split")), "duplicate id", "the id 'split'"),
        (changed("specification", "tasks", 3, task("split", ["no"])), "unknown task", "'no'"),
        (
            changed("specification", "tasks", 3, task("split", ["merge_ID03"])),
            "cycle",
            "each other",
        ),
        (changed("execution", "tasks", []), "no run time", "'merge_ID03'"),
        (
            changed("execution", "tasks", 0, executed("split", -1)),
            "number out of range",
            "valid: 0 to",
        ),
        (
            changed("execution", "tasks", 0, executed("split", "4")),
            "wrong shape",
            "must be a number",
        ),
        (changed("specification", "tasks", 3, "inputFiles", "in"), "wrong shape", "list of names"),
        (changed("specification", "tasks", 3, "inputFiles", ["\ud800"]), "not UTF-8", "UTF-8"),
        (
            changed("specification", "tasks", 3, "children", ["no"]),
            "unknown task",
            "the child 'no'",
        ),
        (
            changed("execution", "tasks", 3, executed("split", 5.0)),
            "duplicate id",
            "'split' is executed twice, for 4 s and for 5 s",
        ),
    ],
)
def test_invalid_files_are_errors(tmp_path, content, rule, words):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=words) as caught:
        load(tmp_path)
    assert caught.value.rule == rule
    assert str(caught.value.file).endswith("a.json")


def test_invalid_json_and_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match="has no files"):
        load(tmp_path)
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        load(tmp_path)
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="not JSON"):
        load(tmp_path)


def test_invalid_options(file):
    with pytest.raises(InputError, match="read_as must be"):
        load(file, read_as="job")
    assert np.isfinite(load(file, every_s=5.0).jobs["submit_s"].to_numpy()).all()
