"""Workflows: groups of recurring programs that start together, and what reads what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.random import Stream, stream
from sim.published import numbers

_PAPER = numbers("wing")
JOBS_A_DAY: int = _PAPER["cosmos"]["jobs_a_day"]
DEPENDENCIES_PER_JOB: float = _PAPER["cosmos"]["dependencies_per_job"]
USERS: int = _PAPER["cosmos"]["users"]
ORGANISATIONS: int = _PAPER["cosmos"]["organisations"]
RECURRING: float = _PAPER["recurring"]["jobs"]
BLIND: float = _PAPER["coordination"]["blind"]
CROSS_TEMPLATES: float = _PAPER["organisations"]["template_dependencies"]

PERIOD_H = np.array([1.0, 3.0, 6.0, 12.0, 24.0, 168.0])
PERIOD_SHARE = np.array([0.02, 0.03, 0.06, 0.08, 0.70, 0.11])
"""Of templates. Daily ones are the most common, and 11 % come once a week (§3.2, §4.2)."""
RUNS_A_WEEK = 168.0 / PERIOD_H
WEEK_S = 7 * 86_400.0

MEAN_SIZE, MOST = 12, 48
"""Programs of a workflow, three at least; not published."""
TRUNK = 0.42
"""Programs of a workflow that others of it read: the first ones. The rest ends in downloads, as
components are bottom-heavy (Observation 5)."""
SOURCES = 0.15
"""Programs of the trunk, beside the first, that read nothing."""
LINKED = 0.66
"""Recurring jobs of workflows that other organisations' data enter."""
READERS, PUBLIC = 0.175, 0.05
"""Of recurring jobs: those that read, and those that make, data shared between organisations."""
READ_BY_AD_HOC = 0.84
"""Dependencies of ad hoc jobs, a job of any kind."""
CROSS_READS = 0.65
"""Dependencies of recurring jobs on shared data, a job of any kind."""
MOST_CROSS = 12
"""Shared data sets that one program reads, at most."""
WINDOWS = np.array([72, 96, 144])
"""Hours whose runs are read at once, by the few that read more than the last run: large windows of
few programs hold a third of all dependencies, as in real workflows (docs/wing_workload.md)."""
FAST = 56.0
"""Runs a week, at least, of what is read in windows."""
MORE = 0.7
"""Programs that read one other of their workflow, of those that read any; of the rest as many read
two, and so on. Real programs have one or two inputs in the median."""
NEIGHBOUR = 0.10
"""Templates that read another workflow of their own organisation."""
OWN = 0.28
"""Templates that read their own last run."""
OPTIONAL, CHANGING = 0.15, 0.10
"""Reads beyond the first one that are not made every time; that begin or end within four weeks."""
OWN_READ = (0.5, 0.9)
"""How often a program that reads its own last run does: it can do without."""


@dataclass(frozen=True, eq=False)
class Flows:
    """W workflows of P programs (templates), ordered by place within the workflow."""

    period_h: F8  # hours between runs
    organisation: I8  # who owns it; by falling size
    user: I8  # who submits it
    blind: Mask  # programs start by the clock, rather than once their inputs are there
    flow: I8  # workflow of each program, and its place in it
    place: I8
    public: Mask  # other organisations read it
    # reads of the same workflow's programs; ``up`` has the smaller place, or is ``down`` itself
    # (its last run)
    up: I8
    down: I8
    optional: F8  # how often a read is made; 1 for always
    born: F8  # when reads are made, as fractions of the four weeks
    dies: F8
    from_: I8  # reads of other workflows' programs: the last ``window`` runs that are there
    into: I8
    window: I8

    @property
    def weight(self) -> F8:
        """Runs a week of each program, (P,)."""
        return 168.0 / self.period_h[self.flow]


