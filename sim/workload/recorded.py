"""Times at which jobs, stages and tasks really ran, as the log of a real scheduler has them.

No simulation reads them: they are what a simulation is compared with. A cut of the workload keeps
them, counted from its new zero. Where submissions are moved or drawn anew they have no meaning any
more, and are dropped.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sim.workload.schema import ELIGIBLE, RECORDED, RUNS, SUBMITTED
from sim.workload.tables import with_column

WITH_RECORDED = ("jobs", "stages", "tasks")
"""Tables that can have recorded times."""
_COLUMNS = tuple(column.name for column in (*RECORDED, ELIGIBLE, SUBMITTED))
_DROPPED = (*_COLUMNS, RUNS.name)


def shift_recorded(table: pa.Table, zero_s: float) -> pa.Table:
    """Return the table with its recorded times counted from `zero_s`, s."""
    for name in _COLUMNS:
        if name in table.column_names:
            table = with_column(table, name, pc.subtract(table[name].chunk(0), zero_s))
    return table


def drop_recorded(table: Any) -> Any:
    """Return the table, mapping of columns, or None, without recorded times."""
    if table is None:
        return None
    if isinstance(table, pa.Table):
        return table.drop_columns([name for name in _DROPPED if name in table.column_names])
    return {name: column for name, column in table.items() if name not in _DROPPED}
