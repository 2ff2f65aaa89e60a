"""Adapter of Batsim's protocol: a decision process of Batsim 2 to 4, unmodified, as a scheduler.

``python batsim.py COMMAND...`` starts the decision process, with ``{endpoint}`` in an argument
replaced by the address that it binds, and stands between it and the protocol of this folder:
JSON messages over ZeroMQ, REQ to REP, as Batsim sends them (docs/external_scheduler.md says what
does not map). A job may start once it is executed, and the simulated cluster chooses the hosts.

ZeroMQ's wire protocol, ZMTP 3.0 with the mechanism NULL, is spoken here: it is short, and so the
adapter needs no ZeroMQ.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import math
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from policies.external.client import (
    EDGE,
    JOB_ARRIVED,
    JOB_DONE,
    JOB_FAILED,
    STAGE,
    Columns,
    Heads,
    Reader,
    write,
)

FAULT = 64
NO_LIMIT = 2**31 - 1
ANSWER = pa.schema(
    [
        ("job", pa.int32()),
        ("start_gate", pa.int32()),
        ("key", pa.float64()),
        ("timer_s", pa.float64()),
    ]
)
WORKLOAD = "w0"
IGNORED = ("NOTIFY", "SET_JOB_METADATA")
MORE, LONG, COMMAND = 1, 2, 4
"""Flags of ZMTP's frames."""
BIND_S, END_S = 30.0, 5.0
HEAD_START_S = 1.0
"""Time of the process's clock at that of the run 0: pybatsim takes no job that starts at 0."""


def fail(why: str) -> NoReturn:
    """End with a line on standard error."""
    sys.exit(f"batsim: {why}")


class Requests:
    """REQ socket of ZeroMQ on a connection, whose peer is a REP socket.

    Sources: ZeroMQ RFCs 23 (ZMTP 3.0) and 28 (request-reply).
    """

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rwb")
        self._file.write(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(52, b"\x00"))
        ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
        self._file.write(bytes([COMMAND, len(ready)]) + ready)
        self._file.flush()
        if self._read(64)[:1] != b"\xff":
            fail("the decision process does not speak ZMTP 3")

    def ask(self, message: bytes) -> bytes:
        """Send a message; return the reply."""
        delimiter = bytes([MORE, 0])
        self._file.write(delimiter + bytes([LONG]) + len(message).to_bytes(8, "big") + message)
        self._file.flush()
        parts, flags = [], MORE
        while flags & MORE:
            flags = self._read(1)[0]
            n = int.from_bytes(self._read(8 if flags & LONG else 1), "big")
            part = self._read(n)
            if flags & COMMAND:  # READY, or a heartbeat
                flags = MORE
            else:
                parts.append(part)
        return b"".join(parts)

    def _read(self, n: int) -> bytes:
        part = self._file.read(n)
        if len(part) < n:
            sys.exit(1)  # the last line on standard error is the decision process's
        return part


