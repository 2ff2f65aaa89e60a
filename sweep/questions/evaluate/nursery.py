"""Nursery: a process from which candidates' processes are forked, with everything imported.

It has no workload, no seed and no candidate, so that its children inherit none. Run as ``python -m
sweep.questions.evaluate.nursery SOCKET``, it forks a child for each pair of pipes, and a shared
file, that come by the socket, and ends and reaps those that it is told to.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Iterable

import numpy as np

import policies
from policies.check.unknown import recurring
from sim.cluster.cluster import Cluster
from sim.engine.plan import Plan, World
from sweep.questions.evaluate import candidate

NEW, END = "new", "end"
READY = b"ready\n"


def warm() -> None:
    """Let the policies of the core prepare a small run: loads what they compile."""
    columns, cluster = recurring(0).columns, Cluster.machines(4, cpu=8, mem=16)
    world = World(columns, cluster, 0, {})
    world.rng("warm").permutation(3)
    for name in policies.names():
        cls = policies.spec(name)
        if cls.__module__.count(".") == 1:
            plan = Plan(len(columns.job_submit), len(columns.stage_job), columns.n_tasks)
            with contextlib.suppress(Exception):  # it lacks what this workload has not
                policies.build(name).begin(world, plan)
    np.percentile(np.arange(3.0), 50)


def main(words: Iterable[str]) -> None:
    """Serve until the socket is closed."""
    (number,) = map(int, words)
    link = socket.socket(fileno=number)
    warm()
    gc.collect()
    gc.freeze()
    link.sendall(READY)
    children: set[int] = set()
    while True:
        data, pipes, *_ = socket.recv_fds(link, 64, 3)
        if not data:
            break
        verb, _, word = data.decode().strip().partition(" ")
        if verb == NEW:
            child = os.fork()
            if not child:
                candidate.run(pipes[0], pipes[1], pipes[2])
            children.add(child)
            for pipe in pipes:
                os.close(pipe)
            link.sendall(f"{child}\n".encode())
        elif verb == END and int(word) in children:
            children.discard(int(word))
            link.sendall(f"{_end(int(word))}\n".encode())
    for child in children:
        _end(child)


def _end(child: int) -> int:
    """Kill a child, unless it has ended; return its exit code, below 0 for a signal."""
    done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main(sys.argv[1:])
