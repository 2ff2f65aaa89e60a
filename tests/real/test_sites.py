"""Harness of whole sites without Slurm: shapes, submissions, changes, and the kept runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.real.slurm.sites import changes, export, plan, run, shape, submissions
from sim.traces.slurm_site.hosts import expand
from sim.traces.slurm_site.slurm_conf import read_records, read_slurm_conf

MIXED = shape.read("mixed")
JOBS = submissions.generate(MIXED, 1)


@pytest.mark.parametrize("name", shape.NAMES)
def test_submissions_are_those_of_their_seed(name: str) -> None:
    site = shape.read(name)
    jobs = submissions.generate(site, 3)
    assert jobs == submissions.generate(site, 3) != submissions.generate(site, 4)
    assert [job.at_s for job in jobs] == sorted(job.at_s for job in jobs)
    for job in jobs:
        nodes = [site.kind_of(node) for node in site.partitions[job.partition].nodes]
        assert any(kind.cpus >= job.cpus and kind.gpus >= job.gpus for kind in nodes)
        assert job.limit_min <= site.partitions[job.partition].max_min
        assert job.user in site.accounts[job.account].users
    for name_of_class, options in site.jobs.items():
        assert "load" in options or "count" in options, name_of_class


def test_each_class_is_drawn_up_to_its_load() -> None:
    classes = {"gpu": MIXED.jobs["gpu"]}
    jobs = submissions.generate(replace(MIXED, jobs=classes), 1)
    work_s = sum(job.work_s("gpu") for job in jobs)
    wanted_s = classes["gpu"]["load"] * 12 * MIXED.span_s
    assert wanted_s <= work_s < wanted_s + 10_000 * 4


def test_a_chain_needs_the_one_before_it() -> None:
    chains = [chain for chain in submissions.chains_of(JOBS) if len(chain) > 1]
    assert {len(chain) for chain in chains} == {3}
    for chain in chains:
        places = [JOBS.index(job) for job in chain]
        assert [job.after for job in chain] == [-1, *places[:-1]]


def test_words_of_sbatch() -> None:
    job = submissions.Submission(
        0.0, "bin", "physics", "batch", 4, 60, (30.0, 90.0), gpus=1, mem_per_cpu_mb=2000,
        throttle=3, exclusive=True, feature="avx2", held_s=60.0, qos="high",
    )  # fmt: skip
    words = run.sbatch(job, "j7")
    assert words[words.index("-n") + 1] == "4"
    assert {"--array=0-1%3", "--exclusive", "--hold", "--qos=high", "--gres=gpu:1"} <= {*words}
    assert "--ntasks-per-node=4" in run.sbatch(replace(job, n_nodes=2), "j7")
    text = run.script(job, 60)
    assert "set -- 0.5000 1.5000" in text
    assert "shift ${SLURM_ARRAY_TASK_ID:-0}" in text


def test_configuration_is_what_the_reader_understands(tmp_path: Path) -> None:
    conf = read_slurm_conf(MIXED.write(tmp_path, 20_000))
    assert list(conf.nodes) == MIXED.node_names
    assert conf.nodes["g0"]["gres"] == "gpu:4"
    assert expand(conf.partitions["debug"]["nodes"]) == ["c6", "c7", "g2"]
    assert conf.partitions["debug"]["qos"] == "debug"
    assert [record["file"] for record in read_records(tmp_path / "gres.conf")] == ["/dev/tty[0-3]"]
    assert len({node["port"] for node in conf.nodes.values()}) == len(conf.nodes)


def test_accounts_and_limits_for_the_database() -> None:
    site = MIXED.site()
    assert ("chem", "games") in site.users
    assert site.qos["high"] == 100
    assert site.qos_options["normal"] == ["MaxTRESPerUser=cpu=96"]
    assert site.account_options == {"chem": ["GrpTRES=cpu=128"]}
    assert "debug" in site.for_partitions


def test_more_nodes_are_like_the_last_one() -> None:
    changed, jobs = changes.apply("nodes:c:2", MIXED, JOBS)
    assert jobs == JOBS
    assert {*changed.node_names} - {*MIXED.node_names} == {"c8", "c9"}
    assert changed.kind_of("c9") is changed.kind_of("c7")
    holders = [name for name, p in changed.partitions.items() if "c9" in p.nodes]
    assert holders == ["batch", "debug"]
    padded, _ = changes.apply("nodes:n:1", shape.read("preempt"), [])
    assert padded.node_names[-1] == "n60"


def test_a_shorter_limit_is_what_users_ask_for_at_most() -> None:
    changed, jobs = changes.apply("limit:batch:0.125", MIXED, JOBS)
    assert changed.partitions["batch"].max_min == 60
    pairs = list(zip(JOBS, jobs, strict=True))
    assert all(
        new.limit_min == min(old.limit_min, 60) for old, new in pairs if new.partition == "batch"
    )
    assert all(new == old for old, new in pairs if new.partition != "batch")


def test_a_limit_of_a_qos_is_lifted_or_set() -> None:
    changed, _ = changes.apply("qos:normal:MaxTRESPerUser:none", MIXED, JOBS)
    assert changed.qos["normal"] == {}
    changed, _ = changes.apply("qos:long:GrpTRES:cpu=64", MIXED, JOBS)
    assert changed.qos["long"] == {"GrpTRES": "cpu=64"}


def test_nodes_move_between_partitions() -> None:
    changed, _ = changes.apply("move:f1:bigmem:long", MIXED, JOBS)
    assert changed.partitions["bigmem"].nodes == ("f0",)
    assert changed.partitions["long"].nodes == ("c0", "c1", "c2", "c3", "f1")
    assert changed.partitions["batch"] == MIXED.partitions["batch"]
    smaller, _ = changes.apply("move:f1:batch:", MIXED, JOBS)
    assert "f1" not in smaller.partitions["batch"].nodes


def test_a_user_s_jobs_are_submitted_twice() -> None:
    _, jobs = changes.apply("twice:bin", MIXED, JOBS)
    before, after = (Counter(job.user for job in jobs_of_user) for jobs_of_user in (JOBS, jobs))
    assert after["bin"] == 2 * before["bin"]
    assert after - Counter({"bin": after["bin"]}) == before - Counter({"bin": before["bin"]})
    assert Counter(map(len, submissions.chains_of(jobs)))[3] > 0
    assert all(jobs[job.after].user == job.user for job in jobs if job.after >= 0)


def test_a_maintenance_is_added() -> None:
    changed, _ = changes.apply("maintenance:c[0-1],f0:100:200:50", MIXED, JOBS)
    assert changed.closures[-1] == shape.Closure("added", ("c0", "c1", "f0"), 100.0, 200.0, 50.0)


@pytest.mark.parametrize("change", ["more", "nodes:c", "twice:bin:3"])
def test_an_unknown_change_is_refused(change: str) -> None:
    with pytest.raises(ValueError, match="one of nodes with 2 words"):
        changes.apply(change, MIXED, JOBS)
    with pytest.raises(ValueError, match="shape 'none': one of mixed"):
        shape.read("none")


def test_judged_workloads_are_others_than_those_for_development() -> None:
    for judged in plan.JUDGED.values():
        seeds = {name: {w for w in judged if w.startswith(name)} for name in shape.NAMES}
        assert all(len(workloads) in (0, 2) for workloads in seeds.values())
        kinds = [change.partition(":")[0] for change in judged.values()]
        assert len({*kinds}) == len(kinds)
        assert {*kinds} <= {*changes.CHANGES}
        single_shape = (plan.JUDGED["Judged last"], plan.JUDGED["Judged fifth"])
        assert len(kinds) == len(changes.CHANGES) or judged in single_shape
    groups = (plan.DEVELOPED, *plan.JUDGED.values())
    assert len(plan.WORKLOADS) == sum(map(len, groups))
    runs = plan.planned(list(plan.WORKLOADS))
    assert len(runs) == len({a_run.stem for a_run in runs}) == 4 * len(plan.WORKLOADS)


def test_names_of_this_machine_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export.socket, "gethostname", lambda: "vm.example")
    text = f"NodeHostname=vm SlurmctldLogFile={tmp_path}/slurmctld.log vms"
    assert export.anonymous(text, tmp_path) == (
        "NodeHostname=host SlurmctldLogFile=/var/site/slurmctld.log vms"
    )
