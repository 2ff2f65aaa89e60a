"""Programs first, then their runs, in the order in which jobs come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, inverse
from sim.base.random import stream
from sim.synth.programs.profiles import Card

NEAR = 512
"""Among how many jobs that are about as large as a program's runs the one like them is chosen."""


AT_ONCE = 8192
"""For how many programs at a time, as memory has room."""


@dataclass(frozen=True, eq=False)
class Runs:
    """N runs, in the order in which they come."""

    card: I8  # program of each
    block: I8  # how many times as many jobs as were fitted came before
    score: F8  # by which they are ranked by work


def draw_runs(cards: tuple[Card, ...], n: int, seed: int, came: I8 | None = None) -> Runs:
    """Draw `n` runs of programs.

    In every so many jobs as were fitted each program runs as often as it did, in its own rhythm
    counted in jobs, and so do those of one user, and those that read each other, among themselves;
    but how these lie to others is drawn. Not so where it is known which job `came` each time, (n,):
    then it is a run of the same program that comes.
    """
    size = [len(card.at) for card in cards]
    at = np.concatenate([np.array(card.at, np.int64) for card in cards])
    of = np.repeat(np.arange(len(cards)), size)
    card, number = _placed(cards, at, of, n, seed) if came is None else _as_came(at, of, came)
    noise = stream(seed, "programs", "scores")
    if of_kinds(cards):
        return Runs(card, number, drawn([each.score for each in cards], card, noise.random(n)))
    mean, deviation = np.array([each.score for each in cards]).T
    return Runs(card, number, mean[card] + deviation[card] * noise.standard_normal(n))


