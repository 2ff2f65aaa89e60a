"""Driver of a run, a process of its own: starts the raylets, submits the tasks, prints a table.

It reads lines of ``class submit_s sleep_s cpus disks`` and prints a table of jobs, as
`sim.traces.table` reads it, with the node of each task.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

NAMES = ("job_id", "submit_s", "start_s", "end_s", "cpus", "disks", "queue", "node", "sleep_s")


def main(n_nodes: int, cpus: int, disks: int) -> None:
    """Run the tasks of standard input on a cluster of that many raylets."""
    import ray
    from ray.cluster_utils import Cluster

    node = {
        "num_cpus": cpus, "resources": {"disk": disks}, "node_ip_address": "127.0.0.1",
        "include_dashboard": False, "include_log_monitor": False,
    }  # fmt: skip
    cluster = Cluster(initialize_head=True, head_node_args=node)
    try:
        for _ in range(n_nodes - 1):
            cluster.add_node(**node)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        _warm_up(ray, n_nodes * cpus)
        print(",".join(NAMES))
        for row in _run(ray, [line.split() for line in sys.stdin]):
            print(",".join(map(str, row)))
    finally:
        ray.shutdown()
        cluster.shutdown()


def _remote(ray: Any, kind: str, cpus: int, disks: int) -> Any:
    """Return a task of a scheduling class: Ray knows them by function and resources."""

    def nap(seconds: float) -> tuple[float, float, str]:
        begin = time.time()
        time.sleep(seconds)
        return begin, time.time(), ray.get_runtime_context().get_node_id()

    nap.__name__ = nap.__qualname__ = kind
    resources = {"disk": disks} if disks else None
    return ray.remote(num_cpus=cpus, resources=resources, max_retries=0)(nap)


def _warm_up(ray: Any, n_cpus: int) -> None:
    """Start all worker processes, on every node, before the first submission."""
    nap = _remote(ray, "one", 1, 0)
    for _ in range(3):
        ray.get([nap.remote(1.0) for _ in range(2 * n_cpus)])
    time.sleep(1.0)


def _run(ray: Any, tasks: list[list[str]]) -> list[tuple[Any, ...]]:
    classes = {(kind, int(cpus), int(disks)) for kind, _, _, cpus, disks in tasks}
    functions = {shape[0]: _remote(ray, *shape) for shape in sorted(classes)}
    begin = time.time() + 0.2
    submitted = []
    for kind, submit_s, sleep_s, _, _ in tasks:
        time.sleep(max(begin + float(submit_s) - time.time(), 0.0))
        now = time.time()
        submitted.append((now, functions[kind].remote(float(sleep_s))))
    rows: list[tuple[Any, ...]] = []
    nodes: dict[str, int] = {}
    first = submitted[0][0]
    for number, (task, (submit, result)) in enumerate(zip(tasks, submitted, strict=True)):
        start, end, node = ray.get(result)
        times = [round(moment - first, 4) for moment in (submit, start, end)]
        host = nodes.setdefault(node, len(nodes))
        rows.append((number, *times, task[3], task[4], task[0], host, task[2]))
    return rows


if __name__ == "__main__":
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    main(*map(int, sys.argv[1:]))
