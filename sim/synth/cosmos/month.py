"""Four weeks of jobs: recurring and ad hoc ones in one order, with all that is said of them.

Ad hoc jobs run once: when they come, who submits them, and what they read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.random import Stream, stream
from sim.lineage.worth import BLIND, NONE, POLL
from sim.published import numbers
from sim.synth.cosmos.requests import (
    Downloads,
    draw_downloads,
    draw_priorities,
    draw_widths,
    like_their_users,
)
from sim.synth.cosmos.runs import BEGIN_S, END_S, Finished, Runs, ad_hoc_times, distinct, draw_runs
from sim.synth.cosmos.workflows import (
    FAST,
    READ_BY_AD_HOC,
    WEEK_S,
    WINDOWS,
    Flows,
    by_fame,
    closed,
    draw_flows,
    some,
    team_sizes,
)

JOBS_A_DAY = numbers("wing")["cosmos"]["jobs_a_day"]
RECURRING = numbers("wing")["recurring"]["jobs"]

READS = 0.63
"""Ad hoc jobs that read what another job made."""
CROSS = 0.60
"""Of those, the ones by users who read data shared by other organisations, and nothing else."""
OWN = 0.15
"""Of reads within the organisation, those of what the same user's earlier ad hoc jobs made."""
OLD, OLD_DAYS, OLD_SPREAD = 0.5, 1.2, 1.3
"""Reads of older data, how old they are in the median, and the spread."""
MEDIAN_S, SPREAD, LONGEST_S = 600.0, 1.8, 8 * 3600.0
"""Of run times."""
ONE = 0.65
"""Ad hoc jobs that read one program, of those that read any; of the rest as many read two, and so
on. Beyond these, a few read a large window of one."""


@dataclass(frozen=True, eq=False)
class AdHoc:
    """A jobs that run once."""

    organisation: I8  # who submits it
    user: I8
    submit_s: F8  # ascending, from the beginning of the third week; and for how long
    duration_s: F8
    up: I8  # rows of runs (those of ad hoc jobs come after the recurring ones), and rows here
    down: I8


def draw_ad_hoc(flows: Flows, runs: Runs, scale: float, active: F8, seed: int) -> AdHoc:
    """Draw the ad hoc jobs of four weeks."""
    rng = stream(seed, "synth", "cosmos", "ad hoc")
    n = round((1 - RECURRING) * JOBS_A_DAY * 28 * scale)
    submit = BEGIN_S + ad_hoc_times(n, 4, rng)
    organisation = rng.choice(len(active), size=n, p=active)
    team = team_sizes(active)
    rank = np.minimum((team[organisation] * rng.random(n) ** 2), team[organisation] - 1)
    user = (np.cumsum(team) - team)[organisation] + rank.astype(np.int64)
    size = like_their_users(user, rng)
    duration = np.clip(MEDIAN_S * maths.exp(SPREAD * size), 10.0, LONGEST_S)

    reads = np.flatnonzero(rng.random(n) < READS)
    count = np.minimum(rng.geometric(ONE, len(reads)), 24)
    busy = np.bincount(user[reads], minlength=int(team.sum())).astype(np.float64)
    may = ~np.isin(np.repeat(np.arange(len(active)), team), closed(len(active)))
    crosses = some(busy, may, CROSS * len(reads), rng)[user[reads]]
    down, across = np.repeat(reads, count), np.repeat(crosses, count)
    number = ranges(np.zeros(len(reads), dtype=np.int64), count)
    old = rng.random(len(down)) < OLD
    age = OLD_DAYS * 86_400.0 * maths.exp(OLD_SPREAD * rng.normal(size=len(down)))
    by = submit[down] - np.where(old, age, 0.0)
    home = _homes(flows, team, rng)[user[down]]
    program = _programs(flows, organisation[down], home, across, rng)
    more = READ_BY_AD_HOC * n / (1 - RECURRING) - len(down)
    window = _large_windows(flows, program, across & (number == 0), more, rng)
    back = ranges(np.zeros(len(down), dtype=np.int64), window)
    down, across, by, program = (np.repeat(x, window) for x in (down, across, by, program))
    done = Finished(runs.program, runs.submit_s + runs.duration_s, len(flows.flow))
    up = done.last(program, by, back)
    own = ~across & (rng.random(len(down)) < OWN)
    up[own] = _own(user, submit, duration, down[own], len(runs.program))
    up, down, _ = distinct(up, down, own)
    return AdHoc(organisation, user, submit, duration, up, down)


