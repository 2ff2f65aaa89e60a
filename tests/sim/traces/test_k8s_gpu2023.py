"""Pods of a cluster with shared GPUs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import yaml

import policies
import sim
from sim.base.errors import InputError
from sim.cluster.fits import check_fits

ROOT = Path(__file__).resolve().parents[3]
HEAD = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time"
)


def pod(name="a", **changes):
    values = {
        "name": name, "cpu_milli": 6000, "memory_mib": 12288, "num_gpu": 1, "gpu_milli": 460,
        "gpu_spec": "", "qos": "LS", "pod_phase": "Running", "creation_time": 100,
        "deletion_time": 170, "scheduled_time": 110, **changes,
    }  # fmt: skip
    return ",".join(str(value) for value in values.values())


def load(path, *rows, head=HEAD, **options):
    file = path / "pods.csv"
    file.write_text("\n".join([head, *rows]) + "\n")
    return sim.read_trace("k8s_gpu2023", file, **options)


def published():
    kinds = yaml.safe_load((ROOT / "conf/cluster/k8s_gpu2023.yaml").read_text())["shape"]
    return sim.Cluster.mixed(kinds)


def test_a_pod_is_a_job_of_one_task(tmp_path):
    w = load(
        tmp_path,
        pod("b", creation_time=160, num_gpu=2, gpu_milli=1000, gpu_spec="T4|P100", qos="BE"),
        pod("a"),
        pod("c", creation_time=100.5, num_gpu=0, gpu_milli=0, qos=""),
    )
    assert w.jobs["job_id"].to_pylist() == ["a", "c", "b"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 0.5, 60.0]
    assert w.jobs["queue"].to_pylist() == ["LS", "default", "BE"]
    assert w.jobs["priority"].to_pylist() == [2.0, 0.0, 0.0]
    assert w.tasks["duration_s"].to_pylist() == [60.0] * 3
    assert w.stages["demand_gpu"].to_pylist() == [0.46, 0.0, 2.0]
    assert w.stages["demand_cpu"].to_pylist()[0] == 6.0
    assert w.stages["demand_mem"].to_pylist()[0] == 12.0
    assert w.stages["runs_on"].to_pylist() == ["", "", "T4|P100"]
    assert w.meta["report"]["filled"] == {"qos unknown: 'default'": 1}


def test_dropped_pods_are_counted_by_rule(tmp_path):
    w = load(
        tmp_path,
        pod("a"),
        pod("a"),
        pod("b", scheduled_time=""),
        pod("c", deletion_time=""),
        pod("d", deletion_time=105),
        pod("e", num_gpu=2, gpu_milli=500),
        pod("f", num_gpu=1, gpu_milli=0, pod_phase="Succeeded"),
    )
    assert w.meta["report"]["dropped"] == {
        "repeated line": 1,
        "never scheduled": 1,
        "censored: not deleted when the log ended": 1,
        "deleted before it was scheduled": 1,
        "parts of several GPUs": 1,
    }
    assert w.meta["report"]["noticed"] == {"one GPU, but 0 milli of it: none": 1}
    rows = (pod("a"), pod("f", pod_phase="Succeeded"))
    done = load(tmp_path, *rows, state="completed")
    assert done.jobs["job_id"].to_pylist() == ["f"]
    assert done.meta["report"]["dropped"] == {"not completed": 1}


@pytest.mark.parametrize(
    ("rows", "head", "rule", "line"),
    [
        ([pod(gpu_milli=1001)], HEAD, "number out of range", 2),
        ([pod(), pod("b", cpu_milli="six")], HEAD, "text in a number", 3),
        ([pod() + ",9"], HEAD, "wrong number of fields", 2),
        ([pod()], HEAD.replace("num_gpu", "gpus"), "missing column", 1),
        ([pod()], HEAD.replace("num_gpu", "qos"), "missing column", 1),
        ([pod()], "sn" + HEAD[4:], "no header", 1),
        ([pod(scheduled_time="")], HEAD, "no job left", 1),
    ],
)
def test_errors_name_file_line_and_rule(tmp_path, rows, head, rule, line):
    with pytest.raises(InputError) as caught:
        load(tmp_path, *rows, head=head)
    assert (caught.value.rule, caught.value.line) == (rule, line)
    assert "pods.csv" in str(caught.value)


def test_bad_rows_can_be_skipped(tmp_path):
    w = load(tmp_path, pod("a", gpu_milli=1001), pod("b"), on_bad_row="skip")
    assert w.jobs["job_id"].to_pylist() == ["b"]
    assert w.meta["report"]["bad_rows"] == {"number out of range": 1}


def test_the_published_pods_run_on_the_published_machines(shared_traces):
    file = shared_traces / "k8s_gpu2023" / "openb_pod_list_default.csv.gz"
    w = sim.read_trace("k8s_gpu2023", file)
    assert w.meta["report"]["rows"] == 8152
    assert w.meta["report"]["dropped"] == {"never scheduled": 897}
    cluster = published()
    check_fits(w, cluster)
    some = w.take(w.columns.job_submit > 1.28e7)
    r = sim.simulate(some, cluster, policies.build("gpu_packing"))
    assert (r.job_start == some.columns.job_submit).all()  # all find room at once


def test_the_machines_are_those_of_the_published_list(shared_traces):
    with gzip.open(shared_traces / "k8s_gpu2023" / "openb_node_list_all_node.csv.gz", "rt") as file:
        rows = [line.rstrip("\n").split(",") for line in file][1:]
    listed = sorted(
        (model, int(cpu) / 1000, int(mem) / 1024, int(gpu)) for _, cpu, mem, gpu, model in rows
    )
    cluster = published()
    names = [cluster.classes[k] for k in cluster.machine_class]
    columns = [cluster.resources.index(name) for name in ("cpu", "mem", "gpu")]
    ours = zip(names, *cluster.capacity[:, columns].T.tolist(), strict=True)
    assert sorted(ours) == listed
    assert len(listed) == 1523
    assert cluster.total[columns[2]] == 6212
