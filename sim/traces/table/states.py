"""States of jobs, in the words of many schedulers."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sim.base.arrays import I1

OTHER, COMPLETED, CANCELLED, RUNNING, WAITING = range(5)
"""Codes of states; any other (failed, timed out) is that of a job that ran and ended."""
_PATTERNS: Mapping[int, re.Pattern[str]] = {
    code: re.compile(pattern, re.IGNORECASE)
    for code, pattern in {
        COMPLETED: r"complete(d)?\b|cd$|succe(ss|eded|ssful)|done|finished$|pass(ed)?$|ok$|exited$",
        CANCELLED: r"cancel|ca$|killed|abort|revoked|deleted$|removed$",
        RUNNING: r"running|r$|active$|started$|suspended|completing|configuring|resizing|stopping"
        r"|executing|in.?progress",
        WAITING: r"pending|pd$|queued|waiting|scheduled$|submitted$|created$|blocked|held$|hold$"
        r"|upstream.failed|skipped|deferred|rejected|not.?(run|started)",
    }.items()
}


def state_codes(states: pa.Array) -> I1:
    """Return the code of each state; `OTHER` for unknown ones."""
    coded = states.dictionary_encode()
    codes = [_code(text) for text in coded.dictionary.to_pylist()]
    table = np.array([*codes, OTHER], np.int8)
    result: I1 = table[coded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)]
    return result


def _code(text: str | None) -> int:
    name = (text or "").strip()
    return next((code for code, pattern in _PATTERNS.items() if pattern.match(name)), OTHER)
