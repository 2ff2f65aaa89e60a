"""Every mechanism with every other: each pair runs as in the naive simulator, or says why not.

A fifth of the pairs; all of them with MATRIX=all, as in ``make test-long``.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

from tests.examples import COMPILED_WIDE
from tests.sim.engine.compared import compare
from tests.sim.engine.random_worlds import RARE, draw_with

FITS = ("strict", "skip", "pack", "reservations", "planning")
"""Ways to fit, of which a run has one; strict is that of worlds that name none."""

OTHERS = (
    *("gangs", "devices", "classes", "partitions", "hard queues", "weighted queues", "outages"),
    *("failures", "launch lags", "stage lags", "batches", "learning", "inputs", "remote"),
    *("slow periods", "fungible", "choice", "speeds", "limits", "callbacks", "caps", "quotas"),
    *("dependencies", "begin times", "singletons", "evictions", "preemption", "checkpoints"),
    *("tiers", "admission", "exclusive"),
    *("drains", "known outages", "reserved machines", "unequal slots", "elastic"),
    *("selected classes", "topology", "pins", "flavors", "strategies"),
)

REFUSED = {
    ("holds", "pack"): "holds machines from tasks that pass others by",
    ("elastic", "reservations"): "elastic jobs do not run with reservations",
    ("elastic", "planning"): "elastic jobs do not run with periodic planning",
    ("reservations", "selected classes"): "may take a machine from a job at any time",
    ("planning", "selected classes"): "may take a machine from a job at any time",
    ("pack", "strategies"): "has a strategy of a queue",
    ("reservations", "strategies"): "has a strategy of a queue",
    ("planning", "strategies"): "has a strategy of a queue",
    ("holds", "strategies"): "has a strategy of a queue",
}
"""Pairs that never run, and their reason; `docs/architecture.md` has them in words."""

ONE_OF = [
    {"hard queues", "weighted queues"},
    {"hard queues", "quotas"},
    {"weighted queues", "quotas"},
    *(
        {queues, name}
        for queues in ("hard queues", "weighted queues")
        for name in ("flavors", "strategies")
    ),
    {"evictions", "preemption"},
]
"""Mechanisms of which a run has one."""

ARCHITECTURE = Path(__file__).parents[3] / "docs" / "architecture.md"


def pairs():
    """Yield what each fit meets, and each of the others in strict order and where others pass."""
    for fit, name in itertools.product(FITS, OTHERS):
        yield fit, name
    for first, second in itertools.combinations(OTHERS, 2):
        if {first, second} not in ONE_OF:
            yield first, second
    for name in OTHERS:
        yield "holds", name


def runs(pair, tries=25):
    """Tell whether some world with the pair runs; the sentences of those that were refused."""
    reasons = []
    for number in range(tries):
        on = {*pair} - {"strict"} | ({"gangs"} if "topology" in pair else set())
        world = draw_with(np.random.default_rng([56, number]), on)
        has_gang = any(job.get("min_tasks") for job in world["jobs"])
        if {"gangs", "unequal slots", "topology"} & {*pair} and not has_gang:
            continue
        if "elastic" in pair and not any("width_min" in job for job in world["jobs"]):
            continue
        result = compare(world)
        assert not result.differs, (pair, number, result.differs)
        if not result.refused:
            return True, reasons
        reasons.append(result.refused)
    return False, reasons


@pytest.mark.parametrize("part", range(4))
def test_a_pair_that_means_something_runs(part):
    step = 1 if os.environ.get("MATRIX") == "all" else 5
    for pair in [*pairs()][part :: 4 * step]:
        if COMPILED_WIDE and RARE & {*pair}:
            continue
        if tuple(sorted(pair)) not in REFUSED:
            ran, reasons = runs(pair)
            assert ran, (pair, reasons[-1])


@pytest.mark.parametrize("pair", REFUSED, ids="-".join)
def test_a_pair_that_does_not_run_says_why(pair):
    ran, reasons = runs(pair, 6)
    assert not ran
    assert any(REFUSED[pair] in reason for reason in reasons)


def test_what_does_not_run_is_documented():
    text = ARCHITECTURE.read_text()
    table = text[text.index("| does not run |") :].partition("\n\n")[0]
    for words in ("eviction", "preemption", "held machines", "pack"):
        assert words in table
