"""Draw the runs of programs in order of submission, and the jobs of which they are copies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.wing.programs.profiles import Profile
from sim.base import maths
from sim.base.arrays import F8, I8, inverse
from sim.base.random import stream

N_CANDIDATES = 512
"""Number of drawn jobs, similar in work to a program's runs, among which the most similar is
chosen."""
BATCH = 8192
"""Number of programs that are processed at once, to limit memory."""


@dataclass(frozen=True, eq=False)
class Runs:
    """N runs in order of submission."""

    profile: I8
    block: I8  # number of the repetition of the fitted jobs
    score: F8  # rank by work


def draw_runs(
    profiles: tuple[Profile, ...], n: int, seed: int, source_job: I8 | None = None
) -> Runs:
    """Draw `n` runs of programs.

    In every block of as many jobs as were fitted, each program runs as often as it did, in its
    rhythm counted in jobs. Programs of one user, and those that read each other, keep their
    relative positions; the offsets between such groups are drawn. If `source_job` gives the fitted
    job that arrives each time, (n,), the run is one of the same program.
    """
    size = [len(profile.positions) for profile in profiles]
    position = np.concatenate([np.array(profile.positions, np.int64) for profile in profiles])
    owner = np.repeat(np.arange(len(profiles)), size)
    if source_job is None:
        profile, number = _draw_order(profiles, position, owner, n, seed)
    else:
        profile, number = _follow_arrivals(position, owner, source_job)
    noise = stream(seed, "programs", "scores")
    scores = [profile.score for profile in profiles]
    if has_kinds(profiles):
        return Runs(profile, number, draw_quantile(scores, profile, noise.random(n)))
    mean, deviation = np.array(scores).T
    return Runs(profile, number, mean[profile] + deviation[profile] * noise.standard_normal(n))


def _draw_order(profiles: tuple[Profile, ...], position: I8, owner: I8, n: int, seed: int) -> I8:
    group = _groups(profiles)[owner]
    blocks, n_fitted = [], len(position)
    for block in range(-(-n // n_fitted)):
        rng = stream(seed, "programs", "places", block)
        shifted = (position + rng.integers(n_fitted, size=len(profiles))[group]) % n_fitted
        order = np.lexsort((position, rng.random(n_fitted), shifted))
        blocks.append(np.stack([owner[order], np.full(n_fitted, block)]))
    return np.concatenate(blocks, axis=1)[:, :n]


def _follow_arrivals(position: I8, owner: I8, source_job: I8) -> I8:
    profile = owner[np.argsort(position, kind="stable")][source_job]
    order = np.argsort(source_job, kind="stable")
    count = np.bincount(source_job)
    repetition = np.empty(len(source_job), np.int64)  # earlier arrivals of the same job
    repetition[order] = np.arange(len(source_job)) - np.repeat(np.cumsum(count) - count, count)
    return np.stack([profile, repetition])


def _groups(profiles: tuple[Profile, ...]) -> I8:
    """Return the group of each program, (P,), within which relative positions are preserved."""
    number: dict[tuple[str, str], int] = {}
    group = np.array([number.setdefault(_owner(profile), len(number)) for profile in profiles])
    reads = [(read, reader) for reader, p in enumerate(profiles) for read, *_ in p.inputs]
    up, down = np.array(reads, np.int64).reshape(-1, 2).T
    while (group[up] != group[down]).any():
        merged = np.arange(len(profiles))
        low, high = np.minimum(group[up], group[down]), np.maximum(group[up], group[down])
        np.minimum.at(merged, high, low)
        group = merged[group]
    return group


def _owner(profile: Profile) -> tuple[str, str]:
    labels = dict(
        zip(("template", "application", "job_name", "user"), profile.labels, strict=False)
    )
    user = labels["user"]
    return ("user", user) if user else ("program", "\n".join(profile.labels[:3]))


def run_programs(profiles: tuple[Profile, ...], runs: Runs) -> tuple[I8, I8]:
    """Return the program of each run, (N,), -1 for none, and a profile of each program, (P,).

    A program that ran once among the fitted jobs is a new one in every block.
    """
    keys: dict[tuple[str, ...], int] = {}
    profile_program = np.full(len(profiles), -1, np.int64)
    kinds = has_kinds(profiles)
    for number, profile in enumerate(profiles):
        if profile.shape:
            key = (str(number),) if kinds else program_key(profile)
            profile_program[number] = keys.setdefault(key, len(keys))
    if not keys:
        return np.full(len(runs.profile), -1), np.empty(0, np.int64)
    sizes = [len(p.positions) for p in profiles if p.shape]
    n_runs = np.bincount(profile_program[profile_program >= 0], sizes, len(keys))
    program = profile_program[runs.profile]
    once = (program >= 0) & (n_runs[program] == 1.0)
    code = np.where(program < 0, -1, program + np.where(once, runs.block, 0) * len(keys))
    distinct, first = np.unique(code, return_index=True)
    return np.searchsorted(distinct, code) - (distinct[0] < 0), runs.profile[first][distinct >= 0]


def has_kinds(profiles: tuple[Profile, ...]) -> bool:
    """Return whether jobs are grouped in kinds, because some have a requested time."""
    return any(profile.requested for profile in profiles)


def program_key(profile: Profile) -> tuple[str, ...]:
    """Return a program's key: its template, or else its application, or else its name."""
    return next((str(i), name) for i, name in enumerate(profile.labels[:3]) if name)


