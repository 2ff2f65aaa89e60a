"""Pods, Jobs, PodGroups and Workloads become jobs with gangs, rounds, requests and lost tries."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import policies
import sim
from sim.check.account import check_account
from sim.traces import read_trace
from sim.traces.kubernetes import DELETED, EVICTED
from sim.workload.attempts import FAILED, NEVER_RAN, RUNNING, WAITING
from tests.sim.traces.kubernetes_objects import (
    container,
    job,
    owner,
    pod,
    pod_group,
    time,
    workload,
    write,
)


def load(folder: Path, *objects: Any, **options: Any) -> sim.Workload:
    return read_trace("kubernetes", write(folder / "objects.json", *objects), **options)


def report(w: sim.Workload, part: str) -> Any:
    return w.meta["report"][part]


def rows(w: sim.Workload, table: str, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in getattr(w, table).to_pylist()]


def durations(w: sim.Workload) -> list[float]:
    seconds: list[float] = w.tasks["duration_s"].to_pylist()
    return seconds


def test_a_pod_holds_its_requests_from_its_scheduling_to_its_end(tmp_path: Path) -> None:
    first = pod("load", 10, 70, started=25, created=5)
    second = pod("sum", 12, 12, created=0, phase="Failed", namespace="glade")
    second["spec"] |= {"priority": 7, "activeDeadlineSeconds": 600}
    w = load(tmp_path, first, second)
    assert rows(w, "jobs", "job_id", "submit_s", "user", "queue", "priority", "requested_s") == [
        ("glade/sum", 0.0, "glade", "glade", 7.0, 600.0),
        ("grove/load", 5.0, "grove", "grove", 0.0, None),
    ]
    assert rows(w, "jobs", "recorded_start_s", "recorded_finish_s") == [(12, 12), (10, 70)]
    assert rows(w, "stages", "demand_cpu", "demand_mem", "node_list") == [(1, 1, "node-1")] * 2
    assert durations(w) == [0.5, 60.0]
    account = check_account(w, cpu_s=60, mem_gib_s=60, jobs=2, tasks=2)
    assert account["cpu_s"]["changed"] == -0.5
    started = load(tmp_path, first, second, runs_from="started")
    assert durations(started) == [0.5, 45.0]
    assert rows(started, "jobs", "recorded_start_s") == [(12,), (25,)]


def test_pods_that_had_not_ended_or_never_ran_are_counted(tmp_path: Path) -> None:
    never = pod("never", None, phase="Failed")
    w = load(tmp_path, pod("a", 0, 60), pod("b", 30), pod("c", None), never)
    assert report(w, "dropped") == {RUNNING: 1, WAITING: 1, NEVER_RAN: 1}
    account = check_account(w, cpu_s=60, jobs=4, tasks=4)
    assert account["cpu_s"]["unknown"] == 1
    (warning,) = report(w, "warnings")
    assert warning.startswith("1 of 4 jobs still ran when the log ended (censored)")
    with pytest.raises(sim.InputError, match=r"no job is left; dropped: 1 × still running"):
        load(tmp_path, pod("b", 30))


def test_an_evicted_pod_ends_when_it_was_not_ready_any_more(tmp_path: Path) -> None:
    evicted = pod("evicted", 10, 70, phase="Failed")
    evicted["status"]["containerStatuses"] = []
    unknown = {**evicted, "metadata": pod("unknown")["metadata"], "status": {**evicted["status"]}}
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": time(40)}
    evicted["status"]["conditions"] = [*unknown["status"]["conditions"], target]
    w = load(tmp_path, evicted, unknown)
    assert durations(w) == [30.0]
    assert report(w, "dropped") == {"end unknown": 1}
    check_account(w, cpu_s=30)


def test_requests_are_effective_ones(tmp_path: Path) -> None:
    big = pod("big", 0, 10, containers=[container({"nvidia.com/gpu": "2"}, cpu="500m"), {}])
    big["spec"]["initContainers"] = [
        {**container(cpu="250m"), "restartPolicy": "Always"}, container(cpu="3"),
    ]  # fmt: skip
    big["spec"]["overhead"] = {"cpu": "100m", "memory": "64Mi"}
    limited = pod("limited", 0, 10, containers=[{"resources": {"limits": {"cpu": "2"}}}])
    sliced = {"nvidia.com/mig-3g.20gb": 2, "nvidia.com/mig-1g.6gb": 1, "rdma/hca": 1}
    mig = pod("mig", 0, 10, containers=[container(sliced)])
    w = load(tmp_path, big, limited, mig)
    assert rows(w, "stages", "demand_cpu", "demand_mem", "demand_gpu") == [
        (3.35, 0.0625, 2.0), (2.0, 0.0, 0.0), (0.0, 0.0, pytest.approx(6 / 7 + 1 / 4)),
    ]  # fmt: skip
    assert report(w, "noticed") == {
        "slices of GPUs (MIG): sevenths, of an A30 quarters, of a GPU": 2,
        "requests of rdma/hca: left out": 1,
        "pods without a request for CPUs: they hold none": 1,
    }
    check_account(w, cpu_s=53.5, gpu_s=10 * (2 + 6 / 7 + 1 / 4))
    seven = [pod(f"s{i}", 0, 10, containers=[container({"nvidia.com/mig-1g.5gb": 1})])
             for i in range(7)]  # fmt: skip
    one_gpu = sim.Cluster.machines(1, cpu=1, mem=1, gpu=1)
    run = sim.simulate(load(tmp_path, *seven), one_gpu, policies.build("fifo"))
    assert run.metrics["makespan_s"] == 10.0


def test_pods_of_a_job_are_its_tasks_and_replaced_ones_earlier_attempts(tmp_path: Path) -> None:
    pods = [
        pod("a", 10, 70, job="load"),
        pod("b", 10, 30, job="load", phase="Failed"),
        pod("c", 35, 95, job="load"),
    ]
    cron = job("load", 2, 2, succeeded=2, failed=1, ownerReferences=[owner("CronJob", "nightly")])
    w = load(tmp_path, cron, *pods)
    assert rows(w, "jobs", "job_id", "template", "min_tasks", "recorded_start_s") == [
        ("grove/load", "grove/nightly", 0, 10.0)
    ]
    assert rows(w, "stages", "n_tasks") == [(2,)]
    assert report(w, "dropped") == {FAILED: 1}
    account = check_account(w, cpu_s=140, jobs=1, tasks=3)
    assert account["cpu_s"]["left_out_by"] == {FAILED: 20.0}
    assert load(tmp_path, cron, *pods, gangs="parallel").jobs["min_tasks"].to_pylist() == [2]
    without = load(tmp_path, *pods)
    assert durations(without) == [60.0, 60.0]
    assert report(without, "dropped") == {FAILED: 1}


@pytest.mark.parametrize("indexed", [False, True])
def test_the_last_tries_of_a_job_that_failed_are_its_tasks(tmp_path: Path, indexed: bool) -> None:
    pods = []
    for i in range(4):
        index = i % 2 if indexed else None
        pods.append(pod(f"p{i}", 10 * i, 10 * i + 5, job="load", phase="Failed", index=index))
    w = load(tmp_path, job("load", 2, 2, indexed=indexed, failed=4, condition="Failed"), *pods)
    assert rows(w, "tasks", "recorded_start_s") == [(20.0,), (30.0,)]
    assert report(w, "dropped") == {FAILED: 2}
    assert w.jobs["min_tasks"].to_pylist() == [2 if indexed else 0]
    check_account(w, cpu_s=20)
    deleted = load(tmp_path, *pods)
    assert rows(deleted, "tasks", "recorded_start_s") == ([(20.0,)] if indexed else []) + [(30.0,)]


def test_a_job_that_goes_on_is_censored_with_all_its_pods(tmp_path: Path) -> None:
    pods = [pod("a", 0, 60, job="load"), pod("b", 0, job="load"), pod("c", None, job="load")]
    w = load(tmp_path, job("load", 3, 3, succeeded=1, condition=""), *pods, pod("d", 0, 5))
    assert report(w, "dropped") == {RUNNING: 2, WAITING: 1}
    assert check_account(w, cpu_s=65, jobs=2, tasks=4)["cpu_s"]["left_out"] == 60
    suspended = load(tmp_path, job("load", 3, 3, condition=""), pod("d", 0, 5))
    assert report(suspended, "dropped") == {WAITING: 1}
    assert check_account(suspended, jobs=2)["tasks"]["left_out"] == 3


def test_a_job_with_fewer_places_than_completions_runs_in_rounds(tmp_path: Path) -> None:
    times = [(0, 10), (0, 30), (10, 40), (30, 35), (35, 70)]
    pods = [pod(f"p{i}", start, end, job="load") for i, (start, end) in enumerate(times)]
    w = load(tmp_path, job("load", 5, 2, succeeded=5), *pods)
    assert rows(w, "stages", "name", "n_tasks") == [
        ("pods", 2), ("pods, round 2", 2), ("pods, round 3", 1),
    ]  # fmt: skip
    assert rows(w, "stage_edges", "parent", "child", "kind") == [
        (0, 1, "one_to_one"), (1, 2, "one_to_one"),
    ]  # fmt: skip
    check_account(w, cpu_s=110, tasks=5)
    run = sim.simulate(w, sim.Cluster.slots(9), policies.build("fifo"), record="tasks")
    assert run.metrics["makespan_s"] == 70.0
    assert run.tasks["start_s"].to_pylist() == w.tasks["recorded_start_s"].to_pylist()


def test_pods_that_only_their_job_counts_are_told(tmp_path: Path) -> None:
    pods = [pod(f"p{i}", 0, 10, job="load") for i in range(6)]
    w = load(tmp_path, job("load", 10, 10, succeeded=8, failed=2), *pods)
    assert report(w, "dropped") == {DELETED: 1}
    account = check_account(w, cpu_s=60, jobs=1, tasks=10)
    assert (account["tasks"]["left_out"], account["cpu_s"]["unknown"]) == (4, 1)
    assert report(w, "warnings") == [
        "4 of 10 pods that ended (40.0 %) are deleted, and only counted by their Jobs: the log "
        "does not tell their work"
    ]
    deleted = load(tmp_path, job("load", 2, 2, succeeded=2), pod("a", 0, 5))
    assert deleted.n_jobs == 1
    assert check_account(deleted, jobs=2, tasks=3)["jobs"]["left_out"] == 1


@pytest.mark.parametrize("with_pods", [False, True])
def test_a_workload_is_a_gang_of_all_its_sets(tmp_path: Path, with_pods: bool) -> None:
    lead, work = container(cpu="1"), container({"nvidia.com/gpu": 1}, cpu="4")
    gang = workload(
        "w", [("lead", 1, lead), ("work", 2, work)], created=3, admitted=20, finished=80,
        owned_by=owner("RayJob", "train", "ray.io/v1"),
        spec={"priority": 5, "maximumExecutionTimeSeconds": 900},
    )  # fmt: skip
    pods = []
    for name, asks in (("lead", lead), ("work", work), ("work", work)):
        item = pod(f"{name}-{len(pods)}", 20, 80, created=18, containers=[asks])
        item["metadata"]["labels"] = {"kueue.x-k8s.io/podset": name}
        item["metadata"]["annotations"] = {"kueue.x-k8s.io/workload": "w"}
        pods.append(item)
    w = load(tmp_path, gang, *(pods if with_pods else ()))
    assert rows(w, "jobs", "submit_s", "queue", "priority", "min_tasks", "requested_s") == [
        (0.0, "gold", 5.0, 3, 900.0)
    ]
    assert rows(w, "stages", "name", "n_tasks", "demand_cpu", "demand_gpu") == [
        ("lead", 1, 1.0, 0.0), ("work", 2, 4.0, 1.0),
    ]  # fmt: skip
    assert durations(w) == [60.0] * 3
    check_account(w, cpu_s=540, gpu_s=120, jobs=1, tasks=3)
    nodes = sim.Cluster.mixed([{"cpu": 4, "devices": {"gpu": 1}, "count": 2}, {"cpu": 1}])
    result = sim.simulate(w, nodes, policies.build("easy"), record="tasks")
    assert result.task_machine.tolist() == [2, 0, 1]  # each set on nodes of its own


def test_a_workload_of_a_job_gives_its_gang_queue_and_submission(tmp_path: Path) -> None:
    gang = workload("w", [("main", 2, container(cpu="1"))], created=1, admitted=9, finished=70,
                    owned_by=owner("Job", "load"))  # fmt: skip
    pods = [pod(f"p{i}", 10, 70, created=9, job="load") for i in range(2)]
    w = load(tmp_path, gang, job("load", 2, 2, created=0, succeeded=2), *pods)
    assert rows(w, "jobs", "job_id", "queue", "min_tasks", "recorded_start_s") == [
        ("grove/load", "gold", 2, 10.0)
    ]
    assert load(tmp_path, gang, *pods, gangs="none").jobs["min_tasks"].to_pylist() == [0]


def test_a_workload_may_be_admitted_in_part(tmp_path: Path) -> None:
    sets = [("main", 4, container(cpu="1")), ("lead", 1, container(cpu="1"))]
    admission = {"podSetAssignments": [{"name": "main", "count": 2}, {"name": "lead"}]}
    part = workload("w", sets, admitted=0, finished=60, status={"admission": admission})
    w = load(tmp_path, part)
    assert sorted(rows(w, "stages", "name", "n_tasks")) == [("lead", 1), ("main", 2)]
    assert w.jobs["min_tasks"].to_pylist() == [3]
    check_account(w, cpu_s=180, tasks=3)


def test_earlier_admissions_are_lost_work(tmp_path: Path) -> None:
    evicted = {"schedulingStats": {"evictions": [{"reason": "Preempted", "count": 2}]}}
    sets = [("main", 2, container(cpu="3"))]
    first = workload("a", sets, admitted=100, finished=160,
                     status={**evicted, "accumulatedPastExexcutionTimeSeconds": 50})  # fmt: skip
    second = workload("b", sets, status=evicted)
    w = load(tmp_path, first, second)
    assert report(w, "dropped") == {EVICTED: 1, WAITING: 1}
    account = check_account(w, cpu_s=660, jobs=2, tasks=6)
    assert account["cpu_s"]["left_out_by"][EVICTED] == 300
    assert (
        "Workloads that were evicted after an admission: 2, 4 times; the pods of then are deleted, "
        "and how long they ran is known of 1 Workloads"
    ) in report(w, "warnings")
    withdrawn = workload("c", sets, finished=160,
                         status={"accumulatedPastExecutionTimeSeconds": 60})  # fmt: skip
    assert (
        rows(load(tmp_path, withdrawn), "tasks", "recorded_start_s", "duration_s")
        == [(100.0, 60.0)] * 2
    )


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("labels", "scheduling.x-k8s.io/pod-group"),
        ("labels", "pod-group.scheduling.sigs.k8s.io"),
        ("annotations", "scheduling.k8s.io/group-name"),
    ],
)
def test_a_pod_group_is_a_gang_of_its_least_members(tmp_path: Path, where: str, name: str) -> None:
    pods = [pod(f"p{i}", 10, 20 + i) for i in range(3)]
    for item in pods:
        item["metadata"][where] = {name: "g", **item["metadata"].get(where, {})}
    group = pod_group("g", 2)
    group["spec"]["queue"] = "silver"
    w = load(tmp_path, group, *pods)
    assert rows(w, "jobs", "job_id", "queue", "min_tasks") == [("grove/g", "silver", 2)]
    assert durations(w) == [10.0, 11.0, 12.0]
    alone = load(tmp_path, *pods)
    assert rows(alone, "jobs", "min_tasks") == [(0,)]
    text = "pod groups that are not among the objects: their pods start one by one"
    assert report(alone, "noticed") == {text: 1}
    large = load(tmp_path, pod_group("g", 9), *pods)
    assert rows(large, "jobs", "min_tasks") == [(3,)]
    assert report(large, "noticed") == {"a gang larger than its tasks: all of them": 1}


def test_a_queue_of_a_namespace_is_another_one_than_that_of_another(tmp_path: Path) -> None:
    label = {"kueue.x-k8s.io/queue-name": "main"}
    first, second = pod("a", 0, 10, labels=label), pod("b", 0, 10, labels=label, namespace="glade")
    assert load(tmp_path, first).jobs["queue"].to_pylist() == ["main"]
    both = load(tmp_path, first, second)
    assert rows(both, "jobs", "queue") == [("glade/main",), ("grove/main",)]


def test_restarted_containers_are_told(tmp_path: Path) -> None:
    again = pod("a", 0, 100, started=70)
    again["status"]["containerStatuses"][0] |= {
        "restartCount": 2,
        "lastState": {"terminated": {"startedAt": time(30), "finishedAt": time(60)}},
    }
    w = load(tmp_path, again)
    assert durations(w) == [100.0]
    (warning,) = report(w, "warnings")
    assert warning.startswith("containers of 1 of 1 pods were restarted, 2 times")
    assert durations(load(tmp_path, again, runs_from="started")) == [70.0]


def test_every_form_gives_the_same_workload(tmp_path: Path) -> None:
    objects = [job("load", 2, 2, succeeded=2), pod("a", 5, 60, job="load"),
               pod("b", 6, 50, job="load"), pod("c", 1, 9)]  # fmt: skip
    expected = load(tmp_path, *objects).digest
    texts = [json.dumps(item) for item in objects]
    folder = tmp_path / "dump"
    (folder / "grove").mkdir(parents=True)
    write(folder / "grove" / "jobs.json", *objects[:1])
    (folder / "grove" / "pods.json.gz").write_bytes(gzip.compress(texts[3].encode()))
    typed = [{k: v for k, v in item.items() if k != "kind"} for item in objects[1:3]]
    (folder / "pods.json").write_text(json.dumps({"kind": "PodList", "items": typed}))
    (folder / "README.txt").write_text("a dump")
    forms = {
        "list.json": f"[{', '.join(texts)}]",
        "lines.jsonl": "\n".join(texts),
        "marked.json": "\ufeff" + "".join(json.dumps(item, indent=2) for item in objects),
        "watched.json": "\n".join(f'{{"type": "ADDED", "object": {text}}}' for text in texts),
        "lists.json": f'[{{"kind": "List", "items": [{",".join(texts)}]}}]',
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "utf16.json").write_text(forms["list.json"], encoding="utf-16")
    for path in (*(tmp_path / name for name in forms), tmp_path / "utf16.json", folder):
        assert read_trace("kubernetes", path).digest == expected, path


def test_the_latest_state_of_an_object_counts(tmp_path: Path) -> None:
    asks = [container({"nvidia.com/gpu.shared": 1}, cpu="1")]
    early = pod("a", 0, resourceVersion="90", containers=asks)
    late = pod("a", 0, 60, resourceVersion="100", containers=asks)
    for objects in ((early, late), (late, early)):
        w = load(tmp_path, *objects)
        assert durations(w) == [60.0]
        assert report(w, "noticed") == {
            "objects given again: their latest state": 1,
            "shared GPUs (nvidia.com/gpu.shared): whole ones": 1,
        }
        check_account(w, cpu_s=60, jobs=1)
    again = pod("a", 100, 160, created=90, uid="another")
    w = load(tmp_path, late, again)
    assert w.jobs["job_id"].to_pylist() == ["grove/a", "grove/a#2"]


def test_other_objects_are_counted_by_kind(tmp_path: Path) -> None:
    unread = [
        {"kind": "Node", "apiVersion": "v1"},
        {**job("v"), "apiVersion": "batch.volcano.sh/v1alpha1"},
    ]
    w = load(tmp_path, *unread, pod("a", 0, 5, ownerReferences=[owner("Workflow", "w", "argo")]))
    assert report(w, "noticed") == {
        "objects of the kind Node: not read": 1,
        "objects of the kind Job of batch.volcano.sh/v1alpha1: not read": 1,
        "pods of a Workflow: a job each": 1,
    }
    with pytest.raises(sim.InputError, match=r"there is no Pod or Job .*, but 1 .* 1 Node; write"):
        load(tmp_path, *unread)


@pytest.mark.parametrize(
    ("spoil", "rule", "words"),
    [
        (lambda p: p["metadata"].pop("creationTimestamp"), "missing value", "creationTimestamp"),
        (lambda p: p["metadata"].update(creationTimestamp="Monday"), "wrong time", "'Monday'"),
        (lambda p: p["spec"].update(containers={}), "wrong type", "containers must be a list"),
        (lambda p: p["status"].update(phase=3), "wrong type", "status.phase must be text, not 3"),
        (
            lambda p: p["spec"].update(containers=[container(cpu="a lot")]),
            "wrong quantity",
            "resources.requests.cpu must be a quantity like 1500m or 2Gi, not 'a lot'",
        ),
    ],
)
def test_an_invalid_object_is_named_or_skipped(
    tmp_path: Path, spoil: Any, rule: str, words: str
) -> None:
    bad = pod("bad", 0, 10)
    spoil(bad)
    with pytest.raises(sim.InputError) as caught:
        load(tmp_path, pod("good", 0, 10), bad)
    lines = (tmp_path / "objects.json").read_text().splitlines()
    line = next(i for i, text in enumerate(lines) if '"name": "bad"' in text)
    assert caught.value.rule == rule
    assert words in str(caught.value)
    assert "Pod grove/bad: " in str(caught.value)
    assert line - 8 < (caught.value.line or 0) <= line + 1
    w = load(tmp_path, pod("good", 0, 10), bad, on_bad_row="skip")
    assert report(w, "bad_rows") == {rule: 1}
    check_account(w, cpu_s=10, jobs=2)


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        ("NAME READY\na 1/1\n", "not JSON", "begins with 'NAME READY'; write it with kubectl"),
        ('{"items": [{}', "wrong line", "is the file whole?"),
        ('{"items": [\n{"kind": "Pod"},\n{"kind": }', "wrong line", "objects.json:3:"),
    ],
)
def test_a_file_of_another_form_is_named(tmp_path: Path, text: str, rule: str, words: str) -> None:
    path = tmp_path / "objects.json"
    path.write_text(text)
    with pytest.raises(sim.InputError) as caught:
        read_trace("kubernetes", path, on_bad_row="skip")
    assert caught.value.rule == rule
    assert words in str(caught.value)
    with pytest.raises(sim.InputError, match=r"the folder has no files \*.json"):
        read_trace("kubernetes", write_nothing(tmp_path / "empty"))


def write_nothing(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
