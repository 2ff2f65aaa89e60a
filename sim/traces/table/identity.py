"""Identity of a table's rows: repeated rows, and ids that several jobs have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sim.base import reading
from sim.base.arrays import Mask
from sim.base.distinct import first_repeat
from sim.base.reading import count_rule, distinct_ids


def has_repeats(ids: pa.Array) -> bool:
    """Tell whether an id is there twice; null is none."""
    known = ids.drop_null() if ids.null_count else ids
    return len(known) > 0 and first_repeat(known) is not None


def unique_ids(ids: pa.Array, noticed: dict[str, int]) -> pa.Array:
    """Return distinct ids: the second job of an id becomes ``id#2``."""
    ids, is_again = distinct_ids(ids)
    count_rule(noticed, "job_id of an earlier row with other values: a job of its own", is_again)
    return ids


def repeated_rows(columns: Mapping[str, pa.Array], more: Sequence[pa.Array] = ()) -> Mask:
    """Mark the rows that are equal to an earlier one, in all columns and with a ``job_id``.

    `more` are other columns of the table.
    """
    repeated = np.zeros(len(next(iter(columns.values()))), dtype=bool)
    if "job_id" in columns and has_repeats(columns["job_id"]):
        known = np.asarray(columns["job_id"].is_valid())
        arrays = (array.filter(pa.array(known)) for array in (*columns.values(), *more))
        # not by their names: a file may have one twice
        numbered = {str(position): array for position, array in enumerate(arrays)}
        repeated[known] = reading.repeated_rows(columns["job_id"].drop_null(), numbered)
    return repeated
