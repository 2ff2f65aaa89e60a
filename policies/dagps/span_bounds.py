"""Lower bounds of the span of a DAG's schedules; a schedule at a bound ends the search for shorter.

`alone` is the time that a greedy packer needs for each stage alone: a stage of equal tasks can't
take less in any schedule within capacity, because the packer runs as many of them at once as any
schedule can.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.dagps.dag import Dag, path_s, read_only
from sim.base.arrays import F8, I8

SLACK = 1e-12
"""Relative tolerance: a span this close to a lower bound counts as optimal."""

LOAD_SLACK = 1e-9
"""Relative tolerance of a sum of work, which rounds."""


def stage_load(dag: Dag, capacity: I8) -> F8:
    """Measure each stage's work against the capacity of all machines, (G, R) s."""
    work = np.add.reduceat(dag.duration, dag.task0[:-1])
    load: F8 = work[:, None] * (dag.demand / np.maximum(capacity.sum(axis=0), 1))
    return load


def span_lower_bound(dag: Dag, capacity: I8, alone: F8) -> float:
    """Bound the span of any schedule from below, with `SLACK`, s.

    The greatest of CPLen, TWork and ModCP (§6). With an `alone` of 0 it holds for schedules that
    overbook fungible resources, too.
    """
    load = stage_load(dag, capacity)
    shortest, longest = _extremes(dag)
    whole = np.maximum(load.max(axis=1), longest)
    whole = np.where(longest == shortest, np.maximum(whole, alone), whole)
    paths_s = _longest_path_s(dag, shortest, whole)
    return max(paths_s, float(load.sum(axis=0).max())) * (1 + SLACK)


def exact_bound_s(dag: Dag, capacity: I8, alone: F8) -> float:
    """Bound the span of schedules within capacity from below, s; 0 if sums of durations round.

    If durations are multiples of a unit, so is every time of a schedule that overbooks nothing.
    As long as float64 holds them exactly, no span lies below this bound by a rounding error, and
    none between two multiples.
    """
    unit = exact_unit_s(dag.duration)
    if unit == 0:
        return 0.0
    shortest, longest = _extremes(dag)
    whole = np.where(longest == shortest, np.maximum(longest, alone), longest)
    load_s = float(stage_load(dag, capacity).sum(axis=0).max())
    n_units = float(np.ceil(load_s / unit * (1 - LOAD_SLACK)))
    return max(_longest_path_s(dag, shortest, whole), n_units * unit)


def exact_unit_s(duration: F8) -> float:
    """Return the greatest common divisor of durations, s; 0 if float64 rounds sums of them."""
    lengths = np.unique(duration[duration > 0])
    if not len(lengths):
        return 0.0
    fraction, exponent = np.frexp(lengths)
    digits = np.ldexp(fraction, 53).astype(np.int64)
    last_digit = exponent - 54 + np.frexp((digits & -digits).astype(np.float64))[1]
    power = int(last_digit.min())  # all durations are multiples of 2^power
    if power < -1000 or 2.0 * duration.sum() >= np.ldexp(1.0, min(53 + power, 1000)):
        return 0.0
    multiples = np.ldexp(lengths, -power).astype(np.int64)
    return float(np.ldexp(float(np.gcd.reduce(multiples)), power))


def _extremes(dag: Dag) -> tuple[F8, F8]:
    """Return the shortest and the longest duration of each stage's tasks, (G,) s."""
    first = dag.task0[:-1]
    return np.minimum.reduceat(dag.duration, first), np.maximum.reduceat(dag.duration, first)


def _longest_path_s(dag: Dag, shortest: F8, whole: F8) -> float:
    """Return the longest path of tasks, or of tasks and one stage that takes `whole`, s."""
    from sim.bounds.kernels.bounds import whole_stage_paths  # compiled: slow to import

    group = np.zeros(len(dag.order), dtype=np.int64)
    shape: list[NDArray[Any]] = [dag.order, group, dag.edge0, dag.edge_child, dag.edge_kind]
    paths_s = whole_stage_paths(*[read_only(a) for a in (*shape, dag.task0, shortest, whole)])
    return float(max(path_s(dag).max(), paths_s.max()))