def draw_flows(scale: float, active: F8, seed: int) -> Flows:
    """Draw the workflows of a cluster of that scale, with organisations that active."""
    rng = stream(seed, "synth", "cosmos", "flows")
    wanted = RECURRING * JOBS_A_DAY * 7 * scale
    size, period = _sizes(wanted, rng)
    n_flows = len(size)
    organisation = _owners(n_flows, active, rng)
    team = team_sizes(active)
    first_user = np.cumsum(team) - team
    user = first_user[organisation] + (rng.random(n_flows) * team[organisation]).astype(np.int64)
    flow = np.repeat(np.arange(n_flows), size)
    place = np.arange(len(flow)) - np.repeat(np.cumsum(size) - size, size)
    order = np.lexsort((flow, place))
    flow, place = flow[order], place[order]
    at = np.full((n_flows, int(size.max())), -1, dtype=np.int64)
    at[flow, place] = np.arange(len(flow))
    weight = RUNS_A_WEEK[period][flow]
    alone = closed(len(active))
    may_link = ~np.isin(organisation, alone)
    leaf = place >= _trunk(size)[flow]
    linked = some(np.bincount(flow, weight), may_link, LINKED * weight.sum(), rng)
    sharing = linked[flow] & (weight > 1) & (weight < 0.4 * PUBLIC * weight.sum())
    fast = weight >= FAST
    public = np.zeros(len(flow), dtype=bool)
    for kind in (fast, ~fast):
        public |= some(weight, sharing & kind, 0.5 * PUBLIC * weight.sum(), rng)
    shares = np.bincount(flow, public, n_flows) > 0
    readers = some(
        weight, linked[flow] & (leaf | ~shares[flow]) & ~public, READERS * weight.sum(), rng
    )
    near = _neighbours(flow, organisation, linked, leaf, rng)
    reads = (DEPENDENCIES_PER_JOB - READ_BY_AD_HOC - CROSS_READS) / RECURRING * weight.sum()
    up, down = _within(flow, place, size, at, weight, rng)
    others = len(near[0]) + int((up != down).sum())
    n_cross = round(others * CROSS_TEMPLATES / (1 - CROSS_TEMPLATES))
    crossing = _crossing(readers, public, organisation[flow], weight, n_cross, rng)
    first = _is_first(up, down)
    optional = np.where(~first & (rng.random(len(up)) < OPTIONAL), rng.random(len(up)), 1.0)
    optional = np.where(up == down, rng.uniform(*OWN_READ, len(up)), optional)
    left = reads - weight[near[1]].sum() - (weight[down] * optional).sum()
    rolled = _rolled_up(flow, organisation, linked, leaf, weight, left, rng)
    from_, into, window = (
        np.concatenate(parts) for parts in zip(crossing, near, rolled, strict=True)
    )
    changes = np.where(first, 1.0, rng.random(len(up))) < CHANGING
    when, begins = rng.random(len(up)), rng.random(len(up)) < 0.5
    fed = np.zeros(len(flow), dtype=bool)
    fed[down] = fed[into] = True
    blind = _blind(flow, fed, weight, n_flows, rng)
    return Flows(
        PERIOD_H[period], organisation, user, blind, flow, place, public, up, down, optional,
        np.where(changes & begins, when, 0.0), np.where(changes & ~begins, when, 1.0), from_, into,
        window,
    )  # fmt: skip


