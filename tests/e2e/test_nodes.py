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
def back(cluster: Site, before: str) -> Iterator[Machine]:
    """Let the second machine join anew, with something of its own; leave it as it was."""
    machine = cluster.machines[1]
    machine.kill()
    try:
        machine.join(cluster.head.address, before=before)
        yield machine
    finally:
        machine.kill()
        machine.join(cluster.head.address)


def test_other_sources_are_left_out(
    cluster: Site, watch: Watch, packages: Path, tmp_path: Path
) -> None:
    with back(cluster, odd.other_sources(packages, tmp_path)) as machine:
        ran = watch.end(watch.start(cluster.head, 6, "launcher.send_code=false"))
        assert machine.number not in watch.machines()
    said = f"({machine.address}) is left out: other sources of sweep.execution.cell:"
    assert said in ran.err
    assert "launcher.send_code=true" in ran.err
    once_and_the_same(watch, ran, 6)


def test_the_code_travels(cluster: Site, watch: Watch, packages: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with back(cluster, f"mount --bind {tmp_path / 'empty'} {packages}") as machine:
        watch.gate.touch()
        process = watch.start(cluster.head, 6)
        wait_until(lambda: machine.number in watch.machines(), process, "a cell runs there")
        watch.gate.unlink()
        ran = watch.end(process)
    assert "left out" not in ran.err
    once_and_the_same(watch, ran, 6)
    assert any(machine.address in event["node"] for event in events(watch))


def test_a_full_disk_is_left_out(cluster: Site, watch: Watch) -> None:
    folder = cluster.machines[1].temporary / "ray"
    with back(cluster, odd.small_disk(folder)) as machine:
        pid = next(pid for pid, line in machine.processes().items() if "raylet" in line)
        odd.fill(Path(f"/proc/{pid}/root{folder}"))
        ran = watch.end(watch.start(cluster.head, 6))
        assert machine.number not in watch.machines()
    assert f"({machine.address}) is left out: " in ran.err
    once_and_the_same(watch, ran, 6)


def test_a_node_that_fails_what_others_do_is_left_out(cluster: Site, watch: Watch) -> None:
    ill = cluster.machines[1]
    process = watch.start(cluster.head, 24, f"policy.ill=m{ill.number}")
    ran = watch.end(process)
    assert f"({ill.address}) is left out: it failed cells that others did not: OSError" in ran.err
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
