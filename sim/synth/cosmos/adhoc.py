"""Jobs that run once: when they come, who submits them, and what they read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.random import stream
from sim.published import numbers
from sim.synth.cosmos.flows import READ_BY_AD_HOC, Flows, closed, some, team_sizes
from sim.synth.cosmos.runs import BEGIN_S, Finished, Runs, ad_hoc_times, distinct
from sim.workload.columns import ranges

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
    duration = np.clip(MEDIAN_S * np.exp(SPREAD * rng.normal(size=n)), 10.0, LONGEST_S)

    reads = np.flatnonzero(rng.random(n) < READS)
    mean = READ_BY_AD_HOC / (1 - RECURRING) / READS
    count = np.minimum(rng.geometric(1 / (1.14 * mean), len(reads)), 24)
    busy = np.bincount(user[reads], minlength=int(team.sum())).astype(np.float64)
    may = ~np.isin(np.repeat(np.arange(len(active)), team), closed(len(active)))
    crosses = some(busy, may, CROSS * len(reads), rng)[user[reads]]
    down, across = np.repeat(reads, count), np.repeat(crosses, count)
    which = ranges(np.zeros(len(reads), dtype=np.int64), count)
    old = rng.random(len(down)) < OLD
    age = OLD_DAYS * 86_400.0 * np.exp(OLD_SPREAD * rng.normal(size=len(down)))
    by = submit[down] - np.where(old, age, 0.0)
    home = _homes(flows, team, rng)[user[down]]
    program = _programs(flows, organisation[down], home, across, rng)
    done = Finished(runs.program, runs.submit_s + runs.duration_s, len(flows.flow))
    up = done.last(program, by, np.where(across, which // 2, 0))
    own = ~across & (rng.random(len(down)) < OWN)
    up[own] = _own(user, submit, duration, down[own], len(runs.program))
    up, down, _ = distinct(up, down, own)
    return AdHoc(organisation, user, submit, duration, up, down)


def _homes(flows: Flows, team: I8, rng: np.random.Generator) -> I8:
    """Draw the workflow of its organisation that each user looks at; -1 if it has none."""
    owner = np.repeat(np.arange(len(team)), team)
    order = np.argsort(flows.organisation, kind="stable")
    low = np.searchsorted(flows.organisation[order], owner, "left")
    high = np.searchsorted(flows.organisation[order], owner, "right")
    at = low + (rng.random(len(owner)) * (high - low)).astype(np.int64)
    return np.where(high > low, order[np.minimum(at, len(order) - 1)], -1)


def _programs(
    flows: Flows, organisation: I8, home: I8, across: Mask, rng: np.random.Generator
) -> I8:
    """Draw whose output each read is of: shared data, or the user's workflow."""
    shared = rng.permutation(np.flatnonzero(flows.public))
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
