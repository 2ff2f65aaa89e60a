"""Kinds of machines: on which a job may run, how fast it is there, and what part of them it takes.

A job is counted as a whole, as the gang that it is, or with the tasks of its widest stage. Room is
counted for each kind, not for each machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, I8
from sim.cluster.allowed import allowed_codes
from sim.cluster.exclusive import exclusive_jobs
from sim.cluster.sizing import stage_demands
from sim.cluster.speeds import class_speeds
from sim.engine.plan import World
from sim.engine.plan.columns import ANYWHERE

if TYPE_CHECKING:
    from sim.workload.columns import Columns

SLACK = 1e-9
"""Part of a kind by which sums of shares may exceed it, for their last bits."""
UNLIMITED = 1e15
"""Tasks on a machine that demand nothing of it."""


@dataclass(frozen=True)
class Kinds:
    """Options of each job: each kind of machines by itself, and the last one, all together.

    Attributes
    ----------
    bits : (C,) int64
        Classes of each option, for ``plan.set_jobs(runs_on=...)``.
    takes : (C, K) float64
        1 where an option takes room of a kind.
    speed : (J, C) float64
        Speed of each job, that of its slowest stage; of all together that on the slowest kind. 0
        where it may not run, or finds no room even on empty machines.
    share : (J, C) float64
        Part of the room of an option that the job takes.
    """

    bits: I8
    takes: F8
    speed: F8
    share: F8

    @classmethod
    def before(cls, world: World, resources: tuple[str, ...] = ()) -> Kinds:
        """Return the kinds of a world before its first event.

        Room is that of `resources`, all if empty.
        """
        columns, cluster = world.columns, world.cluster
        classes = np.array(cluster.classes or ("",))
        codes = [np.flatnonzero(classes == name) for name in dict.fromkeys(classes.tolist())]
        first, width = columns.job_stage0[:-1], widths(world)
        allowed = np.bitwise_and.reduceat(allowed_codes(world.whole, cluster), first)
        may_run = (allowed[:, None] >> np.arange(len(classes)) & 1) > 0
        places = _places(world, resources)
        total, usable = _sums(places, codes), _sums(places * may_run, codes)
        speed = np.where(may_run & (places > 0), _speeds(world, len(classes)), np.inf)
        by_kind = np.stack([speed[:, own].min(axis=1) for own in codes], axis=1)
        fits = usable >= np.where(columns.job_min_tasks > 0, width, 1)[:, None]
        by_kind_alone = np.where(fits & np.isfinite(by_kind), by_kind, 0.0)
        together = by_kind.min(axis=1, keepdims=True)
        room = np.column_stack([total, total.sum(axis=1)])
        return cls(
            np.array([*(sum(1 << k for k in own.tolist()) for own in codes), ANYWHERE], np.int64),
            np.vstack([np.eye(len(codes)), np.ones(len(codes))]),
            np.hstack([by_kind_alone, np.where(np.isfinite(together), together, 1.0)]),
            np.minimum(width[:, None] / np.maximum(room, 1.0), 1.0),
        )

    @property
    def worth(self) -> F8:
        """Speed over that of an equal share of all kinds, by their room for the job: (J, C)."""
        room = np.where(self.speed[:, :-1] > 0, 1.0 / self.share[:, :-1], 0.0)
        total = room.sum(axis=1)
        mean = (self.speed[:, :-1] * room).sum(axis=1) / np.where(total > 0, total, 1.0)
        return self.speed / np.where(mean > 0, mean, self.speed[:, -1])[:, None]

    def options(self, rows: I8) -> F8:
        """Tell which options some jobs have, 1 or 0: all together where no kind has room for them.

        Also where there is one kind alone.
        """
        has = (self.speed[rows] > 0).astype(np.float64)
        has[:, -1] = ~(has[:, :-1] > 0).any(axis=1)
        return has


def _sums(by_code: F8, codes: list[I8]) -> F8:
    """Return the sums over the codes of each kind."""
    return np.stack([by_code[:, own].sum(axis=1) for own in codes], axis=1)


def widths(world: World) -> I8:
    """Return the tasks of each job that run together: its gang, or its widest stage; (J,)."""
    columns = world.columns
    widest = np.maximum.reduceat(np.diff(columns.stage_task0), columns.job_stage0[:-1])
    gang = columns.job_min_tasks
    return np.where(gang > 0, gang, widest).astype(np.int64)


def _places(world: World, resources: tuple[str, ...]) -> F8:
    """Return how many tasks of each job find room on all empty machines of each code, (J, C)."""
    columns, cluster = world.columns, world.cluster
    demand = np.maximum.reduceat(stage_demands(columns, cluster), columns.job_stage0[:-1])
    if cluster.unit:
        return np.full((len(demand), 1), cluster.total[0])
    counts = [i for i, name in enumerate(cluster.resources) if not resources or name in resources]
    code = cluster.machine_class if len(cluster.machine_class) else np.zeros(cluster.n_machines)
    shapes, n = np.unique(
        np.column_stack([code, cluster.capacity[:, counts]]), axis=0, return_counts=True
    )
    places = np.zeros((len(demand), max(len(cluster.classes), 1)))
    is_single = columns.job_one_per_node | exclusive_jobs(world.whole, cluster)
    for shape, n_machines in zip(shapes, n.tolist(), strict=True):
        need = demand[:, counts]
        fit = np.floor(shape[1:] / np.where(need > 0, need, 1.0) * (1 + SLACK))
        room = np.where(need > 0, fit, UNLIMITED).min(axis=1, initial=UNLIMITED)
        room = np.where(is_single, np.minimum(room, 1.0), room)
        places[:, int(shape[0])] += n_machines * room
    return places


def _speeds(world: World, n_codes: int) -> F8:
    """Return the least speed of any stage of each job on machines of each code, (J, C)."""
    speed = class_speeds(world.columns, world.cluster)
    if speed is None:
        return np.ones((len(world.columns.job_submit), n_codes))
    slowest: F8 = np.minimum.reduceat(speed, world.columns.job_stage0[:-1])
    return slowest


def lengths(columns: Columns) -> F8:
    """Return the run time of each job at speed 1, its stages one after the other, s: (J,)."""
    total: F8 = np.add.reduceat(columns.stage_max_s, columns.job_stage0[:-1])
    return np.maximum(total, SLACK)
