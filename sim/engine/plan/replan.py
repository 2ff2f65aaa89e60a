"""Periodic planning: the options of a scheduler that plans all waiting jobs anew every so often."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sim.base.arrays import F8, I4


@dataclass(frozen=True)
class Depth:
    """Most jobs of each group that a cycle tries, such as of each user.

    Attributes
    ----------
    group : (J,) int32
        Group of each job, -1 for none.
    at_most : int
    """

    group: I4
    at_most: int


@dataclass(frozen=True)
class Replan:
    """A main loop and a planning thread, as Slurm has them (`sim.engine.kernels.rigid.replan`).

    The main loop looks each second whether jobs came or ended, and starts waiting jobs in order
    until one does not fit. The planning thread reserves nodes for all waiting jobs, in order, and
    starts those that may start now. A node is a machine, or a slot of a pool. Times that the
    scheduler computes with are whole seconds of its clock.

    Attributes
    ----------
    plans : bool
        False for the main loop alone.
    interval_s : float
        Time from the end of one plan to the next, s; at least a second.
    cycle_s, job_cycle_s : float
        Time that a plan takes, and more for each job that waits, s: its starts are at its begin.
    cycle_factors : float or (C,) float64
        By which the times of plans are multiplied, in turn.
    resolution_s : int
        Reservations begin and end at multiples of this, rounded down, s.
    window_s : int
        Jobs that would start later than this are not planned, s.
    first_window_s : int
        Expected ends are taken together in windows: the first from one multiple of this to the
        next, and as long, s; at least 1.
    linear_s : int
        Each window grows by this, s; 0 for each twice as long as the one before.
    kill_wait_s : int
        Time by which a job may outlive its limit, s: one that has is expected to end then.
    max_s : float
        Time after which a plan ends, though not all jobs are tried, s.
    yield_s, sleep_s : float
        Time after which a plan sleeps, and for how long, s. Then it goes on with its list of jobs
        and its reservations; starts are at the begin of each part.
    continues : bool
        False: a plan ends in its sleep, if jobs came, started or ended since the part began.
    depth : int
        Number of jobs that a plan tries, and of steps of its table of reservations.
    depths : tuple of Depth
        Further limits of that number, of groups. Jobs over a cap of running jobs do not count,
        those over other caps do.
    starts : int
        Number of jobs that a plan starts; 0 for all.
    reserved : int
        Number of jobs that get a reservation; 0 for all. Others start only if they can now.
    reserved_in : (J,) int32 or None
        Group of each job, of which each has as many reservations, such as its partition.
    array : (J,) int32 or None
        Array of which each job is an element, -1 for none. Once one of its elements neither starts
        nor gets a reservation, a cycle tries no other of them; nor more than may run.
    throttle : (J,) int32 or None
        How many of the array's elements may run at once, 0 for all.
    array_reserved : int
        Number of elements of an array that get a reservation; 0 for all.
    fits_by : (J,) int32 or None
        Resource of the cluster, from 0, by whose free amount the nodes for a job are compared; by
        how many of its tasks fit for -1, None, or one that does not decide what fits.
    main_depth : int
        Number of jobs that the main loop tries after an event.
    main_depths : tuple of Depth
        Most jobs of groups that a pass of the main loop tries.
    main_starts : int
        Number of jobs that a pass starts; 0 for all.
    main_interval_s : int
        Time from one pass of the main loop over all jobs to the next, s.
    main_delay_s : int
        Least time from one pass to one after an event, s.
    completing_s : float or (J,) float64
        Time for which its nodes complete a job that has ended: nothing starts on them, s.
    requeue_s : float
        Time for which no pass and no plan looks at a job that was stopped and waits again, s; at
        one that is suspended when it is preempted they look at once.
    clock_s : float
        Time of the scheduler's clock when the workload begins, s, at least 0.
    poll_phase_s : float
        Time of the first poll of the main loop, s, from 0 to 1.
    main_phase : int
        The poll, from 0, with the first pass over all jobs.
    plan_phase_s : float
        Time of the first plan, s.
    """

    plans: bool = True
    interval_s: float = 30.0
    cycle_s: float = 0.01
    job_cycle_s: float = 0.0
    cycle_factors: float | F8 = 1.0
    resolution_s: int = 60
    window_s: int = 86_400
    first_window_s: int = 30
    linear_s: int = 0
    kill_wait_s: int = 30
    max_s: float = math.inf
    yield_s: float = math.inf
    sleep_s: float = 0.5
    continues: bool = True
    depth: int = 500
    depths: tuple[Depth, ...] = ()
    starts: int = 0
    reserved: int = 0
    reserved_in: I4 | None = None
    array: I4 | None = None
    throttle: I4 | None = None
    array_reserved: int = 0
    fits_by: I4 | None = None
    main_depth: int = 100
    main_depths: tuple[Depth, ...] = ()
    main_starts: int = 0
    main_interval_s: int = 60
    main_delay_s: int = 3
    completing_s: float | F8 = 0.1
    requeue_s: float = 0.0
    clock_s: float = 0.0
    poll_phase_s: float = 0.0
    main_phase: int = 0
    plan_phase_s: float = 0.0