def choose_jobs(
    profiles: tuple[Profile, ...],
    runs: Runs,
    program: I8,
    program_profile: I8,
    work_s: F8,
    attributes: list[F8],
) -> tuple[I8, F8]:
    """Choose the drawn job of which each run is a copy, and the factor of its task durations.

    Parameters
    ----------
    cards, runs, program, card_of
        The results of `draw_runs` and `run_programs`.
    work_s : (N,) float64
        Work of the drawn jobs; each run is assigned that of one.
    attributes : list of (N,) float64
        Attributes of the drawn jobs, in the order of `profiles.attributes`.

    Returns
    -------
    row : (N,) int64
        Row of the drawn job. All runs of a program have the same one, with about as many stages and
        tasks as the fitted runs, and about their demands; other runs have one each.
    factor : (N,) float64
        Factor of the task durations.
    """
    by_work = np.argsort(work_s, kind="stable")
    source = np.empty(len(by_work), np.int64)
    source[np.argsort(runs.score, kind="stable")] = by_work
    if not len(program_profile):
        return source, np.ones(len(source))
    rank = inverse(by_work)
    program_runs = np.flatnonzero(program >= 0)
    order = program_runs[np.lexsort((rank[source[program_runs]], program[program_runs]))]
    n_runs = np.bincount(program[program_runs])
    middle = rank[source[order[np.cumsum(n_runs) - n_runs + n_runs // 2]]]
    begin = np.clip(middle - N_CANDIDATES // 2, 0, max(len(source) - N_CANDIDATES, 0))
    shape = np.array([profiles[profile].shape for profile in program_profile.tolist()])
    demand_ranks = [_rank_shares(np.sort(x), x) for x in attributes[2:]]
    model = np.empty(len(begin), np.int64)
    for batch in np.array_split(np.arange(len(begin)), -(-len(begin) // BATCH)):
        candidates = by_work[begin[batch, None] + np.arange(min(N_CANDIDATES, len(source)))]
        distance = np.zeros(candidates.shape)
        for i, (column, values) in enumerate(zip(shape[batch].T, attributes, strict=True)):
            if i < 2:  # stages and tasks
                distance += 3 * np.abs(maths.log(values[candidates] / column[:, None]))
            else:
                target = _rank_shares(np.sort(values), column)
                distance += np.abs(demand_ranks[i - 2][candidates] - target[:, None])
        model[batch] = candidates[np.arange(len(candidates)), np.argmin(distance, axis=1)]
    row = np.where(program >= 0, model[program], source)
    factor = np.maximum(work_s[source], 1e-9) / np.maximum(work_s[row], 1e-9)
    return row, np.where(program >= 0, factor, 1.0)


def draw_quantile(quantiles: list[tuple[float, ...]], profile: I8, u: F8) -> F8:
    """Draw from the quantiles of each run's profile, by uniforms; NaN where there are none."""
    n = np.array([len(values) for values in quantiles])
    begin = (np.cumsum(n) - n)[profile]
    flat = np.array([value for values in quantiles for value in values] + [np.nan])
    index = begin + (u * n[profile]).astype(np.int64)
    return np.where(n[profile] > 0, flat[np.minimum(index, len(flat) - 1)], np.nan)


def _rank_shares(ordered: F8, x: F8) -> F8:
    """Return the mid-ranks of numbers in `ordered`, as a share of its length."""
    low, high = (np.searchsorted(ordered, x, side) for side in ("left", "right"))
    return (low + high) / (2.0 * len(ordered))
