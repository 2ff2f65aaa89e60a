"""Nodes that are not as the driver is: named, left out, their cells run elsewhere."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import odd
from tests.e2e.machines import Machine, Site
from tests.e2e.watched import Watch, events, once_and_the_same, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@contextlib.contextmanager
def back(cluster: Site, *befores: str) -> Iterator[list[Machine]]:
    """Let machines but the head join anew, each with something of its own; leave them as before."""
    machines = cluster.machines[1 : 1 + len(befores)]
    for machine in machines:
        machine.kill()
    try:
        cluster.join(machines, befores=befores)
        yield machines
    finally:
        for machine in machines:
            machine.kill()
        cluster.join(machines)


def test_other_sources_are_left_out(
    cluster: Site, watch: Watch, packages: Path, tmp_path: Path
) -> None:
    with back(cluster, odd.other_sources(packages, tmp_path)) as (machine,):
        ran = watch.end(watch.start(cluster.head, 6, "launcher.send_code=false"))
        assert machine.number not in watch.machines()
    message = f"({machine.address}) is excluded: other versions of sweep.execution.cell:"
    assert message in ran.err
    assert "launcher.send_code=true" in ran.err
    once_and_the_same(watch, ran, 6)


def test_the_code_travels(cluster: Site, watch: Watch, packages: Path, tmp_path: Path) -> None:
    """To a node that has none, and to one that has other sources of its own."""
    (tmp_path / "empty").mkdir()
    has = (f"mount --bind {tmp_path / 'empty'} {packages}", odd.other_sources(packages, tmp_path))
    with back(cluster, *has) as machines:
        watch.gate.touch()
        process = watch.start(cluster.head, 6)
        numbers = {machine.number for machine in machines}
        wait_until(lambda: numbers <= watch.machines(), process, "cells run on both")
        watch.gate.unlink()
        ran = watch.end(process)
    assert "left out" not in ran.err
    once_and_the_same(watch, ran, 6)
    nodes = " ".join({event["node"] for event in events(watch)})
    assert all(machine.address in nodes for machine in machines)


def test_a_full_disk_is_left_out(cluster: Site, watch: Watch) -> None:
    folder = cluster.machines[1].temporary / "ray"
    with back(cluster, odd.small_disk(folder)) as (machine,):
        odd.fill(seen_by(machine, folder))
        ran = watch.end(watch.start(cluster.head, 6))
        assert machine.number not in watch.machines()
    (line,) = (line for line in ran.err.splitlines() if "left out" in line)
    assert f"({machine.address}) is excluded: " in line
    assert "make room" in line
    once_and_the_same(watch, ran, 6)


def test_disks_that_fill_up_and_clocks_that_are_off_lose_no_cell(
    cluster: Site, watch: Watch, tmp_path: Path
) -> None:
    """In one sweep, as nodes that join anew cost seconds.

    The first node's disks of Ray's own files and of the results are full when its cells end; its
    clock is an hour slow, the other's is an hour fast.
    """
    temporary = cluster.machines[1].temporary / "ray"
    shards = watch.command.folder / "results" / "cache" / "shards"
    shards.mkdir(parents=True)
    disks = [odd.small_disk(temporary), odd.small_disk(shards, "1m")]
    slow_clock, fast_clock = (odd.another_hour(tmp_path, s) for s in (-odd.HOUR_S, odd.HOUR_S))
    with back(cluster, " && ".join([*disks, slow_clock]), fast_clock) as (slow, fast):
        watch.gate.touch()
        process = watch.start(cluster.head, 9)
        numbers = {machine.number for machine in cluster.machines}
        wait_until(lambda: watch.machines() == numbers, process, "cells run on every machine")
        clocks = watch.clocks()
        for folder in (temporary, shards):
            odd.fill(seen_by(slow, folder))
        watch.gate.unlink()
        ran = watch.end(process)
        # no shard was put there: its cells were handed over
        assert {file.name for file in seen_by(slow, shards).iterdir()} == {"fill"}
    assert clocks[slow.number] == pytest.approx(-odd.HOUR_S, abs=600)
    assert clocks[fast.number] == pytest.approx(odd.HOUR_S, abs=600)
    assert "left out" not in ran.err
    once_and_the_same(watch, ran, 9)
    assert all(0 <= event["seconds"] < 600 for event in events(watch))
    nodes = " ".join({event["node"] for event in events(watch)})
    assert all(machine.address in nodes for machine in cluster.machines)


def seen_by(machine: Machine, folder: Path) -> Path:
    """Path of a folder as a machine's Ray has it mounted."""
    pid = next(pid for pid, line in machine.processes().items() if "/raylet " in line)
    return Path(f"/proc/{pid}/root{folder}")


def test_a_node_that_fails_what_others_do_is_left_out(cluster: Site, watch: Watch) -> None:
    ill = cluster.machines[1]
    process = watch.start(cluster.head, 24, f"policy.ill=m{ill.number}")
    ran = watch.end(process)
    assert (
        f"({ill.address}) is excluded: cells failed there and succeeded on other nodes: OSError"
        in ran.err
    )
    assert sum(machine == ill.number for _, machine, _ in watch.seen()) >= 3
    assert ran.code == 0
    assert {event["status"] for event in events(watch)} == {"done"}
    assert not any(ill.address in event["node"] for event in events(watch))


def test_a_policy_that_fails_everywhere_is_the_policys(cluster: Site, watch: Watch) -> None:
    ran = watch.end(watch.start(cluster.head, 12, "policy.ill=all"))
    assert ran.code == 1
    assert "left out" not in ran.err
    assert Counter(row["error_message"] for row in ran.rows).total() == 12
    times = Counter(seed for seed, _, _ in watch.seen())
    assert 1 <= sum(n > 1 for n in times.values()) <= 9, os.linesep.join(map(str, times.items()))
