"""Programs that schedule: their runs are those of the same policy in this process, or they fail."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policies
import sim
from policies import Policy
from policies.external import client
from policies.external.protocol import Fact
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
heard = []
def decide(facts):
    heard.append({name: facts[name].tolist() for name in facts.names})
    with open("heard.json", "w") as file:
        json.dump(heard, file)
    return {}
"""


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
    policy = external(command=program(tmp_path, HEARS))
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
    policy = external(command=program(tmp_path, HEARS), durations="true")
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
