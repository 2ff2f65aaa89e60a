"""Labels of the cells of a sweep: cells that share them, but for the policy and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sweep.stats.cell_columns import AXES, factorize, text

POLICY, ROW = "policy", "row"


def shared_keys(swept: Sequence[str]) -> list[str]:
    """Return the columns that say which cell it is, but the policy and its settings."""
    return [key for key in (*AXES, *swept) if key.partition(".")[0] != POLICY]


def numbered(cells: pa.Table) -> pa.Table:
    """Return cells with their row numbers."""
    return cells.append_column(ROW, pa.array(np.arange(cells.num_rows)))


def where_equal(cells: pa.Table, key: str, value: Any) -> pa.Table:
    """Return the cells with a value of a label, as it is written."""
    distinct, code = factorize(cells[key])
    is_equal = np.array([text(other) == text(value) for other in distinct], np.bool_)
    return cells.filter(pa.array(is_equal[code]))
