"""Workflows: groups of recurring programs that start together, and the reads between them."""

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
"""Share of templates with each period. Daily is the most common, 11 % are weekly (§3.2, §4.2)."""
RUNS_PER_WEEK = 168.0 / PERIOD_H
WEEK_S = 7 * 86_400.0

MEAN_SIZE, MAX_SIZE = 12, 48
"""Mean and maximum number of programs of a workflow, at least three; not published."""
TRUNK = 0.42
"""Share of a workflow's programs, the first ones, that its others read. The rest ends in downloads,
as components are bottom-heavy (Observation 5)."""
SOURCES = 0.15
"""Share of the trunk's programs, besides the first, that read nothing."""
LINKED = 0.66
"""Share of recurring jobs in workflows that read other organisations' data."""
READERS, PUBLIC = 0.175, 0.05
"""Shares of recurring jobs that read, and that make, data shared between organisations."""
READ_BY_AD_HOC = 0.84
"""Dependencies of ad hoc jobs, per job of any kind."""
CROSS_READS = 0.65
"""Dependencies of recurring jobs on shared data, per job of any kind."""
MAX_CROSS = 12
"""Maximum number of shared data sets that one program reads."""
WINDOWS = np.array([72, 96, 144])
"""Hours whose runs are read at once, by the few programs that read more than the last run: large
windows of few programs hold a third of all dependencies, as in real workflows
(docs/wing_workload.md)."""
FAST = 56.0
"""Minimum runs a week of programs that are read in windows."""
ONE_INPUT = 0.7
"""Share of the reading programs that read one other program of their workflow; of the rest the same
share reads two, and so on. Real programs have one or two inputs in the median."""
NEIGHBOUR = 0.10
"""Share of templates that read another workflow of their own organisation."""
OWN = 0.28
"""Share of templates that read their own last run."""
OPTIONAL, CHANGING = 0.15, 0.10
"""Shares of the reads beyond the first that are not made every time; that begin or end within the
four weeks."""
OWN_READ = (0.5, 0.9)
"""Range of the frequency of reads of a program's own last run, which is never a hard input."""


@dataclass(frozen=True, eq=False)
class Workflows:
    """W workflows of P programs (templates), ordered by position within the workflow."""

    period_h: F8  # hours between runs
    organisation: I8  # owner
    user: I8  # submitter
    blind: Mask  # programs start by the clock, rather than once their inputs exist
    workflow: I8  # workflow of each program
    position: I8  # position of each program in its workflow
    public: Mask  # other organisations read it
    # reads of the same workflow's programs; ``up`` has the smaller position, or is ``down`` itself
    # (its last run)
    up: I8
    down: I8
    optional: F8  # probability that a read is made; 1 for always
    read_begin: F8  # begin and end of a read, as fractions of the four weeks
    read_end: F8
    cross_up: I8  # reads of other workflows' programs: their last ``window`` finished runs
    cross_down: I8
    window: I8

    @property
    def weight(self) -> F8:
        """Runs a week of each program, (P,)."""
        return 168.0 / self.period_h[self.workflow]


