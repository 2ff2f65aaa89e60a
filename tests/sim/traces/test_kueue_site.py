"""Sites of Kubernetes with Kueue, from objects as its API has them."""

from __future__ import annotations

import json

import pytest
import yaml

import policies
import sim
from sim.base.errors import InputError
from sim.cli.main import main
from sim.cluster.domains import asked_levels
from sim.traces import sites
from sim.traces.kueue_site.nodes import tolerates
from sim.traces.kueue_site.site import read_site
from sim.traces.sites.pseudonyms import Pseudonyms
from tests.sweep.grid.test_request import read as read_request


def meta(name, namespace="", second=0, **more):
    hours, rest = divmod(second, 3600)
    created = f"2026-03-02T{8 + hours:02d}:{rest // 60:02d}:{rest % 60:02d}Z"
    return {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}",
            "creationTimestamp": created, **more}  # fmt: skip


def time(second):
    return meta("x", second=second)["creationTimestamp"]


def quota(flavor, **resources):
    """Return quotas of a flavor: nominal, borrowing and lending limit of each resource."""
    keys = ("nominalQuota", "borrowingLimit", "lendingLimit")
    names = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu", "pods": "pods"}
    rows = [
        {"name": names[key], **{k: v for k, v in zip(keys, amounts, strict=False) if v is not None}}
        for key, amounts in resources.items()
    ]
    return {"name": flavor, "resources": rows}


def group(*flavors):
    return {"coveredResources": [r["name"] for r in flavors[0]["resources"]],
            "flavors": [*flavors]}  # fmt: skip


def queue(name, cohort, *groups, version="v1beta2", **spec):
    key = "cohortName" if version == "v1beta2" else "cohort"
    spec = {"resourceGroups": [*groups], **({key: cohort} if cohort else {}), **spec}
    return {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": "ClusterQueue",
            "metadata": meta(name), "spec": spec}  # fmt: skip


def flavor(name, labels=None, **spec):
    spec = {"nodeLabels": labels or {}, **spec}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
            "metadata": meta(name), "spec": spec}  # fmt: skip


def node(name, cpu, gib, gpu=0, labels=None, **spec):
    allocatable = {"cpu": str(cpu), "memory": f"{gib}Gi", "pods": "110"}
    allocatable |= {"nvidia.com/gpu": str(gpu)} if gpu else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta(name, labels=labels or {}),
            "spec": spec, "status": {"allocatable": allocatable}}  # fmt: skip


def local(name, namespace, cluster_queue):
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
            "metadata": meta(name, namespace), "spec": {"clusterQueue": cluster_queue}}  # fmt: skip


def workload(name, namespace, queue_name, second, start, end, n=1, cpu=1, gpu=0, **more):
    requests = {"cpu": str(cpu), "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpu)} if gpu else {})
    pod = {
        "containers": [{"name": "c", "resources": {"requests": requests}}],
        **more.pop("pod", {}),
    }
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": time(since)}
        for kind, since in (("QuotaReserved", start), ("Admitted", start), ("Finished", end))
        if since is not None
    ]
    spec = {"queueName": queue_name, "priority": more.pop("priority", 0), **more,
            "podSets": [{"name": "main", "count": n, "template": {"spec": pod}}]}  # fmt: skip
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": meta(name, namespace, second), "spec": spec,
            "status": {"conditions": conditions}}  # fmt: skip


