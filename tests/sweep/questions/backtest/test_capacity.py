"""Size of the cluster that made a log, by the nodes that it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sim
from sweep.questions.backtest.capacity import logged_size
from tests.sweep.small import Command

HEADER = "JobID|User|Partition|Submit|Start|End|Timelimit|State|AllocCPUS|NNodes|AllocTRES|NodeList"
UNEVEN = [(20, "m0"), (28, "m[0-1]")]
"""CPUs and nodes of jobs that ran together on nodes of 24."""
KINDS = [(16, "c1"), (32, "c[1-2]"), (8, "g1"), (64, "f1")]


def sacct(path: Path, jobs: list[tuple[int, str]]) -> Path:
    """Write a log of jobs one after the other, an hour each; of `UNEVEN`, at the same time."""
    lines = [HEADER]
    for i, (cpus, nodes) in enumerate(jobs):
        begin = 10 if jobs is UNEVEN else 10 + i
        times = f"2026-03-01T10:00:00|2026-03-01T{begin}:00:00|2026-03-01T{begin + 1}:00:00"
        n_nodes = 2 if "[" in nodes else 1
        tres = f"billing={cpus},cpu={cpus},mem={cpus // 4}G,node={n_nodes}"
        lines.append(f"{i}|ann|p|{times}|02:00:00|COMPLETED|{cpus}|{n_nodes}|{tres}|{nodes}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_what_is_given_of_several_nodes_is_shared_out(tmp_path: Path) -> None:
    size = logged_size(sim.read_trace("sacct", sacct(tmp_path / "log.txt", UNEVEN)))
    assert (size.n_slots, size.n_machines) == (48, 2)
    assert (size.count, size.shape) == (2, {"cpu": 24})
    assert size.sentence == (
        "the log names 2 nodes, with at least 24 slots each; what jobs on several nodes held of "
        "each is a guess: their sum is all that a log has"
    )


def test_kinds_of_nodes_by_their_names(tmp_path: Path) -> None:
    size = logged_size(sim.read_trace("sacct", sacct(tmp_path / "log.txt", KINDS)))
    assert (size.n_slots, size.n_machines, size.count) == (104, 4, 1)
    assert size.shape == [{"count": n, "cpu": cpu} for n, cpu in ((1, 8), (2, 16), (1, 64))]
    assert size.build().describe().startswith("4 machines of several kinds, cpu 104")
    assert size.sentence == (
        "the log names 4 nodes: 1 of at least 8 slots, 2 of at least 16 slots, 1 of at least 64 "
        "slots"
    )
    more = logged_size(
        sim.read_trace(
            "sacct", sacct(tmp_path / "log.txt", [*KINDS, (9, "c3"), (5, "g2"), (2, "c4")])
        )
    )
    assert more.n_slots == 104 + 16 + 8 + 2
    assert (
        "; nodes of like names are taken to be alike, though less was ever in use on 2 of them"
    ) in more.sentence
    assert "1 of at least 2 slots" in more.sentence  # much less was in use on c4: another kind


def test_tasks_of_nodes_have_machines_of_each_resource(tmp_path: Path) -> None:
    path = sacct(tmp_path / "log.txt", KINDS)
    size = logged_size(sim.read_trace("sacct", path, tasks="nodes"))
    assert size.shape == [
        {"count": 1, "cpu": 8, "mem": 2},
        {"count": 2, "cpu": 16, "mem": 4},
        {"count": 1, "cpu": 64, "mem": 16},
    ]
    assert "2 of at least (cpu 16, mem 4)" in size.sentence


def test_jobs_of_0_s_have_a_slot_of_their_node() -> None:
    recorded = {"recorded_start_s": [0.0, 0.0], "recorded_finish_s": [10.0, 0.0]}
    workload = sim.Workload.from_tables(
        jobs={"job_id": ["a", "b"], "submit_s": [0.0, 0.0], "min_tasks": [4, 1], **recorded},
        stages={
            "job": [0, 1],
            "n_tasks": [4, 1],
            "duration_s": [10.0, 0.5],
            "node_list": ["a1", "b1"],
            **recorded,
        },
    )
    assert logged_size(workload).shape == [{"count": 1, "cpu": 1}, {"count": 1, "cpu": 4}]


@pytest.mark.parametrize("words", [(), ("trace.tasks=nodes",)])
@pytest.mark.long
def test_a_backtest_on_machines_of_several_kinds(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = sacct(tmp_path / "log.txt", KINDS)
    ask: tuple[Any, ...] = ("backtest", "trace=sacct", f"trace.path={path}", *words, "runs=2")
    ran = command(*ask, "policy=fifo,easy")
    assert ran.code == 0, ran.err
    record = json.loads((ran.folder / "backtest.json").read_text())
    assert record["cluster"].startswith("simulated on 4 machines of several kinds, cpu 104")
    assert "as the log names 4 nodes: 1 of at least" in record["cluster"]
    assert command.verb("verify", "--cells", "2", "launcher=inline").code == 0