def draw_workflows(scale: float, active: F8, seed: int) -> Workflows:
    """Draw the workflows of a cluster of that scale; `active` is organisations' share of them."""
    rng = stream(seed, "synth", "cosmos", "flows")
    runs_a_week = RECURRING * JOBS_A_DAY * 7 * scale
    size, period = _sizes(runs_a_week, rng)
    n_workflows = len(size)
    organisation = _owners(n_workflows, active, rng)
    team = team_sizes(active)
    first_user = np.cumsum(team) - team
    user = first_user[organisation] + (rng.random(n_workflows) * team[organisation]).astype(
        np.int64
    )
    workflow = np.repeat(np.arange(n_workflows), size)
    position = np.arange(len(workflow)) - np.repeat(np.cumsum(size) - size, size)
    order = np.lexsort((workflow, position))
    workflow, position = workflow[order], position[order]
    program_at = np.full((n_workflows, int(size.max())), -1, dtype=np.int64)
    program_at[workflow, position] = np.arange(len(workflow))
    weight = RUNS_PER_WEEK[period][workflow]
    isolated = isolated_organisations(len(active))
    allowed = ~np.isin(organisation, isolated)
    leaf = position >= _trunk_sizes(size)[workflow]
    linked = choose_by_weight(np.bincount(workflow, weight), allowed, LINKED * weight.sum(), rng)
    sharing = linked[workflow] & (weight > 1) & (weight < 0.4 * PUBLIC * weight.sum())
    fast = weight >= FAST
    public = np.zeros(len(workflow), dtype=bool)
    for kind in (fast, ~fast):
        public |= choose_by_weight(weight, sharing & kind, 0.5 * PUBLIC * weight.sum(), rng)
    shares = np.bincount(workflow, public, n_workflows) > 0
    readers = choose_by_weight(
        weight, linked[workflow] & (leaf | ~shares[workflow]) & ~public, READERS * weight.sum(), rng
    )
    neighbours = _neighbour_reads(workflow, organisation, linked, leaf, rng)
    reads = (DEPENDENCIES_PER_JOB - READ_BY_AD_HOC - CROSS_READS) / RECURRING * weight.sum()
    up, down = _inner_reads(workflow, position, size, program_at, weight, rng)
    n_inner = len(neighbours[0]) + int((up != down).sum())
    n_cross = round(n_inner * CROSS_TEMPLATES / (1 - CROSS_TEMPLATES))
    crossing = _cross_organisation_reads(
        readers, public, organisation[workflow], weight, n_cross, rng
    )
    first = _first_reads(up, down)
    optional = np.where(~first & (rng.random(len(up)) < OPTIONAL), rng.random(len(up)), 1.0)
    optional = np.where(up == down, rng.uniform(*OWN_READ, len(up)), optional)
    left = reads - weight[neighbours[1]].sum() - (weight[down] * optional).sum()
    rolled = _rollup_reads(workflow, organisation, linked, leaf, weight, left, rng)
    cross_up, cross_down, window = (
        np.concatenate(parts) for parts in zip(crossing, neighbours, rolled, strict=True)
    )
    changes = np.where(first, 1.0, rng.random(len(up))) < CHANGING
    change_time, begins_late = rng.random(len(up)), rng.random(len(up)) < 0.5
    has_inputs = np.zeros(len(workflow), dtype=bool)
    has_inputs[down] = has_inputs[cross_down] = True
    blind = _choose_blind(workflow, has_inputs, weight, n_workflows, rng)
    read_begin = np.where(changes & begins_late, change_time, 0.0)
    read_end = np.where(changes & ~begins_late, change_time, 1.0)
    return Workflows(
        PERIOD_H[period], organisation, user, blind, workflow, position, public, up, down, optional,
        read_begin, read_end, cross_up, cross_down, window,
    )  # fmt: skip


