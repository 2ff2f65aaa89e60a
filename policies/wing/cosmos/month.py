"""Four weeks of jobs: recurring and ad hoc ones with all their columns, in order of submission.

Ad hoc jobs run once; their arrivals, users and reads are drawn here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.wing.cosmos.priorities import draw_priorities
from policies.wing.cosmos.requests import (
    WIDEST,
    Downloads,
    draw_downloads,
    draw_user_scores,
    draw_widths,
)
from policies.wing.cosmos.runs import (
    BEGIN_S,
    END_S,
    FinishedRuns,
    Runs,
    ad_hoc_times,
    distinct_edges,
    draw_runs,
)
from policies.wing.cosmos.workflows import (
    FAST,
    READ_BY_AD_HOC,
    WEEK_S,
    WINDOWS,
    Workflows,
    choose_by_weight,
    draw_workflows,
    isolated_organisations,
    rank_shared,
    team_sizes,
)
from policies.wing.lineage.aggregates import aggregate
from policies.wing.lineage.dependencies import edges_from_pairs
from policies.wing.lineage.worth import BLIND, NONE, POLL
from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.random import Stream, stream
from sim.published import numbers

JOBS_A_DAY = numbers("wing")["cosmos"]["jobs_a_day"]
RECURRING = numbers("wing")["recurring"]["jobs"]

READS = 0.63
"""Share of ad hoc jobs that read another job's output."""
CROSS = 0.60
"""Share of these whose users read data shared by other organisations, and nothing else."""
OWN = 0.15
"""Share of the reads within the organisation that are of the same user's earlier ad hoc jobs."""
OLD, OLD_DAYS, OLD_SPREAD = 0.5, 1.2, 1.3
"""Share of reads of older data, the median of their age, and its spread."""
MEDIAN_S, SPREAD, LONGEST_S = 600.0, 1.8, 8 * 3600.0
"""Run times: median, spread and maximum."""
ONE_PROGRAM = 0.65
"""Share of the reading ad hoc jobs that read one program; of the rest the same share reads two, and
so on (geometric). Besides, a few read a large window of one program."""


@dataclass(frozen=True, eq=False)
class AdHoc:
    """A jobs that run once."""

    organisation: I8
    user: I8
    submit_s: F8  # ascending, from the beginning of the third week
    duration_s: F8
    up: I8  # upstream rows: recurring runs, followed by ad hoc jobs
    down: I8  # downstream rows of these jobs


def draw_ad_hoc(workflows: Workflows, runs: Runs, scale: float, active: F8, seed: int) -> AdHoc:
    """Draw the ad hoc jobs of four weeks."""
    rng = stream(seed, "synth", "cosmos", "ad hoc")
    n = round((1 - RECURRING) * JOBS_A_DAY * 28 * scale)
    submit_s = BEGIN_S + ad_hoc_times(n, 4, rng)
    organisation = rng.choice(len(active), size=n, p=active)
    team = team_sizes(active)
    rank = np.minimum((team[organisation] * rng.random(n) ** 2), team[organisation] - 1)
    user = (np.cumsum(team) - team)[organisation] + rank.astype(np.int64)
    size = draw_user_scores(user, rng)
    duration_s = np.clip(MEDIAN_S * maths.exp(SPREAD * size), 10.0, LONGEST_S)

    reads = np.flatnonzero(rng.random(n) < READS)
    n_programs = np.minimum(rng.geometric(ONE_PROGRAM, len(reads)), 24)
    busy = np.bincount(user[reads], minlength=int(team.sum())).astype(np.float64)
    allowed = ~np.isin(np.repeat(np.arange(len(active)), team), isolated_organisations(len(active)))
    reads_shared = choose_by_weight(busy, allowed, CROSS * len(reads), rng)[user[reads]]
    down, is_shared = np.repeat(reads, n_programs), np.repeat(reads_shared, n_programs)
    read_number = ranges(np.zeros(len(reads), dtype=np.int64), n_programs)
    is_old = rng.random(len(down)) < OLD
    age_s = OLD_DAYS * 86_400.0 * maths.exp(OLD_SPREAD * rng.normal(size=len(down)))
    time_s = submit_s[down] - np.where(is_old, age_s, 0.0)
    home = _user_workflows(workflows, team, rng)[user[down]]
    program = _programs(workflows, organisation[down], home, is_shared, rng)
    extra_runs = READ_BY_AD_HOC * n / (1 - RECURRING) - len(down)
    window = _large_windows(workflows, program, is_shared & (read_number == 0), extra_runs, rng)
    back = ranges(np.zeros(len(down), dtype=np.int64), window)
    down, is_shared, time_s, program = (
        np.repeat(x, window) for x in (down, is_shared, time_s, program)
    )
    finished = FinishedRuns(runs.program, runs.submit_s + runs.duration_s, len(workflows.workflow))
    up = finished.last_before(program, time_s, back)
    is_own = ~is_shared & (rng.random(len(down)) < OWN)
    up[is_own] = _own_last(user, submit_s, duration_s, down[is_own], len(runs.program))
    up, down, _ = distinct_edges(up, down, is_own)
    return AdHoc(organisation, user, submit_s, duration_s, up, down)


