"""Four weeks of jobs: recurring and ad hoc ones in one order, with all that is said of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.lineage.recorded import BLIND, NONE, POLL
from sim.synth.cosmos.adhoc import AdHoc, draw_ad_hoc
from sim.synth.cosmos.flows import WEEK_S, Flows, draw_flows
from sim.synth.cosmos.organisations import n_organisations, queue_shares
from sim.synth.cosmos.requests import draw_priorities, draw_widths
from sim.synth.cosmos.runs import END_S, Runs, draw_runs
from sim.synth.cosmos.value import Downloads, draw_downloads

ACTIVITY = 0.5
"""Organisations have users and jobs in proportion to this power of their share; not published."""
_HAIR_S = 1e-6


@dataclass(frozen=True, eq=False)
class Month:
    """J jobs in order of submission; the third week begins at 0."""

    shares: dict[str, float]  # part of the cluster that each organisation's queue has
    program: I8  # recurring program it is a run of; -1 for an ad hoc job
    organisation: I8  # who submits it
    user: I8
    submit_s: F8  # when, for how long, and how long after its inputs if it polls
    duration_s: F8
    lag_s: F8
    mode: I8  # ``NONE``, ``BLIND`` or ``POLL``
    priority: F8  # its user's
    tokens: I8  # resources that it holds
    up: I8  # dependencies, by rows of jobs; by ``down``, then ``up``
    down: I8
    hard: Mask  # whether the reader can't do without
    downloads: Downloads  # of its output

    @property
    def finish_s(self) -> F8:
        """When each job ended: none ever waited."""
        return self.submit_s + self.duration_s

    @property
    def recurring(self) -> Mask:
        """Which jobs are runs of recurring programs."""
        return self.program >= 0

    def week(self, begin: float, end: float) -> Mask:
        """Which jobs were submitted from the beginning of one week to that of another."""
        return (self.submit_s >= begin * WEEK_S) & (self.submit_s < end * WEEK_S)


def draw_month(
    scale: float, seed: int, organisations: int | None = None, hard_inputs: int | None = None
) -> Month:
    """Draw the four weeks; see `sim.synth.cosmos.synthesize`."""
    shares = queue_shares(organisations or n_organisations(scale))
    active = np.array(list(shares.values())) ** ACTIVITY
    active /= active.sum()
    flows = draw_flows(scale, active, seed)
    runs = draw_runs(flows, seed)
    single = draw_ad_hoc(flows, runs, scale, active, seed)
    return _joined(shares, flows, runs, single, seed, hard_inputs)


def _joined(
    shares: dict[str, float],
    flows: Flows,
    runs: Runs,
    single: AdHoc,
    seed: int,
    hard_inputs: int | None,
) -> Month:
    n_runs, n_single = len(runs.program), len(single.submit_s)
    flow = flows.flow[runs.program]
    submit = np.concatenate([runs.submit_s, single.submit_s])
    order = np.argsort(submit, kind="stable")
    order = order[submit[order] < END_S]
    row = np.full(len(submit), -1, dtype=np.int64)
    row[order] = np.arange(len(order))
    up = row[np.concatenate([runs.up, single.up])]
    down = row[np.concatenate([runs.down, single.down + n_runs])]
    hard = np.concatenate([runs.hard, np.ones(len(single.up), dtype=bool)])
    kept = np.flatnonzero((up >= 0) & (down >= 0))
    kept = kept[np.lexsort((up[kept], down[kept]))]
    up, down, hard = up[kept], down[kept], hard[kept]
    if hard_inputs is not None:
        hard &= _later_hard(down, hard) < hard_inputs
    program = np.concatenate([runs.program, np.full(n_single, -1)])[order]
    organisation = np.concatenate([flows.organisation[flow], single.organisation])[order]
    duration = np.concatenate([runs.duration_s, single.duration_s])[order]
    clocked = np.concatenate([flows.blind[flow], np.ones(n_single, dtype=bool)])[order]
    mode = np.where(np.bincount(down[hard], minlength=len(order)) == 0, NONE,
                    np.where(clocked, BLIND, POLL))  # fmt: skip
    submit = submit[order]
    lag = np.concatenate([runs.lag_s, np.zeros(n_single)])[order]
    ready = np.full(len(order), -np.inf)
    np.maximum.at(ready, down[hard], (submit + duration)[up[hard]])
    lag = np.where(mode == POLL, np.clip(submit - ready - _HAIR_S, 0.0, lag), 0.0)
    downloads = draw_downloads(flows, program, submit, submit + duration, up, down, seed)
    priority = draw_priorities(flows, program, organisation, up, down, submit, seed)
    tokens = draw_widths(
        flows, program, organisation, submit, duration, np.array(list(shares.values())), seed
    )
    return Month(
        shares, program, organisation, np.concatenate([flows.user[flow], single.user])[order],
        submit, duration, lag, mode, priority, tokens, up, down, hard, downloads,
    )  # fmt: skip


def _later_hard(down: I8, hard: Mask) -> I8:
    """Return how many hard inputs of the same reader come after each, of edges by reader."""
    until = np.cumsum(hard)
    last = np.searchsorted(down, down, "right") - 1
    return until[last] - until
