"""A decision process of Batsim's schedules as the same policy does in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policies
import sim
from policies.external import batsim
from sim.workload.workload import Workload

HOSTS = sim.Cluster.slots(16)

FIRST_COME = """
import json, socket, sys

listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1].removeprefix("ipc://"))
listener.listen()
file = listener.accept()[0].makefile("rwb")
ready = b"\\x05READY\\x0bSocket-Type\\x00\\x00\\x00\\x03REP"
file.write(b"\\xff" + bytes(8) + b"\\x7f\\x03\\x00" + b"NULL".ljust(52, b"\\x00"))
file.write(bytes([4, len(ready)]) + ready)
file.flush()
assert file.read(64)[:1] == b"\\xff"
file.read(file.read(2)[1])
free, waiting, running, think_s = [], [], {}, float(sys.argv[2])
print("this line is not for the simulator")
while True:
    assert file.read(2) == b"\\x01\\x00"
    assert file.read(1) == b"\\x02"
    message = json.loads(file.read(int.from_bytes(file.read(8), "big")))
    replies, now = [], message["now"] + think_s
    for event in message["events"]:
        data = event["data"]
        if event["type"] == "SIMULATION_BEGINS":
            free = list(range(data["nb_compute_resources"]))
        elif event["type"] == "JOB_SUBMITTED":
            assert data["job"]["subtime"] == message["now"] or think_s
            waiting.append((data["job_id"], data["job"]["res"]))
        elif event["type"] == "JOB_COMPLETED":
            assert data["job_state"] == "COMPLETED_SUCCESSFULLY"
            free += running.pop(data["job_id"])
    while waiting and waiting[0][1] <= len(free):
        job, n = waiting.pop(0)
        running[job], free = free[:n], free[n:]
        alloc = " ".join(map(str, running[job]))
        decided = {"job_id": job, "alloc": alloc}
        replies.append({"timestamp": now, "type": "EXECUTE_JOB", "data": decided})
    EXTRA
    reply = json.dumps({"now": now, "events": replies}).encode()
    file.write(b"\\x01\\x00\\x02" + len(reply).to_bytes(8, "big") + reply)
    file.flush()
    if event["type"] == "SIMULATION_ENDS":
        break
"""


def process(folder: Path, think_s: float = 0.0, extra: str = "pass") -> Any:
    """Return the policy of a decision process that serves jobs as they come."""
    from policies.external.policy import External  # registers itself

    file = folder / "decisions.py"
    file.write_text(FIRST_COME.replace("EXTRA", extra))
    adapter = (sys.executable, str(batsim.__file__))
    return External(command=(*adapter, sys.executable, str(file), "{endpoint}", str(think_s)))


def rigid_jobs(n: int = 40, **more: Any) -> Workload:
    """Return jobs whose tasks start together, more than the hosts can run at once."""
    rng = np.random.default_rng(1)
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": float(i),
                "min_tasks": (width := int(rng.integers(1, 12))),
                "stages": [{"durations_s": [float(rng.integers(1, 9))] * width}],
                **more,
            }
            for i in range(n)
        ]
    )


def test_a_decision_process_schedules_as_the_same_policy_here(tmp_path: Path) -> None:
    result = sim.simulate(rigid_jobs(), HOSTS, process(tmp_path))
    expected = sim.simulate(rigid_jobs(), HOSTS, policies.build("fifo"))
    assert np.array_equal(result.job_start, expected.job_start)
    assert (expected.job_start > expected.job_submit).any()


def test_decisions_take_the_time_that_they_say(tmp_path: Path) -> None:
    result = sim.simulate(rigid_jobs(1), HOSTS, process(tmp_path, think_s=0.5))
    assert result.job_start.tolist() == [0.5]


def test_a_requested_call_comes_at_its_time(tmp_path: Path) -> None:
    late = """
    if event["type"] == "SIMULATION_BEGINS":
        call = {"timestamp": 20.0}
        replies.append({"timestamp": now, "type": "CALL_ME_LATER", "data": call})
    elif event["type"] != "REQUESTED_CALL" and message["now"] < 20.0:
        for job in [decision["data"]["job_id"] for decision in reversed(replies)]:
            waiting.insert(0, (job, len(running[job])))
            free += running.pop(job)
        replies = []"""
    result = sim.simulate(rigid_jobs(2), HOSTS, process(tmp_path, extra=late))
    assert result.job_start[0] == 20.0 - batsim.HEAD_START_S


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('replies.append({"timestamp": now, "type": "KILL_JOB", "data": {}})', "KILL_JOB does not"),
        ('if running: replies[0]["data"]["alloc"] = "0-15"', "of a wrong size or busy"),
        ("raise ValueError('no idea')", "exit code 1: ValueError: no idea"),
    ],
)
def test_what_does_not_map_fails_the_run(extra: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(sim.PolicyError, match=message):
        sim.simulate(rigid_jobs(2), HOSTS, process(tmp_path, extra=extra))