CPU, A100 = {"kind": "cpu"}, {"kind": "a100"}
SITE = [
    queue("team-a", "all",
          group(quota("cpus", cpu=(8, 4, 2), memory=("32Gi",), gpu=(0,)),
                quota("a100", cpu=(4, 0, 0), memory=("32Gi",), gpu=(4, None, 2))),
          version="v1beta1",
          preemption={"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}),
    queue("team-b", "all", group(quota("cpus", cpu=("7500m",), memory=("32Gi",))),
          group(quota("a100", gpu=(4,))), queueingStrategy="StrictFIFO",
          fairSharing={"weight": "2"},
          preemption={"reclaimWithinCohort": "LowerPriority"}, stopPolicy="Hold"),
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": meta("all"),
     "spec": {"parentName": "org", "resourceGroups": [group(quota("cpus", cpu=(4, 0)))]}},
    flavor("cpus", CPU),
    flavor("a100", A100, nodeTaints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
    node("c1", 8, 32, labels=CPU | {"zone": "x"}), node("c2", 8, 32, labels=CPU | {"zone": "y"}),
    node("g1", 16, 64, 8, labels=A100), node("old", 4, 8),
    node("c3", 4, 16, labels=CPU, unschedulable=True),
    local("user", "a", "team-a"), local("user", "b", "team-b"), local("extra", "b", "team-b"),
]  # fmt: skip
JOBS = [
    workload("one", "a", "user", 0, 5, 105, n=4, priority=3),
    workload("two", "a", "user", 10, 20, 80, cpu="500m", gpu=2,
             pod={"tolerations": [{"key": "gpu", "operator": "Exists"}],
                  "nodeSelector": {"kind": "a100"}}),
    workload("three", "b", "user", 30, 40, 90, pod={"nodeSelector": {"zone": "y"}}),
    workload("four", "b", "extra", 50, 60, 70, cpu=2, maximumExecutionTimeSeconds=600),
    workload("five", "b", "user", 55, 60, None),
    workload("six", "b", "user", 70, None, None),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "exports"
    path.mkdir()
    (path / "kueue.json").write_text(json.dumps({"kind": "List", "items": SITE}))
    (path / "workloads.json").write_text(json.dumps({"kind": "List", "items": JOBS}))
    return path


CPUS = "cpus|cpus#2|cpus#3"
"""Classes of the nodes of flavor cpus."""


def test_quotas_of_queues_and_cohorts(folder):
    """By the classes of the nodes of each flavor; a queue among others blocks by itself."""
    quotas = read_site(folder).cluster["quotas"]
    assert quotas == {
        "team-a": {
            "parent": "all",
            "nominal": {"cpu": {CPUS: 8, "a100": 4}, "mem": {CPUS: 32, "a100": 32},
                        "gpu": {CPUS: 0, "a100": 4}},
            "borrow": {"cpu": {CPUS: 4, "a100": 0}},
            "lend": {"cpu": {CPUS: 2, "a100": 0}, "gpu": {"a100": 2}},
        },
        "team-b": {
            "parent": "all", "weight": 2, "strategy": "strict",
            "nominal": {"cpu": {CPUS: 7.5}, "mem": {CPUS: 32}, "gpu": {"a100": 4}},
        },
        "all": {"parent": "org", "nominal": {"cpu": {CPUS: 4}}, "borrow": {"cpu": {CPUS: 0}}},
    }  # fmt: skip


def test_flavors_in_the_order_of_a_queue(tmp_path):
    """Of one of each resource the quota is a number; a class of two flavors is in the first."""
    spot, both = {"spot": "yes"}, {"spot": "yes", "new": "yes"}
    items = [
        queue("q", "",
              group(quota("new", cpu=(4,)), quota("spot", cpu=(8,)), quota("gone", cpu=(9,))),
              group(quota("any", memory=("9Gi",))),
              flavorFungibility={"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "Preempt"}),
        flavor("spot", spot), flavor("new", {"new": "yes"}), flavor("any"),
        flavor("gone", {"x": "y"}),
        node("n1", 4, 8, labels=spot), node("n2", 4, 8, labels=both),
    ]  # fmt: skip
    site = written(tmp_path, items)
    assert [n.machine_class for n in site.nodes] == ["new+spot+any", "spot+any"]
    assert site.cluster["quotas"] == {
        "q": {"nominal": {"cpu": {"new+spot+any": 4, "spot+any": 8}, "mem": 9},
              "flavor_choice": "least_borrowing"}
    }  # fmt: skip
    text = "\n".join(site.notes)
    for part in (
        "of the flavors new and spot",
        "q's quota of cpu in gone",
        "whenCanPreempt Preempt",
    ):
        assert part in text, part


def test_jobs_that_ran_elsewhere_add_the_quotas_of_flavors_up(folder):
    """Of team-b pods with a GPU take CPUs of one flavor and GPUs of another: no node is both."""
    jobs = [workload("odd", "b", "user", 0, 5, 50, gpu=1)]
    (folder / "workloads.json").write_text(json.dumps({"kind": "List", "items": jobs}))
    site = read_site(folder)
    assert site.cluster["quotas"]["team-a"]["nominal"] == {"cpu": 12, "mem": 64, "gpu": 4}
    assert any("may run on no machine of a flavor" in note for note in site.notes)


def test_nodes_by_flavor_and_what_pods_ask_for(folder):
    site = read_site(folder)
    assert [(n.name, n.machine_class) for n in site.nodes] == [
        ("c1", "cpus"), ("c2", "cpus#2"), ("c3", "cpus#3"), ("g1", "a100"), ("old", "none"),
    ]  # fmt: skip
    assert site.cluster["shape"][3] == {
        "class": "a100", "count": 1, "cpu": 16, "mem": 64, "devices": {"gpu": 8}, "nodes": "g1",
    }  # fmt: skip
    stages = site.workload.stages
    assert stages["runs_on"].to_pylist() == ["cpus|cpus#2|cpus#3", "a100", "cpus#2",
                                             "cpus|cpus#2|cpus#3"]  # fmt: skip


def test_jobs_wait_in_cluster_queues(folder):
    jobs = read_site(folder).workload.jobs
    assert jobs["job_id"].to_pylist() == ["a/one", "a/two", "b/three", "b/four"]
    assert jobs["queue"].to_pylist() == ["team-a", "team-a", "team-b", "team-b"]
    assert jobs["user"].to_pylist() == ["a", "a", "b", "b"]
    assert jobs["min_tasks"].to_pylist() == [4, 0, 0, 0]
    assert jobs["priority"].to_pylist() == [3, 0, 0, 0]
    assert jobs["recorded_start_s"].to_pylist() == [5, 20, 40, 60]
    assert read_site(folder).cluster["enforce_limits"] is True


def test_the_policy_and_what_it_lacks(folder):
    site = read_site(folder)
    assert site.policy == {
        "name": "kueue", "queueing_strategy": "BestEffortFIFO",
        "preemption": {"by": "quota", "in_queue": True, "when": "requeue"},
    }  # fmt: skip
    built = policies.build(**site.policy)
    assert built.queueing_strategy == "BestEffortFIFO"
    text = "\n".join(site.notes)
    for part in (
        "never held against a real site", "team-b stopPolicy Hold",
        "reclaimWithinCohort LowerPriority of team-b", "withinClusterQueue Never of team-b",
        "c3 is cordoned", "old is of no flavor",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.long
def test_it_simulates_with_the_options_that_are_written(folder, tmp_path, capsys):
    assert main(["site", str(folder), "--out", str(tmp_path / "twin"), "--name", "lab"]) == 0
    out = capsys.readouterr().out
    assert "5 nodes, 40 CPUs, 8 GPUs, of Kueue" in out
    assert "never held against a real site" in out
    for kind in ("cluster", "policy", "trace"):
        assert "Kueue" in (tmp_path / "twin" / kind / "lab.yaml").read_text()
    cluster = yaml.safe_load((tmp_path / "twin/cluster/lab.yaml").read_text())
    whole = sim.Cluster.mixed(cluster["shape"]).with_quotas(cluster["quotas"])
    policy = policies.build(**yaml.safe_load((tmp_path / "twin/policy/lab.yaml").read_text()))
    jobs = sim.Workload.read(tmp_path / "twin/workload")
    done = sim.simulate(jobs, whole, policy)
    assert done.jobs["outcome"].to_pylist() == ["done"] * 4
    # a starts four at once within its quota of 8 CPUs, and one on the GPUs; b needs zone y
    assert done.jobs["start_s"].to_pylist() == done.jobs["submit_s"].to_pylist()


def test_quotas_hold_jobs_back(folder, tmp_path):
    jobs = [workload(f"j{i}", "a", "user", i, 50, 150, cpu=4) for i in range(5)]
    (folder / "workloads.json").write_text(json.dumps({"kind": "List", "items": jobs}))
    site = read_site(folder)
    whole = sim.Cluster.mixed(site.cluster["shape"]).with_quotas(site.cluster["quotas"])
    done = sim.simulate(site.workload, whole, policies.build(**site.policy))
    # 8 CPUs of its own and 4 borrowed: three at once
    assert done.jobs["start_s"].to_pylist() == [0, 1, 2, 100, 101]


def test_pseudonyms(folder, tmp_path):
    site = read_site(folder, pseudonyms=Pseudonyms(tmp_path / "names.json"))
    assert site.workload.jobs["user"].to_pylist() == ["user1", "user1", "user2", "user2"]
    assert all(name.startswith("job") for name in site.workload.jobs["job_id"].to_pylist())
    assert site.workload.jobs["queue"].to_pylist()[0] == "team-a"


def test_without_nodes_or_jobs(tmp_path):
    path = tmp_path / "few"
    path.mkdir()
    items = [queue("solo", "", group(quota("any", cpu=(6,), pods=(9,))))]
    (path / "all.json").write_text(json.dumps({"kind": "List", "items": items}))
    site = read_site(path)
    assert site.workload is None
    assert site.cluster["shape"] == [{"count": 1, "cpu": 6}]
    assert site.cluster["quotas"] == {"solo": {"nominal": {"cpu": 6}}}
    assert site.policy == {"name": "kueue", "queueing_strategy": "BestEffortFIFO"}
    text = "\n".join(site.notes)
    assert "missing: Node" in text
    assert "quota of pods" in text
    with pytest.raises(InputError, match="no Workload that ended"):
        sim.read_trace("kueue_site", path)


def written(tmp_path, items):
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "items": items}))
    return read_site(tmp_path)


def test_nodes_without_memory_and_quotas_without_nodes_are_left_out(tmp_path):
    """As a virtual node, or GPU nodes that are scaled to none."""
    quotas = group(quota("any", cpu=(6,), gpu=(4,)))
    empty = node("new", 0, 0)
    site = written(tmp_path, [queue("solo", "", quotas), flavor("any"), node("c", 8, 32), empty])
    assert [(n.name, n.cpus) for n in site.nodes] == [("c", 8)]
    assert site.cluster["quotas"] == {"solo": {"nominal": {"cpu": 6}}}
    sim.Cluster.mixed(site.cluster["shape"]).with_quotas(site.cluster["quotas"])
    assert any("new has no cpu and memory" in note for note in site.notes)
    assert any("solo's quota of gpu" in note and "left out" in note for note in site.notes)


def test_a_site_in_which_nothing_can_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="no node, and no ClusterQueue") as error:
        written(tmp_path, [queue("solo", "", group(quota("any", gpu=(0,))))])
    assert error.value.file == str(tmp_path)


def test_names_and_circles(tmp_path):
    path = tmp_path / "circle"
    path.mkdir()
    cohorts = [
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": meta(name),
         "spec": {"parentName": parent}}
        for name, parent in (("x", "y"), ("y", "x"), ("q", ""))
    ]  # fmt: skip
    items = [queue("q", "q", group(quota("any", cpu=(6,)))), *cohorts]
    (path / "all.json").write_text(json.dumps({"kind": "List", "items": items}))
    site = read_site(path)
    assert site.cluster["quotas"]["q"]["parent"] == "cohort/q"
    assert "parent" not in site.cluster["quotas"]["x"]
    assert any("circle" in note for note in site.notes)


def test_it_is_told_from_other_folders(tmp_path):
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": [node("n", 1, 1)]}))
    with pytest.raises(InputError, match="no exports of Kueue or Slurm"):
        sites.read_site(tmp_path)
    with pytest.raises(InputError, match="is no folder"):
        sites.read_site(tmp_path / "nowhere")


def test_taints_and_tolerations():
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    assert tolerates([taint], [{"key": "gpu", "operator": "Exists"}])
    assert tolerates([taint], [{"key": "gpu", "operator": "Equal", "value": "yes"}])
    assert tolerates([taint], [{"operator": "Exists"}])
    assert not tolerates([taint], [{"key": "gpu", "value": "no"}])
    assert not tolerates([taint], [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}])
    assert tolerates([taint | {"effect": "PreferNoSchedule"}], [])


