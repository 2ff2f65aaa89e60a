"""Amdahl's law as a model of a job (§4.1): serial work and parallel work that is left."""

from __future__ import annotations

import numpy as np

from policies.jockey.profile import Profile
from sim.base.arrays import F8


def serial_s(profile: Profile, done: F8) -> float:
    """Return S_t: the longest of (1 - f_s) l_s + L_s over the unfinished stages, s; 0 if none."""
    left = np.where(done < 1.0, (1.0 - done) * profile.longest_s + profile.after_s, 0.0)
    return float(left.max())


def parallel_s(profile: Profile, done: F8) -> float:
    """Return P_t = Σ (1 - f_s) T_s, s: as printed, the work on the critical path included."""
    return float(((1.0 - done) * profile.work_s).sum())


def remaining_s(profile: Profile, done: F8, max_tokens: int) -> F8:
    """Return S_t + P_t / a for 1 to `max_tokens` tokens: (max_tokens,), s."""
    tokens = np.arange(1, max_tokens + 1)
    return np.asarray(serial_s(profile, done) + parallel_s(profile, done) / tokens)