def _large_windows(
    workflows: Workflows, program: I8, allowed: Mask, left: float, rng: Stream
) -> I8:
    """Draw each read's number of last runs: one, except for a few `allowed`, up to `left` more."""
    window = np.ones(len(program), dtype=np.int64)
    weight = workflows.weight[program]
    rows = rng.permutation(np.flatnonzero(allowed & (weight >= FAST)))
    wanted_runs = (rng.choice(WINDOWS, size=len(rows)) / 168.0 * weight[rows]).astype(np.int64)
    fits = np.cumsum(wanted_runs - 1) <= left
    window[rows[fits]] = wanted_runs[fits]
    return window


def _user_workflows(workflows: Workflows, team: I8, rng: Stream) -> I8:
    """Draw the workflow of their organisation that each user reads; -1 if it has none."""
    owner = np.repeat(np.arange(len(team)), team)
    order = np.argsort(workflows.organisation, kind="stable")
    low = np.searchsorted(workflows.organisation[order], owner, "left")
    high = np.searchsorted(workflows.organisation[order], owner, "right")
    pick = low + (rng.random(len(owner)) * (high - low)).astype(np.int64)
    return np.where(high > low, order[np.minimum(pick, len(order) - 1)], -1)


def _programs(workflows: Workflows, organisation: I8, home: I8, is_shared: Mask, rng: Stream) -> I8:
    """Draw the program of each read: one with shared data, or one of the user's workflow."""
    shared = rank_shared(workflows.public, workflows.weight, rng)
    popularity = 1.0 / (np.arange(len(shared)) + 3)
    owner = workflows.organisation[workflows.workflow[shared]]
    drawn = rng.choice(len(shared), size=(4, len(organisation)), p=popularity / popularity.sum())
    cross = drawn[0]
    for redrawn in drawn[1:]:
        cross = np.where(owner[cross] == organisation, redrawn, cross)
    size = np.bincount(workflows.workflow)
    by_flow = np.argsort(workflows.workflow, kind="stable")
    pick = (np.cumsum(size) - size)[home] + (rng.random(len(home)) * size[home]).astype(np.int64)
    program: I8 = np.where(is_shared, shared[cross], by_flow[pick])
    return program


def _own_last(user: I8, submit_s: F8, duration_s: F8, down: I8, first: int) -> I8:
    """Return the same user's last finished ad hoc job; -1 if there was none."""
    finished = FinishedRuns(user, submit_s + duration_s, int(user.max()) + 1)
    row = finished.last_before(user[down], submit_s[down], np.zeros(len(down), dtype=np.int64))
    return np.where(row >= 0, row + first, -1)


ACTIVITY = 0.5
"""Organisations have users and jobs in proportion to this power of their share; not published."""
_HAIR_S = 1e-6


@dataclass(frozen=True, eq=False)
class Month:
    """J jobs in order of submission; the third week begins at 0."""

    shares: dict[str, float]  # share of the cluster of each organisation's queue
    program: I8  # recurring program of which it is a run; -1 for an ad hoc job
    organisation: I8
    user: I8
    submit_s: F8
    duration_s: F8
    lag_s: F8  # from the last input to the submission, if it polls
    mode: I8  # ``NONE``, ``BLIND`` or ``POLL``
    priority: F8  # its user's
    tokens: I8  # resources that it holds
    up: I8  # dependencies, by rows of jobs; sorted by ``down``, then ``up``
    down: I8
    hard: Mask  # dependencies without which the reader fails
    downloads: Downloads  # of the jobs' outputs

    @property
    def finish_s(self) -> F8:
        """End of each job: none ever waited."""
        return self.submit_s + self.duration_s

    @property
    def recurring(self) -> Mask:
        """Mask of the jobs that are runs of recurring programs."""
        return self.program >= 0

    def week(self, begin: float, end: float) -> Mask:
        """Mask of the jobs submitted from the beginning of week `begin` to that of week `end`."""
        return (self.submit_s >= begin * WEEK_S) & (self.submit_s < end * WEEK_S)


def draw_month(
    scale: float,
    seed: int,
    organisations: int | None = None,
    hard_inputs: int | None = None,
    widest: float = WIDEST,
    *,
    by_value: bool = False,
) -> Month:
    """Draw the four weeks; see `policies.wing.cosmos.synthesize`."""
    shares = queue_shares(organisations or n_organisations(scale))
    active = maths.power(np.array(list(shares.values())), ACTIVITY)
    active /= active.sum()
    workflows = draw_workflows(scale, active, seed)
    runs = draw_runs(workflows, seed)
    ad_hoc = draw_ad_hoc(workflows, runs, scale, active, seed)
    return _assemble(shares, workflows, runs, ad_hoc, seed, hard_inputs, widest, by_value=by_value)


