"""Data frames of results: pandas, which the extra ``frames`` installs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sim.base.extras import require

if TYPE_CHECKING:
    import pandas as pd


def from_arrow(table: pa.Table) -> pd.DataFrame:
    """Convert a table to a data frame."""
    require("frames")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def from_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Build a data frame of rows."""
    require("frames")
    import pandas as pd  # an extra of its own, which a sweep does not need

    return pd.DataFrame(rows, columns=None if columns is None else list(columns))
