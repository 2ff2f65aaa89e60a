"""Section of a report: the command that says why the baseline loses, without running it."""

from __future__ import annotations

import pyarrow as pa

from sweep.questions.why.labels import POLICY, ROW, numbered, shared_keys, where_equal
from sweep.report.contribution import Finished
from sweep.report.section import Section
from sweep.stats.cell_columns import AXES

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
    name = sweep.name or sweep.folder.sweep
    command = f"python -m sweep show {name} {row} --why --against {other}"
    sentence = (
        f"Which jobs does {mine} lose against {best}, and behind whom did they wait? This runs "
        "both cells again and says so, with a page and both timelines:"
    )
    return Section("why", "Why does it lose?", (sentence,), command=command)


def _pair(sweep: Finished) -> tuple[tuple[int, str], tuple[int, str]] | None:
    """Return row and policy of the cell to ask about, and of the best one."""
    cells, swept = sweep.cells, sweep.config["swept"]
    needed = (*AXES, *swept, "status", METRIC, ORACLE)
    if not {*needed} <= {*cells.column_names}:
        return None
    import pyarrow.compute as pc  # 0.05 s to import

    table = numbered(cells.select([*needed]))
    is_runnable = pc.invert(pc.field(ORACLE)) & pc.is_finite(pc.field(METRIC))
    table = table.filter(is_runnable & (pc.field("status").cast(pa.string()) != "failed"))
    if not table.num_rows:
        return None
    first = {"capacity": pc.min(table["capacity"]).as_py()}
    for key in ("capacity", *shared_keys(swept)):
        first.setdefault(key, table[key][0].as_py())
        table = where_equal(table, key, first[key])
    comparable = table.select([ROW, POLICY, METRIC]).to_pylist()
    ranked = sorted(comparable, key=lambda cell: float(cell[METRIC]))
    best = ranked[0]
    baseline = next((c for c in comparable if c[POLICY] == sweep.config["baseline"]), ranked[-1])
    slow = ranked[-1] if baseline[POLICY] == best[POLICY] else baseline
    if slow[POLICY] == best[POLICY] or slow[METRIC] == best[METRIC]:
        return None
    return (slow[ROW], str(slow[POLICY])), (best[ROW], str(best[POLICY]))
