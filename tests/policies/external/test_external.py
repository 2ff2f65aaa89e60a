"""Programs that schedule: their runs are those of the same policy in this process, or they fail."""

from __future__ import annotations

import io
import json
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import policies
import sim
from policies import Policy
from policies.external import client, kernels
from policies.external.protocol import COLUMNS, Fact
from sim.check.worlds import crowd
from sim.plan import Plan, World
from tests.docs.pages import blocks

PAGE = "external_scheduler.md"
ROOM = Path(client.__file__).parent
SLOTS = sim.Cluster.slots(16)

NARROW = """
def decide(facts):
    arrived = facts["kind"] == client.JOB_ARRIVED
    return dict(zip(facts["job"][arrived].tolist(), facts["n_tasks"][arrived].tolist()))
"""


@dataclass(frozen=True)
class Narrow(Policy):
    """Fewest tasks first."""

    def prepare(self, world: World, plan: Plan) -> None:
        plan.set_jobs(key=world.columns.job_n_tasks)


def program(folder: Path, decide: str) -> tuple[str, ...]:
    """Write a scheduler in Python that decides so; return its command."""
    file = folder / "scheduler.py"
    shutil.copy(ROOM / "client.py", folder)
    file.write_text(f"import client, json, sys\n{decide}\nclient.serve(decide)\n")
    return sys.executable, str(file)


def shell(script: str, **params: object) -> Policy:
    return external(command=("sh", "-c", script), **params)


def external(**params: Any) -> Any:
    """Build the policy."""
    from policies.external.policy import External  # registers itself

    return External(**params)