def _placed(cards: tuple[Card, ...], at: I8, of: I8, n: int, seed: int) -> I8:
    owner = _together(cards)[of]
    parts, n_fitted = [], len(at)
    for block in range(-(-n // n_fitted)):
        rng = stream(seed, "programs", "places", block)
        place = (at + rng.integers(n_fitted, size=len(cards))[owner]) % n_fitted
        order = np.lexsort((at, rng.random(n_fitted), place))
        parts.append(np.stack([of[order], np.full(n_fitted, block)]))
    return np.concatenate(parts, axis=1)[:, :n]


def _as_came(at: I8, of: I8, came: I8) -> I8:
    card = of[np.argsort(at, kind="stable")][came]
    order = np.argsort(came, kind="stable")  # how many times did the same job come before?
    many = np.bincount(came)
    again = np.empty(len(came), np.int64)
    again[order] = np.arange(len(came)) - np.repeat(np.cumsum(many) - many, many)
    return np.stack([card, again])


def _together(cards: tuple[Card, ...]) -> I8:
    """Give one number to programs that keep their places among each other, (P,)."""
    number: dict[tuple[str, str], int] = {}
    group = np.array([number.setdefault(_owner(card), len(number)) for card in cards])
    up, down = np.array(
        [(other, mine) for mine, card in enumerate(cards) for other, *_ in card.inputs], np.int64
    ).reshape(-1, 2).T  # fmt: skip
    while (group[up] != group[down]).any():
        least = np.arange(len(cards))
        np.minimum.at(least, np.maximum(group[up], group[down]), np.minimum(group[up], group[down]))
        group = least[group]
    return group


def _owner(card: Card) -> tuple[str, str]:
    labels = dict(zip(("template", "application", "job_name", "user"), card.labels, strict=False))
    user = labels["user"]
    return ("user", user) if user else ("program", "\n".join(card.labels[:3]))


def program_of(cards: tuple[Card, ...], runs: Runs) -> tuple[I8, I8]:
    """Return the program of each run, (N,), -1 for none, and one of its cards, (P,).

    One that ran once among the jobs that were fitted is another one in every block.
    """
    keys: dict[tuple[str, ...], int] = {}
    of = np.full(len(cards), -1, np.int64)
    kinds = of_kinds(cards)
    for number, card in enumerate(cards):
        if card.like:
            key = (str(number),) if kinds else program_key(card)
            of[number] = keys.setdefault(key, len(keys))
    if not keys:
        return np.full(len(runs.card), -1), np.empty(0, np.int64)
    n_runs = np.bincount(of[of >= 0], [len(c.at) for c in cards if c.like], len(keys))
    program = of[runs.card]
    once = (program >= 0) & (n_runs[program] == 1.0)
    code = np.where(program < 0, -1, program + np.where(once, runs.block, 0) * len(keys))
    distinct, first = np.unique(code, return_index=True)
    return np.searchsorted(distinct, code) - (distinct[0] < 0), runs.card[first][distinct >= 0]


def of_kinds(cards: tuple[Card, ...]) -> bool:
    """Tell whether jobs are of kinds: whether any asked for a time."""
    return any(card.asked for card in cards)


def program_key(card: Card) -> tuple[str, ...]:
    """Return what a program is known by: its template, or else an application, or a name."""
    return next((str(at), name) for at, name in enumerate(card.labels[:3]) if name)


def contents(
    cards: tuple[Card, ...], runs: Runs, program: I8, card_of: I8, work_s: F8, attributes: list[F8]
) -> tuple[I8, F8]:
    """Say which drawn job each run is made of, and how many times as long its tasks last.

    Parameters
    ----------
    cards, runs, program, card_of
        As `draw_runs` and `program_of` return them.
    work_s : (N,) float64
        Work of the drawn jobs, of which each run gets that of one.
    attributes : list of (N,) float64
        Theirs, as `cards.attributes` has them.

    Returns
    -------
    row : (N,) int64
        A job of the drawn ones: all runs of a program have one, which has about as many stages and
        tasks as a run of it had, and about its demands, the others each their own.
    factor : (N,) float64
        By what the durations of its tasks are multiplied.
    """
    by_work = np.argsort(work_s, kind="stable")
    own = np.empty(len(by_work), np.int64)
    own[np.argsort(runs.score, kind="stable")] = by_work
    if not len(card_of):
        return own, np.ones(len(own))
    rank = inverse(by_work)
    mine = np.flatnonzero(program >= 0)
    order = mine[np.lexsort((rank[own[mine]], program[mine]))]
    many = np.bincount(program[mine])
    middle = rank[own[order[np.cumsum(many) - many + many // 2]]]
    begin = np.clip(middle - NEAR // 2, 0, max(len(own) - NEAR, 0))
    like = np.array([cards[card].like for card in card_of.tolist()])
    places = [_place(np.sort(x), x) for x in attributes[2:]]
    model = np.empty(len(begin), np.int64)
    for some in np.array_split(np.arange(len(begin)), -(-len(begin) // AT_ONCE)):
        near = by_work[begin[some, None] + np.arange(min(NEAR, len(own)))]
        off = np.zeros(near.shape)
        for at, (column, values) in enumerate(zip(like[some].T, attributes, strict=True)):
            if at < 2:  # stages and tasks
                off += 3 * np.abs(maths.log(values[near] / column[:, None]))
            else:
                place = _place(np.sort(values), column)
                off += np.abs(places[at - 2][near] - place[:, None])
        model[some] = near[np.arange(len(near)), np.argmin(off, axis=1)]
    row = np.where(program >= 0, model[program], own)
    factor = np.maximum(work_s[own], 1e-9) / np.maximum(work_s[row], 1e-9)
    return row, np.where(program >= 0, factor, 1.0)


def drawn(quantiles: list[tuple[float, ...]], card: I8, lot: F8) -> F8:
    """Draw from each run's quantiles; NaN where there are none."""
    n = np.array([len(of) for of in quantiles])
    begin = (np.cumsum(n) - n)[card]
    flat = np.array([x for of in quantiles for x in of] + [np.nan])
    place = begin + (lot * n[card]).astype(np.int64)
    return np.where(n[card] > 0, flat[np.minimum(place, len(flat) - 1)], np.nan)


def _place(ordered: F8, x: F8) -> F8:
    """Return between what ranks numbers are, in the middle, as a share of all."""
    low, high = (np.searchsorted(ordered, x, side) for side in ("left", "right"))
    return (low + high) / (2.0 * len(ordered))