def _assemble(
    shares: dict[str, float],
    workflows: Workflows,
    runs: Runs,
    ad_hoc: AdHoc,
    seed: int,
    hard_inputs: int | None,
    widest: float,
    *,
    by_value: bool,
) -> Month:
    n_runs, n_single = len(runs.program), len(ad_hoc.submit_s)
    workflow = workflows.workflow[runs.program]
    submit_s = np.concatenate([runs.submit_s, ad_hoc.submit_s])
    order = np.argsort(submit_s, kind="stable")
    order = order[submit_s[order] < END_S]
    row = np.full(len(submit_s), -1, dtype=np.int64)
    row[order] = np.arange(len(order))
    up = row[np.concatenate([runs.up, ad_hoc.up])]
    down = row[np.concatenate([runs.down, ad_hoc.down + n_runs])]
    hard = np.concatenate([runs.hard, np.ones(len(ad_hoc.up), dtype=bool)])
    edges = np.flatnonzero((up >= 0) & (down >= 0))
    edges = edges[np.lexsort((up[edges], down[edges]))]
    up, down, hard = up[edges], down[edges], hard[edges]
    if hard_inputs is not None:
        hard &= _later_hard(down, hard) < hard_inputs
    program = np.concatenate([runs.program, np.full(n_single, -1)])[order]
    organisation = np.concatenate([workflows.organisation[workflow], ad_hoc.organisation])[order]
    duration_s = np.concatenate([runs.duration_s, ad_hoc.duration_s])[order]
    by_clock = np.concatenate([workflows.blind[workflow], np.ones(n_single, dtype=bool)])[order]
    mode = np.where(np.bincount(down[hard], minlength=len(order)) == 0, NONE,
                    np.where(by_clock, BLIND, POLL))  # fmt: skip
    submit_s = submit_s[order]
    lag_s = np.concatenate([runs.lag_s, np.zeros(n_single)])[order]
    ready_s = np.full(len(order), -np.inf)
    np.maximum.at(ready_s, down[hard], (submit_s + duration_s)[up[hard]])
    lag_s = np.where(mode == POLL, np.clip(submit_s - ready_s - _HAIR_S, 0.0, lag_s), 0.0)
    downloads = draw_downloads(workflows, program, submit_s, submit_s + duration_s, up, down, seed)
    value = aggregate_downloads(downloads, up, down, len(order)) if by_value else None
    priority = draw_priorities(workflows, program, organisation, up, down, submit_s, seed, value)
    user = np.concatenate([workflows.user[workflow], ad_hoc.user])[order]
    tokens = draw_widths(
        workflows,
        program,
        organisation,
        user,
        submit_s,
        duration_s,
        np.array(list(shares.values())),
        seed,
        widest,
    )
    return Month(
        shares, program, organisation, user, submit_s, duration_s, lag_s, mode, priority, tokens,
        up, down, hard, downloads,
    )  # fmt: skip


def aggregate_downloads(downloads: Downloads, up: I8, down: I8, n_jobs: int) -> F8:
    """Return the downloads of each job's output and its shares of those downstream (§4.5.1)."""
    own = np.bincount(downloads.job, downloads.n, n_jobs).astype(np.float64)
    return aggregate(edges_from_pairs(n_jobs, up, down), own)


def _later_hard(down: I8, hard: Mask) -> I8:
    """Return the number of later hard inputs of the same reader, for edges sorted by reader."""
    until = np.cumsum(hard)
    last = np.searchsorted(down, down, "right") - 1
    return until[last] - until


def n_organisations(scale: float) -> int:
    """Return the number of organisations at a scale: 150 at full scale, at least 5.

    It is proportional to the jobs, so that a queue has as many concurrent jobs at every scale.
    """
    at_full_scale: int = numbers("wing")["cosmos"]["organisations"]
    return max(5, round(at_full_scale * scale))


def queue_shares(organisations: int) -> dict[str, float]:
    """Return the hard share of each organisation's queue, falling like 1 / (rank + 2).

    Their skew is not published. The largest of 150 has 8 % and the smallest 0.16 %.
    """
    weight = [1.0 / (rank + 3) for rank in range(organisations)]
    return {f"org-{to_letters(rank)}": w / sum(weight) for rank, w in enumerate(weight)}


def to_letters(number: int, width: int = 3) -> str:
    """Write a number in letters, as the profiler takes digits in names for dates."""
    text = ""
    for _ in range(width):
        number, digit = divmod(number, 26)
        text = chr(97 + digit) + text
    return text