def test_a_program_in_python_schedules_as_the_same_policy_here(tmp_path: Path) -> None:
    result = sim.simulate(crowd(0), SLOTS, external(command=program(tmp_path, NARROW)))
    expected = sim.simulate(crowd(0), SLOTS, Narrow())
    assert np.array_equal(result.job_finish, expected.job_finish)
    assert not np.array_equal(
        result.job_finish, sim.simulate(crowd(0), SLOTS, policies.build("fifo")).job_finish
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_so_does_one_in_c(tmp_path: Path) -> None:
    compiled, source = tmp_path / "narrow", tmp_path / "narrow.c"
    source.write_text(next(b.text for b in blocks(PAGE) if b.file == "mine/narrow.c"))
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-I", ROOM]
    subprocess.run(["cc", *flags, source, "-o", compiled], check=True)
    machines = sim.Cluster.machines(4, cpu=8, mem=16)
    for cluster in (SLOTS, machines):
        result = sim.simulate(crowd(0), cluster, external(command=(str(compiled),)))
        expected = sim.simulate(crowd(0), cluster, Narrow())
        assert np.array_equal(result.job_finish, expected.job_finish)


HEARS = """
import json, sys
import pyarrow as pa

schema = pa.schema({"job": pa.int64(), "key": pa.float32()})
nothing = pa.record_batch([[], []], schema=schema)
out, heard = pa.PythonFile(sys.stdout.buffer, mode="w"), []
with pa.ipc.open_stream(sys.stdin.buffer) as facts, pa.ipc.new_stream(out, schema) as answers:
    for batch in facts:
        batch.validate(full=True)
        heard.append(batch.to_pydict())
        answers.write_batch(nothing)
        sys.stdout.buffer.flush()
with open("heard.json", "w") as file:
    json.dump(heard, file)
"""


def stranger(folder: Path) -> tuple[str, ...]:
    """Write a program that knows pyarrow alone, and writes what it hears; return its command."""
    file = folder / "stranger.py"
    file.write_text(HEARS)
    return sys.executable, str(file)


def slow_facts(
    columns: Any, now: float, events: Any, jobs: Any, counts: Any, heard: Any
) -> dict[str, list[float]]:
    """Return the facts of an instant."""
    names = [f"demand.{name}" for name in columns.resources]
    plain = {name: default for name, (_, default) in COLUMNS.items()} | dict.fromkeys(names, 0.0)
    facts: list[dict[str, float]] = []

    def add(kind: int, row: int, job: int, **more: float) -> None:
        facts.append(plain | {"time_s": now, "kind": kind, "row": row, "job": job} | more)

    for kind, row in zip(*(column.tolist() for column in events), strict=True):
        if kind != Fact.JOB_ARRIVED:
            job = row if kind not in (Fact.FAULT, Fact.TIMER) else -1
            add(kind, row, int(columns.stage_job[row]) if kind == Fact.STAGE_DONE else job)
            continue
        n = int(columns.job_n_tasks[row])
        add(kind, row, row, n_tasks=n, left=n)
        facts[-1] |= {
            name: getattr(columns, f"job_{name.removesuffix('_s')}")[row].item()
            for name in ("user", "queue", "priority", "deadline_s", "requested_s")
        }
        stages = [g for g, job in enumerate(columns.stage_job.tolist()) if job == row]
        for g in stages:
            n = int(columns.stage_n_tasks[g])
            demand = dict(zip(names, columns.stage_demand_f[g].tolist(), strict=True))
            add(Fact.STAGE, g, row, n_tasks=n, left=n, **demand)
        for g in stages:
            for child in columns.edge_child[columns.edge0[g] : columns.edge0[g + 1]].tolist():
                add(Fact.EDGE, g, row, child=child)
    left, running, started, done_work = counts
    for j in jobs.tolist():
        if [left[j], running[j]] != heard[:, j].tolist():
            numbers = {"left": left[j], "running": running[j], "started": started[j]}
            add(Fact.CHANGED, j, j, **numbers, done_work_s=done_work[j])
    return {name: [fact[name] for fact in facts] for name in plain}


def test_facts_are_those_that_happened_in_a_stream_that_arrow_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workload, cluster = crowd(1), sim.Cluster.machines(4, cpu=8, mem=16)
    expected: list[dict[str, list[float]]] = []
    write = kernels.write_facts

    def write_twice(*args: Any) -> int:
        heard = args[4].copy()
        n: int = write(*args)
        if n >= 0:
            expected.append(slow_facts(workload.columns, *args[:4], heard))
        return n

    monkeypatch.setattr(kernels, "write_facts", write_twice)
    sim.simulate(workload, cluster, external(command=stranger(tmp_path)))
    stream = json.loads((tmp_path / "heard.json").read_text())
    assert len(stream) == len(expected)
    assert sum(len(facts["kind"]) for facts in expected) > 3 * len(workload.jobs)
    assert {*Fact} - {Fact.TIMER, Fact.FAULT, Fact.JOB_FAILED} <= {
        kind for facts in expected for kind in facts["kind"]
    }
    for facts, slow in zip(stream, expected, strict=True):
        assert list(facts) == list(slow)
        for name, values in slow.items():
            np.testing.assert_array_equal(facts[name], values, name)


def test_it_hears_of_jobs_stages_and_edges_as_they_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one_cpu = {"durations_s": [1.0], "demand": {"cpu": 1.0}}
    stages = [
        {"durations_s": [4.0, 4.0], "demand": {"cpu": 2.0}},
        one_cpu | {"durations_s": [2.0], "parents": ["stage-0"]},
    ]
    jobs = [
        {"job_id": "a", "submit_s": 5.0, "priority": 3.0, "deadline_s": 60.0, "stages": stages},
        {
            "job_id": "b",
            "submit_s": 6.0,
            "stages": [{"durations_s": [1.0], "demand": {"cpu": 1.0}}],
        },
    ]
    workload = sim.Workload.from_jobs(jobs)
    policy = external(command=stranger(tmp_path))
    sim.simulate(workload, sim.Cluster.machines(1, cpu=2), policy)
    begin, first, *rest = json.loads((tmp_path / "heard.json").read_text())
    assert begin["kind"] == [Fact.BEGIN]
    assert first["kind"] == [Fact.JOB_ARRIVED, Fact.STAGE, Fact.STAGE, Fact.EDGE]
    assert first["row"] == [0, 0, 1, 0]
    assert first["child"][3] == 1
    assert first["n_tasks"][:3] == [3, 2, 1]
    assert first["demand.cpu"][1:3] == [2.0, 1.0]
    assert (first["priority"][0], first["deadline_s"][0]) == (3.0, 60.0)
    assert np.isnan(first["work_s"]).all()
    times = [batch["time_s"][0] for batch in rest]
    assert times == [6.0, 13.0, 14.0, 15.0]
    kinds = [batch["kind"] for batch in rest]
    assert Fact.JOB_ARRIVED in kinds[0]
    assert Fact.CHANGED in kinds[0]  # one task of a runs by now
    row = kinds[0].index(Fact.CHANGED)
    assert (rest[0]["job"][row], rest[0]["running"][row], rest[0]["left"][row]) == (0, 1, 3)
    assert sum(kind.count(Fact.JOB_DONE) for kind in kinds) == 2
    assert sum(kind.count(Fact.STAGE_DONE) for kind in kinds) == 3


def test_it_hears_durations_only_as_an_oracle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = [{"submit_s": 0.0, "stages": [{"durations_s": [4.0, 3.0]}]}]
    policy = external(command=stranger(tmp_path), durations="true")
    sim.simulate(sim.Workload.from_jobs(jobs), SLOTS, policy)
    first = json.loads((tmp_path / "heard.json").read_text())[1]
    assert first["work_s"][:2] == [7.0, 7.0]
    assert policy.knows.is_oracle
    assert not external(command=policy.command).knows.is_oracle


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo starting >&2; exit 3", "ended, exit code 3: starting"),
        ("echo 'no license' >&2; sleep 60", "within 0.5 s: no license"),
        ("sleep 60", "within 0.5 s, nothing on standard error"),
        ("echo this is no stream of batches; exec cat", "no Arrow stream"),
        ("exec cat", "answered with the columns"),
        ("exec cat /dev/zero", "no Arrow stream"),
    ],
)
def test_a_program_that_fails_says_its_last_words(script: str, message: str) -> None:
    with pytest.raises(sim.PolicyError, match=message):
        sim.simulate(crowd(0), SLOTS, shell(script, timeout_s=0.5))


