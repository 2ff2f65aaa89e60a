"""Identity of a table's rows: repeated rows, and ids that several jobs have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sim.base.arrays import Mask
from sim.base.distinct import first_repeat, number_by_appearance
from sim.base.reading import count_rule


def has_repeats(ids: pa.Array) -> bool:
    """Tell whether an id is there twice; null is none."""
    known = ids.drop_null() if ids.null_count else ids
    return len(known) > 0 and first_repeat(known) is not None


def unique_ids(ids: pa.Array, noticed: dict[str, int]) -> pa.Array:
    """Return distinct ids: the second job of an id becomes ``id#2``."""
    if not has_repeats(ids):
        return ids
    codes, first_rows = number_by_appearance(ids)
    is_first = np.zeros(len(codes), dtype=bool)
    is_first[first_rows] = True
    count_rule(noticed, "job_id of an earlier row with other values: a job of its own", ~is_first)
    texts = ids.to_pylist()
    used = set(texts)
    times: dict[str, int] = {}
    for row in np.flatnonzero(~is_first):
        name = texts[row]
        n = times.get(name, 1) + 1
        while f"{name}#{n}" in used:
            n += 1
        times[name] = n
        texts[row] = f"{name}#{n}"
        used.add(texts[row])
    return pa.array(texts, pa.string())


def repeated_rows(columns: Mapping[str, pa.Array], more: Sequence[pa.Array] = ()) -> Mask:
    """Mark the rows that are equal to an earlier one, in all columns and with a ``job_id``.

    `more` are other columns of the table.
    """
    n_rows = len(next(iter(columns.values())))
    repeated = np.zeros(n_rows, dtype=bool)
    if "job_id" not in columns or not has_repeats(columns["job_id"]):
        return repeated
    known = np.flatnonzero(np.asarray(columns["job_id"].is_valid()))
    codes, _ = number_by_appearance(columns["job_id"].drop_null())
    rows = known[np.bincount(codes)[codes] > 1]
    arrays = [array.take(pa.array(rows)) for array in (*columns.values(), *more)]
    names = [str(position) for position in range(len(arrays))]  # a file's own may be there twice
    table = pa.Table.from_arrays([*arrays, pa.array(rows)], [*names, "row"])
    first = table.group_by(names, use_threads=False).aggregate([("row", "min")])
    repeated[rows] = True
    repeated[first["row_min"].to_numpy()] = False
    return repeated
