"""The error of a broken rule, and the naming of the rows that break it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sim.base.arrays import Mask
from sim.base.errors import SimError


class BrokenRuleError(SimError):
    """A plug-in, or a run, breaks a rule; the message says which, and where."""


def refuse(broken: Mask | bool, sentence: Callable[[int], str]) -> None:
    """Raise BrokenRuleError for the first row that is broken; `sentence` describes the row.

    Raises
    ------
    BrokenRuleError
        If any is.
    """
    rows = np.flatnonzero(broken)
    if len(rows):
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        raise BrokenRuleError(sentence(int(rows[0])) + more)
