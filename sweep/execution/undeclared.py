"""Undeclared knowledge of policies of one's own: truths that they read and do not declare.

A policy of this project is held to its declaration by tests. Any other is run on small worlds, once
for each version of its code, and again where only what it does not declare is another
(`policies.check.suite.undeclared`). One that starts tasks otherwise reads a truth that nobody knows
beforehand: it counts as an oracle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import policies
from policies.knows import Knows
from sim.base import disk_cache
from sim.base.disk_cache import Arrays
from sim.evaluators import NO_POLICY
from sweep.execution import notes
from sweep.execution.keys import policy_text
from sweep.grid.config_tree import canonical
from sweep.store import sources

MAX_VARIANTS = 8
"""Largest number of parameter settings of a policy that are checked; they share a result."""
_EVALUATOR = "simulation"
_TIMEOUT_S = 120.0
_QUANTITIES = tuple(field.name for field in fields(Knows))

Config = Mapping[str, Any]


def find_undeclared(configured: Iterable[Config]) -> dict[str, tuple[str, ...]]:
    """Return the quantities that policies of one's own read undeclared, by name of the policy.

    A policy whose runs fail, or take too long, is named on standard error, and not in the result.
    """
    variants: dict[str, dict[str, Config]] = {}
    for policy in configured:
        if _is_own(policy):
            variants.setdefault(policy["name"], {}).setdefault(policy_text(policy), policy)
    reads_of: dict[str, tuple[str, ...]] = {}
    for name, by_text in variants.items():
        checked = [*by_text.values()][:MAX_VARIANTS]
        try:
            reads = _reads(checked)
        except _CheckError as error:
            _note_once(f"{name}: what it reads could not be checked: {error}")
            continue
        if reads:
            reads_of[name] = reads
            module = checked[0]["module"] or "MODULE"
            _note_once(
                f"{name} reads the truth of {' and '.join(reads)} and does not declare it, so it "
                f"counts as an oracle (python -m sweep check {module} says where)"
            )
    return reads_of


_note_once = cache(notes.note)


class _CheckError(Exception):
    """A check that gave no answer."""


def _is_own(policy: Config) -> bool:
    """Tell whether a policy is none of this project."""
    if policy["name"] == NO_POLICY:
        return False
    built = policies.build(policy["name"], module=policy["module"], **policy["params"])
    return type(built).__module__.partition(".")[0] != policies.__name__


def _reads(checked: list[Config]) -> tuple[str, ...]:
    evaluator = {"name": _EVALUATOR}
    texts = [canonical({"params": policy["params"]}) for policy in checked]
    code = sources.cell_digest(checked[0], evaluator)
    key = disk_cache.digest(checked[0]["name"], code, *texts)

    def compute(_: int) -> Arrays:
        reads = {name for names in _run(checked) for name in names}
        return {"reads": np.array([name in reads for name in _QUANTITIES])}

    (answer,) = disk_cache.get_or_compute(__name__, [key], compute)
    return tuple(
        name for name, is_read in zip(_QUANTITIES, answer["reads"], strict=True) if is_read
    )


def _run(checked: list[Config]) -> list[list[str]]:
    """Run the check in a process of its own, which a policy may bring down."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
        "NUMBA_DISABLE_JIT": "1",
    }
    command = [sys.executable, "-m", "policies.check.undeclared"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps([dict(policy) for policy in checked]),
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _CheckError(f"it ran for more than {_TIMEOUT_S:.0f} s") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise _CheckError(last[0])
    answer: list[list[str]] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer
