"""Clusters whose nodes come and go: preempted with notice, or started by an autoscaler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.machines import Machine, NoMachinesError, Site, site
from tests.e2e.watched import Watch, assert_complete_and_identical, events, notices, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.long]

HEAD_ID = "f" * 51 + "00000"
"""Id of the head node in the fake provider."""

DRAIN = """
import sys, time, ray
from ray.core.generated.autoscaler_pb2 import DrainNodeReason
address, wanted, seconds = sys.argv[1:]
ray.init(address=address, log_to_driver=False, logging_level="ERROR")
(node,) = [n["NodeID"] for n in ray.nodes() if n["Alive"] and n["NodeManagerAddress"] == wanted]
reason = DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
end_ms = int(1000 * (time.time() + float(seconds)))
print(ray._raylet.GcsClient(address=address).drain_node(node, reason, "spot", end_ms))
"""


def announce(machine: Machine, head: Machine, seconds: float) -> None:
    """Announce to the cluster that a machine will be preempted in so many seconds."""
    words = [sys.executable, "-c", DRAIN, f"{head.address}:6379", machine.address, str(seconds)]
    done = subprocess.run(
        head.words(words),
        env={**os.environ, **head.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "True" in done.stdout, done.stdout + done.stderr


def test_a_node_is_drained_before_its_preemption(cluster: Site, watch: Watch) -> None:
    doomed = cluster.machines[1]
    watch.gate.touch()
    process = watch.start(cluster.head, 9)
    numbers = {machine.number for machine in cluster.machines}
    wait_until(lambda: watch.machines() == numbers, process, "cells run on every machine")
    announce(doomed, cluster.head, 600.0)
    wait_until(lambda: "is draining" in notices(watch), process, "the sweep says so")
    doomed.kill()
    try:
        watch.gate.unlink()
        ran = watch.end(process)
    finally:
        doomed.join(cluster.head.address)
    assert f"({doomed.address}) is draining; its cells run on other nodes" in ran.err
    assert sum(machine == doomed.number for _, machine, _ in watch.seen()) == 1
    assert not any(doomed.address in event["node"] for event in events(watch))
    assert_complete_and_identical(watch, ran, 9)


def write_autoscaler_config(folder: Path) -> Path:
    """Write the configuration of Ray's autoscaler: nodes of one CPU, none at first, at most two."""
    lists = ("initialization", "setup", "head_setup", "worker_setup")
    lists += ("head_start_ray", "worker_start_ray")
    config = {
        "cluster_name": "fake_multinode",
        "max_workers": 2,
        "provider": {
            "type": "external",  # its wheel lacks the defaults of "fake_multinode"
            "module": "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider",
            "use_node_id_as_ip": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
            "launch_multiple": True,
            "head_node_id": HEAD_ID,
        },
        "available_node_types": {
            "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            "worker": {
                "resources": {"CPU": 1, "object_store_memory": 100_000_000},
                "node_config": {},
                "min_workers": 0,
                "max_workers": 2,
            },
        },
        "head_node_type": "ray.head.default",
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": 0.1,
        **{name: {} for name in ("auth", "docker", "file_mounts")},
        **{f"{name}_commands": [] for name in lists},
        **{name: [] for name in ("cluster_synced_files", "rsync_exclude", "rsync_filter")},
        "file_mounts_sync_continuously": False,
    }
    file = folder / "autoscaler.json"
    file.write_text(json.dumps(config))
    return file


def test_a_cluster_grows_and_shrinks_with_the_cells(watch: Watch) -> None:
    """The fake provider's nodes are processes of the head's machine."""
    environment = {
        "RAY_FAKE_CLUSTER": "1",
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_enable_autoscaler_v2": "1",
        "RAY_CLOUD_INSTANCE_ID": HEAD_ID,
        "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD_ID,
    }
    options = (
        f"--autoscaling-config={write_autoscaler_config(watch.command.folder)}",
        "--num-cpus=0",
    )
    exported = " ".join(f"{name}={value}" for name, value in environment.items())
    try:
        with site(1) as cluster_site:
            head = cluster_site.head
            head.join(
                head.address,
                "--include-dashboard=false",
                *options,
                before=f"export {exported}",
            )
            watch.gate.touch()
            process = watch.start(head, 6)
            wait_until(lambda: len(watch.seen()) == 2, process, "the cluster has grown to two")
            watch.gate.unlink()
            ran = watch.end(process)
            assert_complete_and_identical(watch, ran, 6)
            deadline_s = time.monotonic() + 600
            while (n := _raylets(head)) > 1 and time.monotonic() < deadline_s:
                time.sleep(1)
            assert n == 1
            again = watch.end(watch.start(head, 8))
            assert again.code == 0, again.out + again.err
    except NoMachinesError as error:
        pytest.skip(f"no machine of its own for a cluster: it {error}")


def _raylets(machine: Machine) -> int:
    lines = (line.split() for line in machine.processes().values())
    return sum(words[0].endswith("/raylet") for words in lines if words)
