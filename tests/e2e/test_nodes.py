"""Nodes that differ from the driver are reported and excluded; their cells run on other nodes."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import node_faults
from tests.e2e.machines import Machine, Site
from tests.e2e.watched import Watch, assert_complete_and_identical, events, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@contextlib.contextmanager
def rejoined(cluster: Site, *setups: str) -> Iterator[list[Machine]]:
    """Restart nodes other than the head, each after a line of shell; restore them on exit."""
    machines = cluster.machines[1 : 1 + len(setups)]
    for machine in machines:
        machine.kill()
    try:
        cluster.join(machines, befores=setups)
        yield machines
    finally:
        for machine in machines:
            machine.kill()
        cluster.join(machines)


def test_a_node_with_other_sources_is_excluded(
    cluster: Site, watch: Watch, packages: Path, tmp_path: Path
) -> None:
    with rejoined(cluster, node_faults.change_sources(packages, tmp_path)) as (machine,):
        ran = watch.end(watch.start(cluster.head, 6, "launcher.send_code=false"))
        assert machine.number not in watch.machines()
    message = f"({machine.address}) is excluded: other versions of sweep.execution.cell:"
    assert message in ran.err
    assert "launcher.send_code=true" in ran.err
    assert_complete_and_identical(watch, ran, 6)


def test_the_code_is_sent_to_nodes(
    cluster: Site, watch: Watch, packages: Path, tmp_path: Path
) -> None:
    """To a node without the sources, and to one with other sources."""
    (tmp_path / "empty").mkdir()
    setups = (
        f"mount --bind {tmp_path / 'empty'} {packages}",
        node_faults.change_sources(packages, tmp_path),
    )
    with rejoined(cluster, *setups) as machines:
        watch.gate.touch()
        process = watch.start(cluster.head, 6)
        numbers = {machine.number for machine in machines}
        wait_until(lambda: numbers <= watch.machines(), process, "cells run on both")
        watch.gate.unlink()
        ran = watch.end(process)
    assert "is excluded" not in ran.err
    assert_complete_and_identical(watch, ran, 6)
    nodes = " ".join({event["node"] for event in events(watch)})
    assert all(machine.address in nodes for machine in machines)


def test_a_node_with_a_full_disk_is_excluded(cluster: Site, watch: Watch) -> None:
    folder = cluster.machines[1].temporary / "ray"
    with rejoined(cluster, node_faults.mount_small_disk(folder)) as (machine,):
        node_faults.fill_disk(seen_by(machine, folder))
        ran = watch.end(watch.start(cluster.head, 6))
        assert machine.number not in watch.machines()
    (line,) = (line for line in ran.err.splitlines() if "is excluded" in line)
    assert f"({machine.address}) is excluded: " in line
    assert "make room" in line
    assert_complete_and_identical(watch, ran, 6)


def test_full_disks_and_wrong_clocks_lose_no_cell(
    cluster: Site, watch: Watch, tmp_path: Path
) -> None:
    """In one sweep, because restarting a node takes seconds.

    On the first node, the disks of Ray's own files and of the results are full when its cells end,
    and the clock is an hour slow. The other node's clock is an hour fast.
    """
    temporary = cluster.machines[1].temporary / "ray"
    shards = watch.command.folder / "results" / "cache" / "shards"
    shards.mkdir(parents=True)
    disks = [node_faults.mount_small_disk(temporary), node_faults.mount_small_disk(shards, "1m")]
    slow_clock, fast_clock = (
        node_faults.shift_clock(tmp_path, s) for s in (-node_faults.HOUR_S, node_faults.HOUR_S)
    )
    with rejoined(cluster, " && ".join([*disks, slow_clock]), fast_clock) as (slow, fast):
        watch.gate.touch()
        process = watch.start(cluster.head, 9)
        numbers = {machine.number for machine in cluster.machines}
        wait_until(lambda: watch.machines() == numbers, process, "cells run on every machine")
        clocks = watch.clocks()
        for folder in (temporary, shards):
            node_faults.fill_disk(seen_by(slow, folder))
        watch.gate.unlink()
        ran = watch.end(process)
        # no shard was written there: the node sent its cells to the driver
        assert {file.name for file in seen_by(slow, shards).iterdir()} == {"fill"}
    assert clocks[slow.number] == pytest.approx(-node_faults.HOUR_S, abs=600)
    assert clocks[fast.number] == pytest.approx(node_faults.HOUR_S, abs=600)
    assert "is excluded" not in ran.err
    assert_complete_and_identical(watch, ran, 9)
    assert all(0 <= event["seconds"] < 600 for event in events(watch))
    nodes = " ".join({event["node"] for event in events(watch)})
    assert all(machine.address in nodes for machine in cluster.machines)


def seen_by(machine: Machine, folder: Path) -> Path:
    """Path of a folder as a machine's Ray has it mounted."""
    pid = next(pid for pid, line in machine.processes().items() if "/raylet " in line)
    return Path(f"/proc/{pid}/root{folder}")


def test_a_node_is_excluded_if_its_cells_succeed_elsewhere(cluster: Site, watch: Watch) -> None:
    failing = cluster.machines[1]
    process = watch.start(cluster.head, 24, f"policy.ill=m{failing.number}")
    ran = watch.end(process)
    assert (
        f"({failing.address}) is excluded: cells failed there and succeeded on other nodes: OSError"
        in ran.err
    )
    assert sum(machine == failing.number for _, machine, _ in watch.seen()) >= 3
    assert ran.code == 0
    assert {event["status"] for event in events(watch)} == {"done"}
    assert not any(failing.address in event["node"] for event in events(watch))


def test_a_failure_on_every_node_is_attributed_to_the_policy(cluster: Site, watch: Watch) -> None:
    ran = watch.end(watch.start(cluster.head, 12, "policy.ill=all"))
    assert ran.code == 1
    assert "is excluded" not in ran.err
    assert Counter(row["error_message"] for row in ran.rows).total() == 12
    times = Counter(seed for seed, _, _ in watch.seen())
    assert 1 <= sum(n > 1 for n in times.values()) <= 9, os.linesep.join(map(str, times.items()))
