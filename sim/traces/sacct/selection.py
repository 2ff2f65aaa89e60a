"""Selection of the records that become jobs, and the reasons of all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.base.reading import count_rule
from sim.traces.sacct.clock import Times, read_times
from sim.traces.sacct.columns import Log, States, mask, take, take_rows
from sim.traces.sacct.identity import PREEMPTED, REQUEUED, Runs, copies, find_runs, id_codes
from sim.traces.sacct.ran import reasons
from sim.traces.sacct.resources import Resources, read_resources

NOT_COMPLETED = "not completed"
STEP = "a step of a job"
_READ = (
    "Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Suspended", "AllocCPUS",
    "NCPUS", "ReqCPUS", "NNodes", "AllocNodes", "ReqMem",
)  # fmt: skip
"""Columns that are in `Times` and `Resources`."""


@dataclass(frozen=True, eq=False)
class Selection:
    """N records of allocations, each once, and those of them that become jobs.

    Attributes
    ----------
    log, times, resources, runs
        Of each record: columns as logged, but those that the others have; and what they mean.
    rules : mapping of str to (N,) bool
        Reasons why a record becomes no job; the first counts.
    rows : (M,) int64
        Records that become jobs, ascending.
    has_elapsed : bool
        The log has run times.
    """

    log: Log
    times: Times
    resources: Resources
    runs: Runs
    rules: Mapping[str, Mask]
    rows: I8
    has_elapsed: bool

    @cached_property
    def heads(self) -> I8:
        """First record of each run that becomes a job or a part of one, (K,); ascending."""
        heads: I8 = self.rows[self.runs.first_part[self.rows] == self.rows]
        return heads

    @cached_property
    def head_log(self) -> Log:
        """Columns of the K records `heads`."""
        return take(self.log, self.heads)

    @cached_property
    def first_run(self) -> Times:
        """Times of the first run of the job of each of the K records."""
        return self.times.take(self.runs.origin[self.heads])

    @property
    def is_shared(self) -> Mask:
        """Mark those of the K records whose id another job has too."""
        return self.runs.is_shared[self.runs.origin[self.heads]]

    @property
    def finish_s(self) -> F8:
        """Last end of the run of each of the K records."""
        if len(self.heads) == len(self.rows):
            return self.times.finish_s[self.heads]
        last = np.full(len(self.log["JobID"]), -np.inf)
        np.maximum.at(last, self.runs.first_part[self.rows], self.times.finish_s[self.rows])
        return last[self.heads]

    @property
    def is_own_job(self) -> Mask:
        """Mark the N records but earlier runs, and further parts of a run."""
        is_first: Mask = self.runs.first_part == np.arange(len(self.log["JobID"]))
        return is_first & ~self.runs.is_lost

    def n_jobs(self, first: I8) -> F8:
        """Return the number of jobs that each record stands for, of which `first` become jobs.

        Further parts of a run, elements of an array and earlier runs stand for none of their own.
        """
        n = self.is_own_job.astype(np.float64)
        n[self.heads] = 0.0
        n[first] = 1.0
        return n


def select(log: Log, state: str, dropped: dict[str, int]) -> Selection:
    """Select the records that become jobs; count steps, and rows that repeat others.

    The log gives up its columns, to free their memory.
    """
    steps = is_step(log)
    count_rule(dropped, STEP, steps)
    no_step = np.flatnonzero(~steps)
    log = {name: take_rows(log.pop(name), no_step) for name in [*log]}
    times = read_times(log)
    key = id_codes(log)
    repeats = copies(log, times, key)
    for rule, repeated in repeats.items():
        count_rule(dropped, rule, repeated)
    if any_of(repeats).any():
        once = np.flatnonzero(~any_of(repeats))
        log, times, key = take(log, once), times.take(once), key[once]
    resources = read_resources(log)
    rules = reasons(log, times, resources)
    has_elapsed = bool({"Elapsed", "ElapsedRaw"} & log.keys())
    log = {name: column for name, column in log.items() if name not in _READ}
    runs = find_runs(log, times, key, ~any_of(rules))
    states = States(log)
    is_preempted = states.among("PREEMPTED")
    rules[PREEMPTED] = runs.is_lost & is_preempted
    rules[REQUEUED] = runs.is_lost & ~is_preempted
    if state == "completed":
        done = np.zeros(len(key), dtype=bool)
        np.logical_or.at(done, runs.first_part, states.among("COMPLETED"))
        rules[NOT_COMPLETED] = ~done[runs.first_part]
    rows = np.flatnonzero(~any_of(rules))
    return Selection(log, times, resources, runs, rules, rows, has_elapsed)


def is_step(log: Log) -> Mask:
    """Mark the records of steps, ``17.batch``: the record of their job includes them."""
    return mask(pc.match_substring(log["JobID"], "."))


def any_of(rules: Mapping[str, Mask]) -> Mask:
    """Mark the records that break any rule."""
    return np.asarray(np.logical_or.reduce([*rules.values()]))