def test_the_option_is_complete():
    assert read_request("policy=kueue", "trace=kueue_site", "trace.path=.").axes["trace"] == (
        "kueue_site",
    )


BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"
HOST = "kubernetes.io/hostname"


def topology(name, *labels):
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": meta(name),
            "spec": {"levels": [{"nodeLabel": label} for label in labels]}}  # fmt: skip


def in_racks(folder, *requests):
    """Write four nodes in three racks of two blocks, and a job of three pods for each request."""
    racks = [("b1", "r1"), ("b1", "r1"), ("b1", "r2"), ("b2", "r1")]
    labels = [
        CPU | {BLOCK: block, RACK: rack, HOST: f"n{i}"} for i, (block, rack) in enumerate(racks)
    ]
    items = [
        queue("q", None, group(quota("cpus", cpu=(99,), memory=("99Gi",)))),
        flavor("cpus", CPU, topologyName="racks"),
        topology("racks", BLOCK, RACK, HOST),
        *(node(f"n{i}", 2, 8, labels=own) for i, own in enumerate(labels)),
        local("user", "a", "q"),
    ]
    for i, request in enumerate(requests):
        job = workload(f"job{i}", "a", "user", i, i + 5, i + 100, n=3)
        job["spec"]["podSets"][0]["topologyRequest"] = request
        items.append(job)
    (folder / "kueue.json").write_text(json.dumps({"kind": "List", "items": items}))
    (folder / "workloads.json").unlink()
    return read_site(folder)