def _sizes(wanted: float, rng: Stream) -> tuple[I8, I8]:
    """Draw how many programs workflows have, and their periods, until they run often enough."""
    a_week = float((PERIOD_SHARE * RUNS_A_WEEK).sum())
    programs = wanted / a_week
    sizes: list[I8] = []
    periods: list[I8] = []
    for number, part in enumerate(PERIOD_SHARE):
        left = max(3, round(programs * part))
        own = np.minimum(3 + rng.geometric(1 / (MEAN_SIZE - 2.0), size=left // 4 + 2) - 1, MOST)
        end = int(np.searchsorted(np.cumsum(own), left))
        own = own[: end + 1]
        own[-1] -= own.sum() - left
        if own[-1] < 3 and len(own) > 1:
            own = np.append(own[:-2], own[-2] + own[-1])
        sizes.append(own)
        periods.append(np.full(len(own), number))
    size, period = np.concatenate(sizes), np.concatenate(periods)
    shuffled = rng.permutation(len(size))
    return size[shuffled].astype(np.int64), period[shuffled]


def _owners(n: int, active: F8, rng: Stream) -> I8:
    """Give each organisation one workflow where there are enough, and the rest by share."""
    owner: I8 = rng.choice(len(active), size=n, p=active)
    k = min(n, len(active))
    owner[:k] = np.arange(k)
    return owner


def team_sizes(active: F8) -> I8:
    """Return how many users each organisation has: about as many as published a queue."""
    users = USERS * len(active) / ORGANISATIONS
    return np.maximum(1, np.rint(users * active)).astype(np.int64)


def closed(n: int) -> I8:
    """Return the organisations that depend on no other one: 5 %, none of the largest."""
    n_closed = int(0.05 * n + 0.5)
    return n - 1 - 3 * np.arange(n_closed)


def some(weight: F8 | I8, allowed: Mask, total: float, rng: Stream) -> Mask:
    """Choose at random until the chosen weigh `total`, passing over what would be too much."""
    chosen = np.zeros(len(weight), dtype=bool)
    left, passed = total, []
    for row in rng.permutation(np.flatnonzero(allowed)).tolist():
        if weight[row] <= left:
            chosen[row] = True
            left -= float(weight[row])
        else:
            passed.append(row)
    if passed:
        nearest = passed[int(np.argmin(weight[passed]))]
        chosen[nearest] = weight[nearest] < 2 * left
    return chosen


def _crossing(
    readers: Mask, public: Mask, owner: I8, weight: F8, wanted: int, rng: Stream
) -> tuple[I8, I8, I8]:
    """Draw which data sets of other organisations are read, some far more often than others.

    As many as `wanted`, and so many of their last runs at once that `CROSS_READS` come out.
    """
    into = np.repeat(np.flatnonzero(readers), MOST_CROSS)
    shared = by_fame(public, weight, rng)
    fame = 1.0 / (np.arange(len(shared)) + 3)
    from_ = rng.choice(shared, size=len(into), p=fame / fame.sum())
    from_, into = _distinct(from_, into, owner[from_] != owner[into])
    first = np.unique(into, return_index=True)[1]
    order = np.concatenate([first, rng.permutation(np.setdiff1d(np.arange(len(into)), first))])
    kept = order[: max(wanted, len(first))]
    from_, into = from_[kept], into[kept]
    left = CROSS_READS / RECURRING * weight.sum() - float(weight[into].sum())
    return from_, into, _windows(from_, into, weight, left, rng)


def by_fame(public: Mask, weight: F8, rng: Stream) -> I8:
    """Return the programs whose data are shared, the most read first: what is made often."""
    shared = rng.permutation(np.flatnonzero(public))
    return shared[np.argsort(weight[shared] < FAST, kind="stable")]


def _windows(from_: I8, into: I8, weight: F8, left: float, rng: Stream) -> I8:
    """Draw how many of the last runs each read is of: few of many, so that `left` more come out."""
    window = np.ones(len(into), dtype=np.int64)
    wish = (rng.choice(WINDOWS, size=len(into)) / 168.0 * weight[from_]).astype(np.int64)
    may = (weight[from_] >= FAST) & (weight[into] < FAST)
    for row in rng.permutation(np.flatnonzero(may)).tolist():
        more = float(weight[into[row]] * (wish[row] - 1))
        if more <= left:
            window[row] = wish[row]
            left -= more
    return window


def _rolled_up(
    flow: I8, organisation: I8, linked: Mask, leaf: Mask, weight: F8, left: float, rng: Stream
) -> tuple[I8, I8, I8]:
    """Draw who reads all of an organisation's frequent runs of some days; `left` runs a week."""
    into = np.repeat(np.flatnonzero(linked[flow] & leaf & (weight < FAST)), 3)
    fast = np.flatnonzero(linked[flow] & (weight >= FAST))
    from_ = _of_same_owner(into, fast, organisation[flow], rng)
    from_, into = _distinct(from_, into, from_ >= 0)
    window = _windows(from_, into, weight, left, rng)
    kept = window > 1
    return from_[kept], into[kept], window[kept]


def _neighbours(
    flow: I8, organisation: I8, linked: Mask, leaf: Mask, rng: Stream
) -> tuple[I8, I8, I8]:
    """Draw reads between an organisation's workflows, of those that are linked anyway."""
    into = np.flatnonzero(linked[flow] & leaf & (rng.random(len(flow)) < NEIGHBOUR))
    from_ = _of_same_owner(into, np.flatnonzero(linked[flow]), organisation[flow], rng)
    from_, into = _distinct(from_, into, flow[from_] != flow[into])
    return from_, into, np.ones(len(into), dtype=np.int64)


def _of_same_owner(into: I8, among: I8, owner: I8, rng: Stream) -> I8:
    """Draw one of the programs `among` for each of `into`, of the same owner; -1 for none."""
    by_owner = among[np.argsort(owner[among], kind="stable")]
    low = np.searchsorted(owner[by_owner], owner[into], "left")
    high = np.searchsorted(owner[by_owner], owner[into], "right")
    at = low + (rng.random(len(into)) * (high - low)).astype(np.int64)
    return np.where(high > low, by_owner[np.minimum(at, len(by_owner) - 1)], -1)


def _distinct(from_: I8, into: I8, ok: Mask) -> tuple[I8, I8]:
    from_, into = from_[ok], into[ok]
    keep = np.unique(from_ * (into.max(initial=0) + 1) + into, return_index=True)[1]
    return from_[keep], into[keep]


def _trunk(size: I8) -> I8:
    """Return how many programs of workflows others of it read."""
    out: I8 = np.ceil(TRUNK * size).astype(np.int64)
    return out


def _within(flow: I8, place: I8, size: I8, at: I8, weight: F8, rng: Stream) -> tuple[I8, I8]:
    """Draw reads within workflows: one or none each, last runs, and of some programs more."""
    trunk = _trunk(size)[flow]
    source = (place == 0) | ((place < trunk) & (rng.random(len(flow)) < SOURCES))
    later = np.flatnonzero(~source)
    near = np.minimum(rng.geometric(0.75, len(later)), place[later])
    leaf = place[later] >= trunk[later]
    any_ = (rng.random(len(later)) * np.minimum(trunk[later], place[later])).astype(np.int64)
    first = at[flow[later], np.where(leaf, any_, place[later] - near)]
    itself = np.flatnonzero((~source | (weight <= 14)) & (rng.random(len(flow)) < OWN))
    ups, downs = [], []
    for step in range(1, at.shape[1]):
        child = np.flatnonzero(~source & (place >= step) & (place - step < trunk))
        ups.append(at[flow[child], place[child] - step])
        downs.append(child)
    up, down = np.concatenate(ups), np.concatenate(downs)
    fresh = ~np.isin(up * len(flow) + down, first * len(flow) + later)
    up, down = up[fresh], down[fresh]
    order = np.lexsort((rng.random(len(up)), down))
    turn = np.arange(len(order)) - np.searchsorted(down[order], down[order], "left")
    chosen = order[turn < (rng.geometric(MORE, len(flow)) - 1)[down[order]]]
    up = np.concatenate([first, itself, up[chosen]])
    down = np.concatenate([later, itself, down[chosen]])
    order = np.lexsort((up, down))
    return up[order], down[order]


def _is_first(up: I8, down: I8) -> Mask:
    """Tell, of reads ordered by reader, the last one before the reader itself."""
    other = up != down
    is_first = np.zeros(len(up), dtype=bool)
    rows = np.flatnonzero(other)
    last = np.append(down[rows][1:] != down[rows][:-1], True) if len(rows) else rows
    is_first[rows[np.asarray(last, dtype=bool)]] = True
    return is_first


def _blind(flow: I8, fed: Mask, weight: F8, n_flows: int, rng: Stream) -> Mask:
    """Choose workflows that go by the clock, so that `BLIND` of all recurring jobs are blind."""
    own = np.bincount(flow, weight * fed, n_flows)
    return some(own, np.ones(n_flows, dtype=bool), BLIND * weight.sum(), rng)