class Conversation:
    """Events and decisions of one run.

    Parameters
    ----------
    about : dict
        What the schema of facts says.
    requests : Requests
        Connection to the decision process.
    """

    def __init__(self, about: dict[str, Any], requests: Requests) -> None:
        if len(about["resources"]) != 1:
            fail(f"hosts are of a single resource, not of {', '.join(about['resources'])}")
        ((self._resource, capacity),) = about["resources"].items()
        self._requests, self._n_hosts = requests, round(sum(capacity))
        self._n_hosts_asked: dict[int, int] = {}
        self._allocated: dict[int, str] = {}
        self._busy: set[int] = set()
        # time on the process's clock, order, job or None for a call
        self._later: list[tuple[float, int, int | None]] = []
        self._order, self._thinks_until = count(), -math.inf
        self._unsent: list[dict[str, Any]] = []
        self._settings: dict[int, tuple[int, float]] = {}

    def begin(self) -> None:
        """Note that the simulation begins, for the first message."""
        hosts = [
            {"id": i, "name": f"host{i}", "state": "idle", "properties": {}}
            for i in range(self._n_hosts)
        ]
        off = ["profiles-forwarded-on-submission", "dynamic-jobs-enabled", "redis-enabled"]
        off += ["dynamic-jobs-acknowledged", "forward-unknown-events", "profile-reuse-enabled"]
        config = dict.fromkeys(off, False)
        data = {
            **{"nb_resources": self._n_hosts, "nb_compute_resources": self._n_hosts},
            **{"nb_storage_resources": 0, "compute_resources": hosts, "storage_resources": []},
            **{"allow_compute_sharing": False, "allow_storage_sharing": False},
            **{"allow_time_sharing_on_compute": False, "allow_time_sharing_on_storage": False},
            "config": config | {"redis-hostname": "", "redis-port": 0, "redis-prefix": ""},
            **{"workloads": {WORKLOAD: ""}, "profiles": {WORKLOAD: {}}},
        }
        self._unsent.append(_event(0.0, "SIMULATION_BEGINS", data))

    def follow(self, facts: Columns) -> tuple[np.ndarray, ...]:
        """Tell what happened; return the columns of the answer."""
        at_s = float(facts["time_s"][0])
        now = at_s + HEAD_START_S if facts["kind"][0] else 0.0
        self._unsent += self._events(now, facts)
        self._take_due(now)
        while self._unsent and now >= self._thinks_until:
            events, self._unsent = self._unsent, []
            self._tell(now, events)
            self._take_due(now)
        settings, self._settings = self._settings, {}
        timer_s = self._later[0][0] - HEAD_START_S if self._later else math.inf
        timer_s = max(timer_s, math.nextafter(at_s, math.inf))
        rows = [(job, *setting, timer_s) for job, setting in settings.items()]
        columns = zip(*(rows or [(-1, 0, 0.0, timer_s)]), strict=True)
        return tuple(
            np.array(values, field.type.to_pandas_dtype())
            for values, field in zip(columns, ANSWER, strict=True)
        )

    def end(self, at_s: float) -> None:
        """Say that the simulation is over."""
        now = at_s + HEAD_START_S
        self._tell(now, [_event(now, "SIMULATION_ENDS", {})])

    def _events(self, now: float, facts: Columns) -> list[dict[str, Any]]:
        """Return what happened as Batsim's events."""
        kinds, jobs, events = facts["kind"].tolist(), facts["job"].tolist(), []
        if EDGE in kinds:
            fail("a job of several stages is no job of Batsim's")
        if FAULT in kinds:
            fail("machines that are lost or come back do not map")
        for i, (kind, job) in enumerate(zip(kinds, jobs, strict=True)):
            if kind == JOB_ARRIVED:
                events.append(_event(now, "JOB_SUBMITTED", self._submitted(job, now, facts, i)))
                self._settings[job] = 0, 0.0
            elif kind in (JOB_DONE, JOB_FAILED) and job in self._n_hosts_asked:
                alloc = self._allocated.pop(job, None)
                self._busy -= _hosts(alloc or "")
                ended = "COMPLETED_SUCCESSFULLY" if kind == JOB_DONE else "COMPLETED_FAILED"
                if kind == JOB_FAILED and alloc:
                    ended = "COMPLETED_WALLTIME_REACHED"
                about = {"job_id": f"{WORKLOAD}!{job}", "job_state": ended, "return_code": 0}
                about |= {"kill_reason": "", "alloc": alloc or ""}
                events.append(_event(now, "JOB_COMPLETED", about))
        return events

    def _submitted(self, job: int, now: float, facts: Columns, i: int) -> dict[str, Any]:
        """Return a job as Batsim describes it; its arrival is fact `i`, its stage the next."""
        stages = (facts["job"] == job) & (facts["kind"] == STAGE)
        n = facts["n_tasks"][stages]
        demand = f"demand.{self._resource}"
        per_task = facts[demand][stages] if demand in facts.names else 1.0
        self._n_hosts_asked[job] = n_hosts = round(float((n * per_task).sum()))
        about = {"id": f"{WORKLOAD}!{job}", "subtime": now, "res": n_hosts, "profile": "unknown"}
        limit_s = float(facts["requested_s"][i])
        if not math.isnan(limit_s):
            about["walltime"] = limit_s
        return {"job_id": about["id"], "job": about}

    def _tell(self, now: float, events: Sequence[dict[str, Any]]) -> None:
        """Send events; note what is decided, each for its time."""
        reply = json.loads(self._requests.ask(json.dumps({"now": now, "events": events}).encode()))
        self._thinks_until = max(float(reply["now"]), now)
        for event in reply["events"]:
            kind, data = event["type"], event.get("data", {})
            at_s = max(float(event["timestamp"]), now)
            if kind == "EXECUTE_JOB":
                job = int(data["job_id"].partition("!")[2])
                hosts = _hosts(data["alloc"])
                if len(hosts) != self._n_hosts_asked[job] or hosts & self._busy:
                    fail(f"job {job} is executed on {data['alloc']!r}, of a wrong size or busy")
                self._allocated[job] = data["alloc"]
                self._busy |= hosts
                heapq.heappush(self._later, (at_s, next(self._order), job))
            elif kind == "CALL_ME_LATER":
                call_s = float(data["timestamp"])
                heapq.heappush(self._later, (call_s, next(self._order), None))
            elif kind not in IGNORED:
                fail(f"{kind} does not map")
        if self._thinks_until > now:
            heapq.heappush(self._later, (self._thinks_until, next(self._order), -1))

    def _take_due(self, now: float) -> None:
        """Let executed jobs start, and note calls that were asked for."""
        while self._later and self._later[0][0] <= now:
            at_s, order, job = heapq.heappop(self._later)
            if job is None:
                self._unsent.append(_event(at_s, "REQUESTED_CALL", {}))
            elif job >= 0:
                self._settings[job] = NO_LIMIT, float(order)


def _event(timestamp: float, kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": timestamp, "type": kind, "data": data}


def _hosts(intervals: str) -> set[int]:
    """Return the hosts of an interval set, such as ``0-3 5``."""
    ends = [part.split("-") for part in intervals.replace(",", " ").split()]
    return {host for part in ends for host in range(int(part[0]), int(part[-1]) + 1)}


def connect(process: subprocess.Popen[bytes], path: Path) -> Requests:
    """Connect to the decision process once it listens."""
    deadline = time.monotonic() + BIND_S
    while process.poll() is None and time.monotonic() < deadline:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            time.sleep(0.01)
        else:
            return Requests(connection)
    fail("the decision process did not bind its endpoint")


def main() -> None:
    """Serve one run."""
    if not any("{endpoint}" in argument for argument in sys.argv[1:]):
        fail("an argument of the command has to name {endpoint}")
    reader, heads, read = Reader(), Heads(ANSWER), sys.stdin.buffer.read
    facts = reader.next(read)
    assert reader.schema is not None
    about = json.loads(reader.schema.metadata[b"scheduler"])
    sys.stdout.buffer.write(ANSWER.serialize())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "batsim"
        command = [argument.replace("{endpoint}", f"ipc://{path}") for argument in sys.argv[1:]]
        # its standard output is not for the simulator
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        try:
            conversation, now = Conversation(about, connect(process, path)), 0.0
            conversation.begin()
            while facts is not None:
                now = float(facts["time_s"][0])
                write(heads, *conversation.follow(facts))
                facts = reader.next(read)
            conversation.end(now)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
        finally:  # before a failure is told, so that its line is the last
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