def _sizes(runs_a_week: float, rng: Stream) -> tuple[I8, I8]:
    """Draw workflows' numbers of programs and periods, until they have enough runs a week."""
    mean_runs = float((PERIOD_SHARE * RUNS_PER_WEEK).sum())
    programs = runs_a_week / mean_runs
    sizes: list[I8] = []
    periods: list[I8] = []
    for number, share in enumerate(PERIOD_SHARE):
        n_left = max(3, round(programs * share))
        size = np.minimum(
            3 + rng.geometric(1 / (MEAN_SIZE - 2.0), size=n_left // 4 + 2) - 1, MAX_SIZE
        )
        end = int(np.searchsorted(np.cumsum(size), n_left))
        size = size[: end + 1]
        size[-1] -= size.sum() - n_left
        if size[-1] < 3 and len(size) > 1:
            size = np.append(size[:-2], size[-2] + size[-1])
        sizes.append(size)
        periods.append(np.full(len(size), number))
    size, period = np.concatenate(sizes), np.concatenate(periods)
    shuffled = rng.permutation(len(size))
    return size[shuffled].astype(np.int64), period[shuffled]


def _owners(n: int, active: F8, rng: Stream) -> I8:
    """Assign one workflow to each organisation, if there are enough, and the others by share."""
    owner: I8 = rng.choice(len(active), size=n, p=active)
    k = min(n, len(active))
    owner[:k] = np.arange(k)
    return owner


def team_sizes(active: F8) -> I8:
    """Return the number of users of each organisation, on average as many as published."""
    users = USERS * len(active) / ORGANISATIONS
    return np.maximum(1, np.rint(users * active)).astype(np.int64)


def isolated_organisations(n: int) -> I8:
    """Return the organisations that depend on no other one: 5 %, not the largest."""
    n_closed = int(0.05 * n + 0.5)
    return n - 1 - 3 * np.arange(n_closed)


def choose_by_weight(weight: F8 | I8, allowed: Mask, total: float, rng: Stream) -> Mask:
    """Choose random items with the total weight `total`; skip items that would exceed it."""
    chosen = np.zeros(len(weight), dtype=bool)
    weight_left, skipped = total, []
    for row in rng.permutation(np.flatnonzero(allowed)).tolist():
        if weight[row] <= weight_left:
            chosen[row] = True
            weight_left -= float(weight[row])
        else:
            skipped.append(row)
    if skipped:
        nearest = skipped[int(np.argmin(weight[skipped]))]
        chosen[nearest] = weight[nearest] < 2 * weight_left
    return chosen


def _cross_organisation_reads(
    readers: Mask, public: Mask, owner: I8, weight: F8, n_reads: int, rng: Stream
) -> tuple[I8, I8, I8]:
    """Draw reads of other organisations' data sets, some of which are read far more often.

    There are `n_reads` reads, with windows such that the dependencies add up to `CROSS_READS`.
    """
    down = np.repeat(np.flatnonzero(readers), MAX_CROSS)
    shared = rank_shared(public, weight, rng)
    popularity = 1.0 / (np.arange(len(shared)) + 3)
    up = rng.choice(shared, size=len(down), p=popularity / popularity.sum())
    up, down = _distinct_reads(up, down, owner[up] != owner[down])
    first = np.unique(down, return_index=True)[1]
    order = np.concatenate([first, rng.permutation(np.setdiff1d(np.arange(len(down)), first))])
    selected = order[: max(n_reads, len(first))]
    up, down = up[selected], down[selected]
    left = CROSS_READS / RECURRING * weight.sum() - float(weight[down].sum())
    return up, down, _windows(up, down, weight, left, rng)


def rank_shared(public: Mask, weight: F8, rng: Stream) -> I8:
    """Rank the programs whose data are shared by popularity: those with frequent runs first."""
    shared = rng.permutation(np.flatnonzero(public))
    return shared[np.argsort(weight[shared] < FAST, kind="stable")]


def _windows(up: I8, down: I8, weight: F8, left: float, rng: Stream) -> I8:
    """Draw each read's number of last runs: a few get large windows, until `left` is used up."""
    window = np.ones(len(down), dtype=np.int64)
    n_runs = (rng.choice(WINDOWS, size=len(down)) / 168.0 * weight[up]).astype(np.int64)
    allowed = (weight[up] >= FAST) & (weight[down] < FAST)
    for row in rng.permutation(np.flatnonzero(allowed)).tolist():
        extra_runs = float(weight[down[row]] * (n_runs[row] - 1))
        if extra_runs <= left:
            window[row] = n_runs[row]
            left -= extra_runs
    return window


def _rollup_reads(
    workflow: I8, organisation: I8, linked: Mask, leaf: Mask, weight: F8, left: float, rng: Stream
) -> tuple[I8, I8, I8]:
    """Draw reads of all frequent runs of some days of an organisation; `left` runs a week."""
    down = np.repeat(np.flatnonzero(linked[workflow] & leaf & (weight < FAST)), 3)
    fast = np.flatnonzero(linked[workflow] & (weight >= FAST))
    up = _draw_same_owner(down, fast, organisation[workflow], rng)
    up, down = _distinct_reads(up, down, up >= 0)
    window = _windows(up, down, weight, left, rng)
    has_window = window > 1
    return up[has_window], down[has_window], window[has_window]


def _neighbour_reads(
    workflow: I8, organisation: I8, linked: Mask, leaf: Mask, rng: Stream
) -> tuple[I8, I8, I8]:
    """Draw reads between an organisation's workflows, among those that are linked to others."""
    owner = organisation[workflow]
    down = np.flatnonzero(linked[workflow] & leaf & (rng.random(len(workflow)) < NEIGHBOUR))
    up = _draw_same_owner(down, np.flatnonzero(linked[workflow]), owner, rng)
    up, down = _distinct_reads(up, down, workflow[up] != workflow[down])
    return up, down, np.ones(len(down), dtype=np.int64)


def _draw_same_owner(reader: I8, candidates: I8, owner: I8, rng: Stream) -> I8:
    """Draw a program of `candidates` with the same owner for each reader; -1 if there is none."""
    by_owner = candidates[np.argsort(owner[candidates], kind="stable")]
    low = np.searchsorted(owner[by_owner], owner[reader], "left")
    high = np.searchsorted(owner[by_owner], owner[reader], "right")
    pick = low + (rng.random(len(reader)) * (high - low)).astype(np.int64)
    return np.where(high > low, by_owner[np.minimum(pick, len(by_owner) - 1)], -1)


def _distinct_reads(up: I8, down: I8, valid: Mask) -> tuple[I8, I8]:
    up, down = up[valid], down[valid]
    unique = np.unique(up * (down.max(initial=0) + 1) + down, return_index=True)[1]
    return up[unique], down[unique]


def _trunk_sizes(size: I8) -> I8:
    """Return the number of programs of each workflow that its others read."""
    n_trunk: I8 = np.ceil(TRUNK * size).astype(np.int64)
    return n_trunk


def _inner_reads(
    workflow: I8, position: I8, size: I8, program_at: I8, weight: F8, rng: Stream
) -> tuple[I8, I8]:
    """Draw reads within workflows: at most one per program, own last runs, and a few more."""
    trunk = _trunk_sizes(size)[workflow]
    source = (position == 0) | ((position < trunk) & (rng.random(len(workflow)) < SOURCES))
    later = np.flatnonzero(~source)
    distance = np.minimum(rng.geometric(0.75, len(later)), position[later])
    leaf = position[later] >= trunk[later]
    trunk_position = (rng.random(len(later)) * np.minimum(trunk[later], position[later])).astype(
        np.int64
    )
    first = program_at[workflow[later], np.where(leaf, trunk_position, position[later] - distance)]
    own_readers = np.flatnonzero((~source | (weight <= 14)) & (rng.random(len(workflow)) < OWN))
    ups, downs = [], []
    for step in range(1, program_at.shape[1]):
        child = np.flatnonzero(~source & (position >= step) & (position - step < trunk))
        ups.append(program_at[workflow[child], position[child] - step])
        downs.append(child)
    up, down = np.concatenate(ups), np.concatenate(downs)
    is_new = ~np.isin(up * len(workflow) + down, first * len(workflow) + later)
    up, down = up[is_new], down[is_new]
    order = np.lexsort((rng.random(len(up)), down))
    rank = np.arange(len(order)) - np.searchsorted(down[order], down[order], "left")
    chosen = order[rank < (rng.geometric(ONE_INPUT, len(workflow)) - 1)[down[order]]]
    up = np.concatenate([first, own_readers, up[chosen]])
    down = np.concatenate([later, own_readers, down[chosen]])
    order = np.lexsort((up, down))
    return up[order], down[order]


def _first_reads(up: I8, down: I8) -> Mask:
    """Mask the reader's last read that is not of itself, for reads ordered by reader."""
    is_other = up != down
    is_first = np.zeros(len(up), dtype=bool)
    rows = np.flatnonzero(is_other)
    last = np.append(down[rows][1:] != down[rows][:-1], True) if len(rows) else rows
    is_first[rows[np.asarray(last, dtype=bool)]] = True
    return is_first


def _choose_blind(
    workflow: I8, has_inputs: Mask, weight: F8, n_workflows: int, rng: Stream
) -> Mask:
    """Choose workflows that start by the clock, so that `BLIND` of all recurring jobs are blind."""
    runs = np.bincount(workflow, weight * has_inputs, n_workflows)
    return choose_by_weight(runs, np.ones(n_workflows, dtype=bool), BLIND * weight.sum(), rng)
