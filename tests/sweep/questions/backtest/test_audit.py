"""Audit of a log: first in line, use above capacity, lag, resolution, limits, partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.workload.node_names import expand
from sweep.questions.backtest.audit import _replay as fast_replay
from sweep.questions.backtest.audit import audit
from sweep.questions.backtest.capacity import logged_size
from sweep.questions.backtest.findings import MAX_HEAD_COULD_START
from sweep.questions.backtest.recorded_use import held_resources, pools, recorded
from tests.sweep.questions.backtest.audit_reference import replay, use_at

RUNS = Path(__file__).parents[3] / "real" / "slurm"


def log(rows: list[tuple[float, float, float, int]], **columns: Any) -> sim.Workload:
    """Build a log of rigid jobs: submission, start, end, CPUs."""
    submit, start, end, cpus = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    node_list = columns.pop("node_list", None)
    return sim.Workload.from_tables(
        jobs={
            "job_id": [str(row) for row in range(len(rows))],
            "submit_s": submit,
            "min_tasks": cpus.astype(np.int32),
            "recorded_start_s": start,
            "recorded_finish_s": end,
            **columns,
        },
        stages={
            "job": np.arange(len(rows), dtype=np.int32),
            "n_tasks": cpus.astype(np.int32),
            "duration_s": np.fmax(end - start, 0.5),
            "demand_cpu": np.ones(len(rows)),
            **({} if node_list is None else {"node_list": node_list}),
        },
        meta={"name": "log", "quantum": {"cpu": 1.0}},
    )


def test_the_first_in_line_fits_for_part_of_the_time() -> None:
    # two CPUs; the second job waits for 10 s, and could have started for the last 6 of them
    checked = audit(log([(0, 0, 4, 2), (0, 10, 20, 1)]), sim.Cluster.slots(2), grace_s=0.0)
    assert checked.head_could_start == pytest.approx(0.6)
    assert checked.lags_s.tolist() == [0.0, 6.0]
    assert audit(
        log([(0, 0, 4, 2), (0, 10, 20, 1)]), sim.Cluster.slots(2), grace_s=2.0
    ).head_could_start == pytest.approx(0.4)
    assert not checked.is_in_order
    assert "no policy that serves one pool" in checked.sentences[0]
    assert {"head_could_start", "peak_over_capacity", "lag_median_s", "lag_p95_s"} < set(
        checked.to_json()
    )


def test_a_backfilled_job_is_no_first_in_line() -> None:
    # the third passes the second, which does not fit
    checked = audit(
        log([(0, 0, 10, 1), (1, 10, 20, 2), (2, 2, 8, 1)]), sim.Cluster.slots(2), grace_s=0.0
    )
    assert (checked.head_could_start, checked.n_waited) == (0.0, 1)
    assert checked.lags_s.tolist() == [0.0, 0.0]  # the backfilled job did not fit in its turn


def test_use_above_capacity_and_jobs_past_their_limit() -> None:
    rows = [(0, 0, 10, 2), (0, 0, 10, 1), (20, 20, 30, 1)]
    checked = audit(log(rows, requested_s=np.array([5.0, 20.0, np.nan])), sim.Cluster.slots(2))
    assert (checked.peak_over_capacity, checked.over_capacity_s) == (0.5, 10.0)
    assert checked.over_limit == 0.5
    rounded = [(0, 0, 10, 2), (0, 9, 20, 2)]  # ends and starts within the same whole second
    assert audit(log(rounded), sim.Cluster.slots(2)).peak_over_capacity == 0.0


def test_partitions_have_lines_of_their_own() -> None:
    rows = [(0, 0, 10, 2), (1, 10, 20, 2), (2, 4, 9, 1)]
    whole = sim.Cluster.slots(4)
    assert audit(log(rows), whole, grace_s=0.0).head_could_start > 0  # two slots are free
    names = ["a", "a", "b"]
    shared = audit(log(rows, partition=names), whole, grace_s=0.0)
    assert [pool.name for pool in shared.pools] == ["a", "b"]
    nodes = ["n[1-2]", "n[1-2]", "n3"]
    named = audit(log(rows, partition=names, node_list=nodes), sim.Cluster.slots(3), grace_s=0.0)
    # the nodes of a are taken; the job of b waits for 2 s of the 9 + 2 s, for no reason
    assert named.head_could_start == pytest.approx(2 / 11)
    assert [pool.head_could_start for pool in named.pools] == [0.0, 1.0]


@pytest.mark.parametrize("seed", range(20))
def test_replay_equals_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 14
    submit = np.sort(rng.integers(0, 20, n))
    start = submit + rng.integers(0, 8, n)
    rows = list(
        zip(submit, start, start + rng.integers(0, 12, n), rng.integers(1, 4, n), strict=True)
    )
    columns: dict[str, Any] = {}
    if seed % 2:
        columns["recorded_eligible_s"] = submit + rng.integers(0, 5, n).astype(float)
    if seed % 4 < 2:
        columns["priority"] = rng.integers(0, 4, n).astype(float)
    if seed % 3 == 0:
        columns["partition"] = [str(p) for p in rng.integers(0, 2, n)]
    if seed % 4 == 0:
        starts = np.where(rng.random(n) < 0.2, np.nan, start.astype(float))
        rows = [(a, s, c, d) for (a, _, c, d), s in zip(rows, starts, strict=True)]
    cluster = sim.Cluster.slots(6)
    if seed % 5 > 1:
        nodes = [
            sorted(rng.choice(4, min(row[3], 1 + n % 2), replace=False))
            for n, row in enumerate(rows)
        ]
        columns["node_list"] = ["n[" + ",".join(map(str, names)) + "]" for names in nodes]
        cluster = sim.Cluster.machines(5, cpu=2) if seed % 5 < 4 else cluster
    w = log(rows, **columns)
    whole = recorded(w, cluster)
    for pool in pools(whole, w, cluster):
        fast = fast_replay(pool)
        lags, spells, wait_s = replay(pool)
        checked = {j: lag for j, lag in enumerate(fast.lags_s.tolist()) if not np.isnan(lag)}
        assert checked == lags
        assert fast.spells_s.tolist() == [length for _, length in spells]
        assert fast.wait_s == wait_s
    peak = max(use_at(whole, now)[0] for now in whole.begin_s) / 6 - 1
    assert audit(w, cluster).peak_over_capacity <= max(peak, 0.0)


def test_queues_and_qualities_of_service_are_named() -> None:
    rows = [(0, 0, 10, 2), (1, 10, 20, 2)]
    checked = audit(log(rows, queue=["a", "b"], qos=["high", "low"]), sim.Cluster.slots(2))
    assert "Jobs are of 2 queues, audited as one line (a, b)." in checked.sentences
    assert "Jobs are of 2 qualities of service (high, low)." in checked.sentences
    assert not any("queues" in s for s in audit(log(rows), sim.Cluster.slots(2)).sentences)


def test_free_cpus_on_too_few_nodes_are_no_room() -> None:
    # a CPU is free on each of two nodes; the waiting job needs both of one node
    rows = [(0, 0, 10, 1), (0, 0, 10, 1), (1, 10, 20, 2)]
    nodes = log(rows, node_list=["a1", "a2", "a1"])
    assert audit(nodes, sim.Cluster.slots(4), grace_s=0.0).head_could_start == 1.0
    assert audit(nodes, sim.Cluster.machines(2, cpu=2), grace_s=0.0).head_could_start == 0.0
    # a third node was free
    assert audit(nodes, sim.Cluster.machines(3, cpu=2), grace_s=0.0).head_could_start == 1.0


def test_resolution_of_the_waits() -> None:
    waits = 60.0 * np.arange(20)
    submit = np.arange(20) * 7.0
    rows = [(s, s + w, s + w + 1, 1) for s, w in zip(submit, waits, strict=True)]
    assert audit(log(rows), sim.Cluster.slots(50)).resolution_s == 60.0


def test_a_log_without_starts_is_refused() -> None:
    with pytest.raises(InputError, match="does not tell when jobs started"):
        audit(log([(0, np.nan, np.nan, 1)]), sim.Cluster.slots(2))


def test_node_lists() -> None:
    assert expand("n[1-3,07],m") == ("n1", "n2", "n3", "n07", "m")
    assert expand("rack1-n[08-10]") == ("rack1-n08", "rack1-n09", "rack1-n10")
    for text in ("", "n[1-", "n[a]", "n[1-999999999]", ",", "n]1["):
        assert expand(text) == ()


def test_real_logs_of_slurm_are_in_order(shared_real: Path) -> None:
    for name, slots in {"sfifo": 100, "sbf1": 100, "mlin": 64, "measy": 64, "ftdef": 100}.items():
        checked = audit(
            sim.read_trace("table", shared_real / f"slurm_{name}.csv.gz"), sim.Cluster.slots(slots)
        )
        assert round(checked.head_could_start, 3) == 0.0
        assert checked.resolution_s == 1e-3


@pytest.mark.parametrize("workload", ["kth1", "synth1"])
def test_only_runs_with_other_priorities_are_out_of_order(workload: str) -> None:
    n_nodes = {"kth1": 64, "synth1": 62}[workload]
    shares = {
        file.name: audit(
            sim.read_trace("slurm_jobcomp", file), sim.Cluster.slots(n_nodes)
        ).head_could_start
        for file in RUNS.glob(f"{workload}-*.jobcomp.txt.gz")
    }
    in_order = [share for name, share in shares.items() if "-basic-" in name]
    by_priority = [share for name, share in shares.items() if "-multifactor-" in name]
    assert in_order
    assert by_priority
    assert max(in_order) < 0.01
    assert min(by_priority) > MAX_HEAD_COULD_START


def test_kth_is_not_in_order(shared_traces: Path) -> None:
    checked = audit(
        sim.read_trace("swf", shared_traces / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz"),
        sim.Cluster.slots(100),
    )
    assert checked.head_could_start == pytest.approx(0.518, abs=0.001)
    assert checked.head_could_start > MAX_HEAD_COULD_START
    assert checked.resolution_s == 60.0
    assert checked.peak_over_capacity == pytest.approx(0.03)


def test_priorities_that_the_scheduler_ignored_blame_no_policy() -> None:
    # the third fits for 8 s behind the second, which does not
    rows = [(0, 0, 10, 1), (1, 10, 20, 2), (2, 20, 30, 1)]
    ignored = audit(log(rows, priority=[1.0, 1.0, 9.0]), sim.Cluster.slots(2), grace_s=0.0)
    assert ignored.is_in_order
    assert not ignored.by_priority
    assert "in the order of submission, not of its priorities" in ignored.sentences[0]
    assert ignored.head_could_start == audit(log(rows), sim.Cluster.slots(2)).head_could_start == 0
    neither = [(0, 0, 4, 1), (0, 9, 12, 1), (1, 10, 12, 1)]
    worse = audit(log(neither, priority=[1.0, 1.0, 2.0]), sim.Cluster.slots(2), grace_s=0.0)
    assert not worse.is_in_order


def test_the_first_in_line_has_the_highest_priority() -> None:
    # beside the job that runs one slot is free: enough for the second, not for the third, which
    # goes first
    rows = [(0, 0, 100, 1), (10, 200, 300, 1), (10, 100, 200, 2)]
    plain = audit(log(rows), sim.Cluster.slots(2), grace_s=0.0)
    assert plain.head_could_start > 0.4
    assert "in the order of submission" in plain.sentences[0]
    assert plain.sentences[1].startswith("The log records no priorities")
    ranked = audit(log(rows, priority=[1.0, 1.0, 5.0]), sim.Cluster.slots(2), grace_s=0.0)
    assert ranked.head_could_start == 0.0
    assert "in the order of its priorities" in ranked.sentences[0]
    assert not any("no priorities" in sentence for sentence in ranked.sentences)


def test_jobs_that_were_held_back_are_counted() -> None:
    rows = [(0, 0, 100, 1), (10, 200, 300, 1), (10, 100, 200, 2)]
    delayed = audit(log(rows, recorded_eligible_s=[0.0, 60.0, 11.0]), sim.Cluster.slots(2))
    assert any(
        sentence.startswith("1 of the jobs was free to start") for sentence in delayed.sentences
    )


def test_causes_of_late_releases_are_counted_apart() -> None:
    rows = [(0, 0, 100, 1), *[(10, 200, 300, 1)] * 4, (50, 100, 200, 2)]
    w = log(
        rows,
        recorded_eligible_s=[0.0, 60.0, 60.0, 60.0, 11.0, 50.0],
        recorded_submit_s=[0.0, 10.0, 10.0, 10.0, 10.0, 10.0],
        delayed_by=["", "throttle", "throttle", "dependency", "", "hold"],
        reason=["", "JobArrayTaskLimit", "QOSMaxCpuPerUserLimit", "Dependency", "Priority", ""],
    )
    sentences = audit(w, sim.Cluster.slots(2)).sentences
    assert (
        "4 of the jobs were free to start only later than submitted: 2 elements of arrays under a "
        "throttle and 1 job that depends on others, which are simulated from submission on (the "
        "audit counts from when free); 1 held: audit, waits and simulations count from then."
    ) in sentences
    assert (
        "The log's last reason is a throttle, limit or dependency for 3 of 6 jobs with 67 % of the "
        "wait (throttle 1, limit 1, dependency 1)."
    ) in sentences
    assert "limits of users, accounts or QOS, as its reasons say" in sentences[0]


def test_resources_that_are_not_read_are_named() -> None:
    account = {"gpu_s": {"by_option": 5.0}, "mem_gib_s": {"by_option": 0.0}}
    w = log([(0, 0, 100, 2), (10, 100, 200, 2)]).with_meta({"report": {"account": account}})
    sentences = audit(w, sim.Cluster.slots(2)).sentences
    assert any("GPUs of the log are not read (trace.tasks=nodes" in text for text in sentences)


@pytest.mark.parametrize("tasks", ["cpus", "nodes"])
@pytest.mark.parametrize("machines_of", ["pool", "classes", "log"])
def test_a_partition_has_the_nodes_that_it_used(
    tmp_path: Path, machines_of: str, tasks: str
) -> None:
    # n1 and n2 have 8 CPUs, n3 has 16 and 4 GPUs; a job of the partition g waits for GPUs
    jobs = [
        ("c", 0, 0, 10, 8, 0, "n1"), ("c", 0, 0, 10, 8, 0, "n2"), ("g", 0, 0, 10, 8, 4, "n3"),
        ("g", 0, 0, 3, 8, 0, "n3"), ("g", 1, 10, 20, 4, 2, "n3"), ("c", 2, 10, 20, 1, 0, "n1"),
    ]  # fmt: skip
    lines = ["JobID|Partition|Submit|Start|End|State|AllocCPUS|NNodes|AllocTRES|NodeList"]
    for i, (name, submit, start, end, cpus, gpus, node) in enumerate(jobs):
        times = "|".join(f"2026-03-01T09:00:{second:02}" for second in (submit, start, end))
        tres = f"cpu={cpus},mem=1G,node=1" + f",gres/gpu={gpus}" * (gpus > 0)
        lines.append(f"{i}|{name}|{times}|COMPLETED|{cpus}|1|{tres}|{node}")
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    w = sim.read_trace("sacct", tmp_path / "log.txt", tasks=tasks)
    kinds = [
        {"count": 2, "cpu": 8, "mem": 2, "class": "c"},
        {"count": 1, "cpu": 16, "mem": 2, "gpu": 4, "class": "g"},
    ]
    by_log = logged_size(w)
    assert by_log.n_slots == 32
    mixed = sim.Cluster.mixed(kinds)
    cluster = {"pool": sim.Cluster.slots(32), "classes": mixed, "log": by_log.build()}[machines_of]
    checked = audit(w, cluster, grace_s=0.0)
    # 8 CPUs of n3 are free from 3 s on, but no GPU; n1 and n2 are taken until 10 s
    assert {pool.name: pool.head_could_start for pool in checked.pools} == {"c": 0.0, "g": 0.0}
    machines = mixed if machines_of == "classes" else by_log.build()
    # resources that no task demands come last; the memory is the log's
    names = [*w.resources, *held_resources(w)]
    lines_of = {p.name: p.capacity.tolist() for p in pools(recorded(w, machines), w, machines)}
    for name, cpus, gpus in (("c", 16, 0), ("g", 16, 4)):
        line = dict(zip(names, lines_of[name], strict=True))
        assert (line["cpu"], line["gpu"]) == (cpus, gpus)
    sentences = [text for text in checked.sentences if "The audit goes by" in text]
    assert [text.startswith("The audit goes by GPUs and memory, too") for text in sentences] == (
        [True] if tasks == "cpus" else []
    )


def test_the_first_sentence_has_what_the_reader_warns_of() -> None:
    rows = [(0, 0, 100, 2), (10, 100, 200, 2)]
    warned = log(rows).with_meta({"report": {"warnings": ["2 of 2 jobs asked for licences"]}})
    first = audit(warned, sim.Cluster.slots(2)).sentences[0]
    assert first.startswith("The log can be that of a policy which serves one pool")
    assert first.endswith("; the log's reader warns: 2 of 2 jobs asked for licences.")


def test_partitions_of_machines_of_several_sizes() -> None:
    # c has nodes of 2 CPUs, g one of 8; the log names the large one first
    rows = [(0, 0, 10, 8), (1, 10, 20, 8), (2, 2, 9, 2), (3, 9, 20, 4), (4, 5, 9, 1)]
    lists = ["g1", "g1", "c1", "c[1-2]", "c2"]
    w = log(rows, partition=["g", "g", "c", "c", "c"], node_list=lists)
    cluster = sim.Cluster.mixed([{"count": 2, "cpu": 2}, {"count": 1, "cpu": 8}])
    g, c = pools(recorded(w, cluster), w, cluster)
    assert (g.name, g.capacity.tolist(), c.name, c.capacity.tolist()) == ("g", [8], "c", [4])
    assert g.nodes is not None
    assert c.nodes is not None
    assert (g.nodes.room.tolist(), c.nodes.room.tolist()) == ([[8]], [[2], [2]])
    assert c.use[:, 0].tolist() == [0, 0, 2, 4, 1]
    assert audit(w, cluster, grace_s=0.0).head_could_start == 0.0


def test_stages_of_a_job_on_the_same_nodes_are_one_use() -> None:
    recorded_s = {"recorded_start_s": [0.0, 0.0, 5.0], "recorded_finish_s": [9.0, 9.0, 9.0]}
    w = sim.Workload.from_tables(
        jobs={
            "job_id": ["a", "b"],
            "submit_s": [0.0, 5.0],
            **{name: column[1:] for name, column in recorded_s.items()},
        },
        stages={
            "job": [0, 0, 1],
            "n_tasks": [2, 1, 1],
            "duration_s": [9.0, 9.0, 4.0],
            "demand_cpu": [9.0, 8.0, 3.0],
            "node_list": ["n[1-3]", "n[1-3]", "n1"],
            **recorded_s,
        },
        meta={"name": "log", "quantum": {"cpu": 1.0}},
    )
    use = recorded(w, sim.Cluster.machines(3, cpu=16))
    assert use.use.tolist() == [[26], [3]]
    assert use.use_stage.tolist() == [0, 2]
