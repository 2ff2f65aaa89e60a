"""Selection of a trace's valid rows; the others are counted by the rule that they break."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Mask
from sim.base.distinct import first_repeat, number_by_appearance


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


def repeated_rows(ids: NDArray[Any] | pa.StringArray, columns: Mapping[str, Any]) -> Mask:
    """Mark the rows that equal an earlier row of the same id in every column.

    Columns are NumPy or Arrow arrays; unknown values are equal to each other.
    """
    is_repeated = np.zeros(len(ids), dtype=bool)
    if isinstance(ids, np.ndarray):
        code = np.unique(ids, return_inverse=True)[1]
    else:
        code = number_by_appearance(ids)[0].astype(np.int64)
    rows = np.flatnonzero(np.bincount(code)[code] > 1)
    if len(rows):
        index = pa.array(rows)
        texts = {name: pa.array(column).take(index) for name, column in columns.items()}
        table = pa.table({"": index, **texts})
        first = table.group_by([*columns], use_threads=False).aggregate([("", "min")])
        is_repeated[rows] = True
        is_repeated[first["_min"].to_numpy()] = False
    return is_repeated


def distinct_ids(ids: pa.StringArray) -> tuple[pa.StringArray, Mask]:
    """Return ids of which none comes twice, and mark those that were changed for that.

    The second job called ``17`` becomes ``17#2``, or the next such id that no job has.
    """
    is_again = np.zeros(len(ids), dtype=bool)
    if first_repeat(ids) is None:
        return ids, is_again
    distinct = ids.to_pylist()
    taken, turns = set(distinct), dict[str, int]()
    for row, name in enumerate(distinct):
        turn = turns.get(name, 0) + 1
        if turn > 1:
            while f"{name}#{turn}" in taken:
                turn += 1
            distinct[row] = f"{name}#{turn}"
            taken.add(distinct[row])
            is_again[row] = True
        turns[name] = turn
    return pa.array(distinct, pa.string()), is_again
