"""Selection of a trace's valid rows; the others are counted by the rule that they break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim.base.arrays import I8, Mask


def count_rule(counts: dict[str, int], rule: str, rows: Mask) -> None:
    """Add the number of true `rows` to the count of `rule`, unless it is 0."""
    n = int(np.count_nonzero(rows))
    if n:
        counts[rule] = counts.get(rule, 0) + n


def valid_rows(rules: Mapping[str, Mask], dropped: dict[str, int]) -> Mask:
    """Return the rows that break no rule; count each other row under the first rule it breaks."""
    valid = np.array(True)
    for rule, broken in rules.items():
        count_rule(dropped, rule, valid & broken)
        valid = valid & ~broken
    return valid


def first_rows(ids: Sequence[str], dropped: dict[str, int]) -> I8:
    """Return the first row of each job id, ascending; count the others as dropped."""
    first = {name: row for row, name in reversed(list(enumerate(ids)))}
    count_rule(dropped, "job of an earlier line", np.ones(len(ids) - len(first), dtype=bool))
    return np.sort(np.array([*first.values()], dtype=np.int64))