def _large_windows(flows: Flows, program: I8, may: Mask, left: float, rng: Stream) -> I8:
    """Draw how many of the last runs each read is of: one, but of few that `may`; `left` more."""
    window = np.ones(len(program), dtype=np.int64)
    weight = flows.weight[program]
    rows = rng.permutation(np.flatnonzero(may & (weight >= FAST)))
    wish = (rng.choice(WINDOWS, size=len(rows)) / 168.0 * weight[rows]).astype(np.int64)
    kept = np.cumsum(wish - 1) <= left
    window[rows[kept]] = wish[kept]
    return window


def _homes(flows: Flows, team: I8, rng: Stream) -> I8:
    """Draw the workflow of its organisation that each user looks at; -1 if it has none."""
    owner = np.repeat(np.arange(len(team)), team)
    order = np.argsort(flows.organisation, kind="stable")
    low = np.searchsorted(flows.organisation[order], owner, "left")
    high = np.searchsorted(flows.organisation[order], owner, "right")
    at = low + (rng.random(len(owner)) * (high - low)).astype(np.int64)
    return np.where(high > low, order[np.minimum(at, len(order) - 1)], -1)


def _programs(flows: Flows, organisation: I8, home: I8, across: Mask, rng: Stream) -> I8:
    """Draw whose output each read is of: shared data, or the user's workflow."""
    shared = by_fame(flows.public, flows.weight, rng)
    fame = 1.0 / (np.arange(len(shared)) + 3)
    owner = flows.organisation[flows.flow[shared]]
    drawn = rng.choice(len(shared), size=(4, len(organisation)), p=fame / fame.sum())
    cross = drawn[0]
    for again in drawn[1:]:
        cross = np.where(owner[cross] == organisation, again, cross)
    size = np.bincount(flows.flow)
    by_flow = np.argsort(flows.flow, kind="stable")
    at = (np.cumsum(size) - size)[home] + (rng.random(len(home)) * size[home]).astype(np.int64)
    out: I8 = np.where(across, shared[cross], by_flow[at])
    return out


def _own(user: I8, submit_s: F8, duration_s: F8, down: I8, first: int) -> I8:
    """Return the same user's last ad hoc job that had ended; -1 if there was none."""
    done = Finished(user, submit_s + duration_s, int(user.max()) + 1)
    row = done.last(user[down], submit_s[down], np.zeros(len(down), dtype=np.int64))
    return np.where(row >= 0, row + first, -1)


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
    active = maths.power(np.array(list(shares.values())), ACTIVITY)
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
    user = np.concatenate([flows.user[flow], single.user])[order]
    tokens = draw_widths(
        flows, program, organisation, user, submit, duration, np.array(list(shares.values())), seed
    )
    return Month(
        shares, program, organisation, user, submit, duration, lag, mode, priority, tokens, up,
        down, hard, downloads,
    )  # fmt: skip


def _later_hard(down: I8, hard: Mask) -> I8:
    """Return how many hard inputs of the same reader come after each, of edges by reader."""
    until = np.cumsum(hard)
    last = np.searchsorted(down, down, "right") - 1
    return until[last] - until


def n_organisations(scale: float) -> int:
    """Return how many organisations there are at a scale: 150 at full scale, 5 at least.

    They shrink like the jobs, so that a queue has as many jobs at once at every scale.
    """
    at_full_scale: int = numbers("wing")["cosmos"]["organisations"]
    return max(5, round(at_full_scale * scale))


def queue_shares(organisations: int) -> dict[str, float]:
    """Return the hard share of each organisation's queue, falling like 1 / (rank + 2).

    How uneven they are is not published. The largest of 150 has 8 % and the smallest 0.16 %.
    """
    weight = [1.0 / (rank + 3) for rank in range(organisations)]
    return {f"org-{letters(rank)}": w / sum(weight) for rank, w in enumerate(weight)}


def letters(number: int, width: int = 3) -> str:
    """Return a number as letters, as names with digits are taken for dated ones."""
    text = ""
    for _ in range(width):
        number, digit = divmod(number, 26)
        text = chr(97 + digit) + text
    return text
