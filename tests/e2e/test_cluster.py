"""A sweep on a Ray cluster of several nodes: same results, also when nodes or workers die."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.machines import Machine, Site
from tests.e2e.watched import Watch, assert_complete_and_identical, wait_until

pytestmark = pytest.mark.e2e


@pytest.mark.long
def test_several_nodes_give_the_same_bytes(cluster: Site, watch: Watch) -> None:
    watch.gate.touch()
    process = watch.start(cluster.head, 6)
    numbers = {machine.number for machine in cluster.machines}
    wait_until(lambda: watch.machines() == numbers, process, "cells run on every machine")
    watch.gate.unlink()
    ran = watch.end(process)
    assert_complete_and_identical(watch, ran, 6)


@pytest.mark.long
def test_a_wrong_token_is_refused(cluster: Site, watch: Watch) -> None:
    outsider = Machine(
        cluster.head.namespace,
        cluster.head.address,
        cluster.head.temporary,
        {**cluster.head.environment, "RAY_AUTH_TOKEN_PATH": str(watch.notes / "other")},
    )
    (watch.notes / "other").write_text("0" * 64)
    ran = watch.end(watch.start(outsider, 1))
    assert ran.code == 2
    assert "the cluster takes only those who have its token" in ran.err
    assert "RAY_AUTH_TOKEN_PATH is set here and may be the reason" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.long
def test_nodes_die_during_a_cell_and_rejoin(cluster: Site, watch: Watch) -> None:
    watch.gate.touch()
    process = watch.start(cluster.head, 8)
    workers = cluster.machines[1:]
    numbers = {machine.number for machine in cluster.machines}
    wait_until(lambda: watch.machines() == numbers, process, "cells run on every machine")
    for machine in workers:
        assert machine.kill() > 3
    before = len(watch.seen())
    cluster.join(workers)
    wait_until(lambda: len(watch.seen()) >= before + 2, process, "cells began on them again")
    watch.gate.unlink()
    ran = watch.end(process)
    assert_complete_and_identical(watch, ran, 8)


@pytest.mark.long
def test_workers_are_killed(cluster: Site, watch: Watch) -> None:
    watch.gate.touch()
    process = watch.start(cluster.head, 4)
    wait_until(lambda: len(watch.seen()) >= 3, process, "three cells run")
    killed = watch.seen()
    for _, _, pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(watch.seen()) >= 6, process, "cells began again")
    watch.gate.unlink()
    ran = watch.end(process)
    n_starts = Counter(seed for seed, _, _ in watch.seen())
    assert all(n_starts[seed] == 2 for seed, _, _ in killed)
    assert_complete_and_identical(watch, ran, 4)


@pytest.mark.long
def test_a_worker_is_killed_for_memory(cluster: Site, watch: Watch) -> None:
    """Ray's memory monitor kills the worker: nearly all memory of its node appears to be in use."""
    machine = cluster.machines[1]
    meminfo = watch.command.folder / "meminfo"
    original = Path("/proc/meminfo").read_text()
    meminfo.write_text(original)
    watch.gate.touch()
    machine.kill()
    try:
        machine.join(cluster.head.address, before=f"mount --bind {meminfo} /proc/meminfo")
        process = watch.start(cluster.head, 6)
        wait_until(lambda: machine.number in watch.machines(), process, "a cell runs there")
        ((seed, _, pid),) = [entry for entry in watch.seen() if entry[1] == machine.number]
        free_memory = r"^(MemFree|MemAvailable|Buffers|Cached|SReclaimable):.*$"
        meminfo.write_text(re.sub(free_memory, r"\1: 0 kB", original, flags=re.MULTILINE))
        wait_until(lambda: pid not in machine.processes(), process, "its worker is killed")
        meminfo.write_text(original)
        wait_until(lambda: len(watch.seen()) >= 4, process, "another cell runs there")
        watch.gate.unlink()
        ran = watch.end(process)
    finally:
        machine.kill()
        machine.join(cluster.head.address)
    assert [entry[0] for entry in watch.seen()].count(seed) == 2
    assert_complete_and_identical(watch, ran, 6)


@pytest.mark.long
def test_a_killed_driver_resumes(cluster: Site, watch: Watch) -> None:
    process = watch.start(cluster.head, 6)
    wait_until(lambda: len(watch.seen()) >= 2, process, "some cells began")
    process.kill()
    process.communicate()
    ran = watch.end(watch.start(cluster.head, 6))
    assert {row["status"] for row in ran.rows} == {"done"}
    assert_complete_and_identical(watch, ran, 6)
