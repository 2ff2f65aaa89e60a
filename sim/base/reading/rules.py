"""Which rows of a trace are taken, and counting the others by the rule that they break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim.base.arrays import I8, Mask


def count_rule(counts: dict[str, int], rule: str, rows: Mask) -> None:
    """Count the true `rows` under `rule`; rules that never apply are not listed."""
    n = int(np.count_nonzero(rows))
    if n:
        counts[rule] = counts.get(rule, 0) + n


def valid_rows(rules: Mapping[str, Mask], dropped: dict[str, int]) -> Mask:
    """Return the rows that break none of some rules; count each other under the first it breaks."""
    left = np.array(True)
    for rule, broken in rules.items():
        count_rule(dropped, rule, left & broken)
        left = left & ~broken
    return left


def first_rows(ids: Sequence[str], dropped: dict[str, int]) -> I8:
    """Return the first row of each job, ascending; count the others."""
    first = {name: row for row, name in reversed(list(enumerate(ids)))}
    count_rule(dropped, "job of an earlier line", np.ones(len(ids) - len(first), dtype=bool))
    return np.sort(np.array([*first.values()], dtype=np.int64))