def test_domains_are_those_of_a_topology(folder):
    site = in_racks(folder, {"required": RACK}, {"preferred": HOST}, {"unconstrained": True})
    levels = site.cluster["topology"]["levels"]
    assert levels[BLOCK]["nodes"] == {"b1": "n0,n1,n2", "b2": "n3"}
    assert levels[RACK]["nodes"] == {"b1/r1": "n0,n1", "b1/r2": "n2", "b2/r1": "n3"}
    assert [*levels] == [BLOCK, RACK, HOST]
    columns = site.workload.columns
    cluster = sim.Cluster.mixed(site.cluster["shape"]).with_topology(site.cluster["topology"])
    required, narrowest = asked_levels(columns, cluster)
    assert required.tolist() == [1, -1, -1]
    assert narrowest.tolist() == [1, 2, -1]
    assert not any("topology" in line for line in site.notes)
    result = sim.simulate(site.workload, cluster, policies.build("fifo"))
    assert result.task_machine.tolist() == [0, 0, 1, 1, 2, 2, 0, 0, 1]


def test_topologies_that_are_not_simulated_are_noted(folder):
    site = in_racks(folder, {"required": "zone"})
    assert any("topologyRequest of zone, which no topology has" in line for line in site.notes)
    assert asked_levels(site.workload.columns, sim.Cluster.machines(1, cpu=1))[0].tolist() == [-1]
