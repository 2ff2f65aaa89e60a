"""How many tokens jobs hold, so that requests are what they should be of queues and cluster."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.published import numbers
from sim.synth.cosmos.clock import WEEK_S
from sim.synth.cosmos.flows import Flows

PEAK = numbers("wing")["cosmos"]["peak"]

TOKENS = 100_000
"""Of the whole cluster at capacity 1, whatever the scale."""

SPREAD = 1.0
"""Of widths, of programs and of ad hoc jobs; not published."""

UNEVEN, FULLEST = 0.5, 1.15
"""Peaks of an organisation's requests, of its queue's size: spread, and most. Not published;
calibrated on user priorities alone (docs/wing_workload.md)."""

WIDEST = 0.12
"""Of its queue that a job holds at most, so that it fits a fifth of the cluster; calibrated too."""

PEAK_WINDOW_S = 3600.0


def draw_widths(
    flows: Flows, program: I8, organisation: I8, submit_s: F8, duration_s: F8, share: F8, seed: int
) -> I8:
    """Draw how many tokens each job holds; see `sim.synth.cosmos.month.Month`.

    The peak of an organisation's requests is in proportion to its queue, but for `UNEVEN`;
    requests of all peak at `PEAK`.
    """
    rng = stream(seed, "synth", "cosmos", "widths")
    own = np.exp(SPREAD * rng.normal(size=len(flows.flow)))
    single = np.exp(SPREAD * rng.normal(size=len(program)))
    width = np.where(program >= 0, own[program], single)
    wish = share * np.exp(UNEVEN * rng.normal(size=len(share)))
    most = np.maximum(np.floor(WIDEST * share * TOKENS), 1.0)[organisation]
    third = (submit_s >= 0) & (submit_s < WEEK_S)
    rows = [np.flatnonzero(third & (organisation == o)) for o in range(len(share))]
    factor = np.ones(len(share))
    level = float(TOKENS)
    for _ in range(8):
        tokens = _whole(width * factor[organisation], most)
        top = np.array([peak(submit_s[r], duration_s[r], tokens[r]) for r in rows])
        aim = np.minimum(level * wish, FULLEST * share * TOKENS)
        factor *= np.clip(aim / np.maximum(top, 1.0), 0.1, 10.0)
        factor = np.minimum(factor, np.maximum(3 * WIDEST * share * TOKENS, 1.0))
        level *= PEAK * TOKENS / peak(submit_s[third], duration_s[third], tokens[third])
    width = width * factor[organisation]
    low, high = -3.0, 3.0
    for _ in range(30):
        tokens = _whole(width * np.exp((low + high) / 2), most)
        over = peak(submit_s[third], duration_s[third], tokens[third]) > PEAK * TOKENS
        low, high = (low, (low + high) / 2) if over else ((low + high) / 2, high)
    return _whole(width * np.exp(low), most).astype(np.int64)


def _whole(width: F8, most: F8) -> F8:
    out: F8 = np.clip(np.rint(width), 1.0, most)
    return out


def peak(submit_s: F8, duration_s: F8, tokens: F8) -> float:
    """Return the most tokens held on average in an hour of the week from 0, if no job waits."""
    return float(held(submit_s, duration_s, tokens)[1:].max())


def held(submit_s: F8, duration_s: F8, tokens: F8) -> F8:
    """Return the tokens held on average in each hour of the week from 0, if no job waits."""
    edges = np.arange(0.0, WEEK_S + 1.0, PEAK_WINDOW_S)
    order = np.argsort(submit_s, kind="stable")
    done = _integral(submit_s[order], tokens[order], edges)
    finish = submit_s + duration_s
    order = np.argsort(finish, kind="stable")
    done -= _integral(finish[order], tokens[order], edges)
    out: F8 = np.diff(done) / PEAK_WINDOW_S
    return out


def _integral(time_s: F8, tokens: F8, edges: F8) -> F8:
    """Return Σ tokens max(0, edge - time) for each edge."""
    count = np.searchsorted(time_s, edges, "right")
    total = np.concatenate([[0.0], np.cumsum(tokens)])[count]
    moment = np.concatenate([[0.0], np.cumsum(tokens * time_s)])[count]
    out: F8 = total * edges - moment
    return out
