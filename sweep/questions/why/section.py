"""Section of a report: the command that says why the baseline loses, without running it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sweep.report.contribution import Finished
from sweep.report.section import Section
from sweep.stats.cell_columns import AXES, text

METRIC, ORACLE = "jct_mean_s", "is_oracle"


def build_section(sweep: Finished) -> Section | None:
    """Build the section of a sweep of several policies; None for others.

    It names the cells of the first trace and seed, at the smallest capacity: that of the baseline,
    or of the policy with the longest mean completion time, against the one with the shortest.
    """
    pair = _pair(sweep)
    if pair is None:
        return None
    (row, mine), (other, best) = pair
    command = f"python -m sweep show SWEEP {row} --why --against {other}"
    sentence = (
        f"Which jobs does {mine} lose against {best}, and behind whom did they wait? `{command}` "
        "runs both cells again and says so, with a page and both timelines."
    )
    return Section("why", "Why does it lose?", (sentence,))


def _pair(sweep: Finished) -> tuple[tuple[int, str], tuple[int, str]] | None:
    """Return row and policy of the cell to ask about, and of the best one."""
    cells, swept = sweep.cells, sweep.config["swept"]
    needed = (*AXES, *swept, "status", METRIC, ORACLE)
    if not {*needed} <= {*cells.column_names}:
        return None
    import pyarrow.compute as pc  # 0.05 s to import

    shared_keys = [key for key in ("trace", "seed", *swept) if key.partition(".")[0] != "policy"]
    rows = pa.array(np.arange(cells.num_rows))
    table = cells.select([*needed]).append_column("row", rows)
    is_runnable = pc.invert(pc.field(ORACLE)) & pc.is_finite(pc.field(METRIC))
    table = table.filter(is_runnable & (pc.field("status").cast(pa.string()) != "failed"))
    if not table.num_rows:
        return None
    low = pc.min(table["capacity"])
    table = table.filter(pc.field("capacity") == low)
    first = table.slice(0, 1).to_pylist()[0]
    for key in shared_keys:
        same = [text(value) == text(first[key]) for value in table[key].to_pylist()]
        table = table.filter(pa.array(same))
    comparable = table.select(["row", "policy", METRIC]).to_pylist()
    ranked = sorted(comparable, key=lambda cell: float(cell[METRIC]))
    best = ranked[0]
    baseline = next((c for c in comparable if c["policy"] == sweep.config["baseline"]), ranked[-1])
    slow = ranked[-1] if baseline["policy"] == best["policy"] else baseline
    if slow["policy"] == best["policy"] or slow[METRIC] == best[METRIC]:
        return None
    return (slow["row"], str(slow["policy"])), (best["row"], str(best["policy"]))
