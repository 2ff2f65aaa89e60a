"""Selection of a trace's valid rows; the others are counted by the rule that they break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def repeated_rows(ids: Sequence[object], columns: Mapping[str, Any]) -> Mask:
    """Mark the rows that equal an earlier row of the same id in every column.

    Columns are NumPy or Arrow arrays; unknown values are equal to each other.
    """
    is_repeated = np.zeros(len(ids), dtype=bool)
    if len(set(ids)) == len(ids):
        return is_repeated
    by_id: dict[object, list[int]] = {}
    for row, name in enumerate(ids):
        by_id.setdefault(name, []).append(row)
    for rows in by_id.values():
        if len(rows) < 2:
            continue
        contents: set[str] = set()
        for row in rows:
            content = repr([_value(column[row]) for column in columns.values()])
            is_repeated[row] = content in contents
            contents.add(content)
    return is_repeated


def _value(value: Any) -> Any:
    return value.as_py() if hasattr(value, "as_py") else value.item()


def distinct_ids(ids: Sequence[str]) -> tuple[list[str], Mask]:
    """Return ids of which none comes twice, and mark those that were changed for that.

    The second job called ``17`` becomes ``17#2``, or the next such id that no job has.
    """
    distinct, turns, taken = list(ids), dict[str, int](), set(ids)
    is_again = np.zeros(len(ids), dtype=bool)
    if len(taken) == len(ids):
        return distinct, is_again
    for row, name in enumerate(ids):
        turn = turns.get(name, 0) + 1
        turns[name] = turn
        if turn > 1:
            while f"{name}#{turn}" in taken:
                turn += 1
            turns[name] = turn
            distinct[row] = f"{name}#{turn}"
            taken.add(distinct[row])
            is_again[row] = True
    return distinct, is_again


def first_rows(ids: Sequence[str], dropped: dict[str, int]) -> I8:
    """Return the first row of each job id, ascending; count the others as dropped."""
    first = {name: row for row, name in reversed(list(enumerate(ids)))}
    count_rule(dropped, "job of an earlier line", np.ones(len(ids) - len(first), dtype=bool))
    return np.sort(np.array([*first.values()], dtype=np.int64))
