"""Admission (§1): whether one more job fits, all those accepted still meeting their deadlines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from policies.jockey.control import Law
from sim.base.arrays import F8

NEVER: Final = 2**31 - 1
"""The need of a job that no allocation lets meet its deadline."""


def need(law: Law, deadline_s: float, elapsed_s: float, left_s: F8) -> int:
    """Return the fewest tokens with which a job is predicted to meet its deadline."""
    meets = elapsed_s + law.slack * left_s + law.dead_zone_s <= deadline_s
    return 1 + int(np.argmax(meets)) if meets.any() else NEVER


def fits(needs: Sequence[int], new: int, capacity: int) -> bool:
    """Tell whether a job that needs `new` tokens fits beside those that need `needs`.

    What an accepted job that is late can no longer use counts as the whole capacity.
    """
    return new <= capacity and sum(min(n, capacity) for n in needs) + new <= capacity