@pytest.mark.parametrize(
    ("decide", "message"),
    [
        ("def decide(facts): return {10**6: 1.0}", "a job that is not in the system"),
        ("def decide(facts): return {0: 1.0}", "a job that is not in the system"),
        ("def decide(facts): return {0: float('nan')} if max(facts['row']) >= 0 else {}", "NaN"),
        ("def decide(facts): raise ValueError('no idea')", "exit code 1: ValueError: no idea"),
    ],
)
def test_answers_that_can_not_be_are_refused(decide: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(sim.PolicyError, match=message):
        sim.simulate(crowd(0), SLOTS, external(command=program(tmp_path, decide)))


def test_damaged_streams_are_refused_or_read() -> None:
    schema, sink = pa.schema({"job": pa.int32(), "key": pa.float64()}), io.BytesIO()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as stream:
        for n in (0, 3, 3):
            columns = [pa.array(np.arange(n), pa.int32()), pa.array(np.ones(n))]
            stream.write_batch(pa.record_batch(columns, schema=schema))
    whole, rng, outcomes = sink.getvalue(), np.random.default_rng(0), set()
    for _ in range(1000):
        damaged = np.frombuffer(whole, np.uint8).copy()
        where = rng.integers(len(whole), size=2)
        damaged[where] = rng.choice([0, 1, 127, 255], 2)
        rest = io.BytesIO(damaged[: rng.integers(8, len(whole) + 1000)].tobytes())
        reader = client.Reader()

        def read(n: int, rest: io.BytesIO = rest) -> bytes:
            return rest.read(min(n, len(whole)))

        try:
            while (batch := reader.next(read)) is not None:
                assert all(len(batch[name]) == batch.n for name in batch.names)
            outcomes.add("read")
        except (pa.ArrowException, OSError, StopIteration, ValueError, struct.error):
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_its_files_belong_to_its_key(tmp_path: Path) -> None:
    command = program(tmp_path, NARROW)
    before = external(command=command)
    assert before.files == external(command=command).files
    Path(command[1]).write_text("import client\n")
    assert external(command=command).files != before.files
    with pytest.raises(sim.InputError, match="are others than planned"):
        sim.simulate(crowd(0), SLOTS, before)


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(sim.InputError, match=r"no program '\./scheduller'"):
        external(command=("./scheduller",))
    with pytest.raises(sim.InputError, match="needs a command"):
        sim.simulate(crowd(0), SLOTS, external())
