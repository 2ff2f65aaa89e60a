"""Repeatability: the same outputs again, with other global state, and in other processes.

In this process twice, with Python's and NumPy's global generators seeded differently; then in fresh
processes, in which sets of texts have other orders (PYTHONHASHSEED).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sim.check.subject import Options, Subject

HASH_SEEDS = ("1", "2")
_FRESH = "from sim.check.fresh import main; main()"


def repeat_rules(subject: Subject, module: str, options: Options) -> Iterator[str]:
    """Yield a sentence if the outputs of a subject are not the same each time."""
    first, second = (_seeded(subject, seed) for seed in (1, 2))
    if first != second:
        again = _seeded(subject, 2)
        cause = (
            "it depends on what earlier calls left behind, on a clock, or on a generator without a "
            "seed"
            if again != second
            else "it draws from a global generator (`random`, `numpy.random`), or depends on what "
            "earlier calls left behind"
        )
        yield f"two calls with the same seed differ: {cause}; draw from {_source(subject.kind)}"
        return
    fresh = [fresh_fingerprint(subject, module, options, seed) for seed in HASH_SEEDS]
    if fresh[0] != fresh[1]:
        yield (
            "it differs from process to process, with the order of a set or the hash of a text "
            "(PYTHONHASHSEED): go through sorted(...) or a dict, and digest with hashlib"
        )
    elif fresh[0] != first:
        yield "it differs in a fresh process: it depends on what earlier calls left behind"


def fresh_fingerprint(subject: Subject, module: str, options: Options, hash_seed: str) -> str:
    """Return the fingerprint of a subject in a process of its own."""
    request = {
        "module": module, "kind": subject.kind, "name": subject.name,
        "sample": options.sample, "values": dict(options.values),
    }  # fmt: skip
    path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
    ran = subprocess.run(
        [sys.executable, "-c", _FRESH],
        input=json.dumps(request),
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        lines = ran.stderr.strip().splitlines() or ["no message"]
        return f"error: {lines[-1]}"
    return ran.stdout.strip().splitlines()[-1]


def _seeded(subject: Subject, seed: int) -> str:
    """Return the fingerprint under other seeds of the global generators, then as they were."""
    states = random.getstate(), np.random.get_state()
    try:
        random.seed(seed)
        np.random.seed(seed)
        return subject.fingerprint()
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def _source(kind: str) -> str:
    if kind == "policy":
        return 'world.rng("purpose")'
    return "sim.base.random.stream(seed, purpose)"
