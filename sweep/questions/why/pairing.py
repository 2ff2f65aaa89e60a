"""The cell of another policy that differs in nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.base.errors import InputError
from sweep.driver.captured_run import capture_cell
from sweep.questions.why.explanation import Explanation
from sweep.questions.why.labels import POLICY, ROW, numbered, shared_keys, where_equal
from sweep.stats.cell_columns import text
from sweep.store.folder import SweepFolder

MAX_NAMES = 5
"""Policies that a message names."""


def explain(folder: SweepFolder, row: int, other: int) -> Explanation:
    """Run two cells of a sweep again, and compare them job by job."""
    rows = [folder.row(number) for number in (row, other)]
    for key in shared_keys(folder.config()["swept"]):
        if text(rows[0][key]) != text(rows[1][key]):
            values = " and ".join(text(r[key]) for r in rows)
            raise InputError(f"the two cells differ in {key}, too: {values}", rule="two causes")
    runs = [capture_cell(folder, values) for values in rows]
    return Explanation(runs, names(folder, rows))


def names(folder: SweepFolder, rows: list[dict[str, Any]]) -> list[str]:
    """Return the names of the policies of two cells, with the settings in which they differ."""
    own = [key for key in folder.config()["swept"] if key.startswith(f"{POLICY}.")]
    if rows[0][POLICY] != rows[1][POLICY]:
        own = []
    return [
        " ".join([str(r[POLICY]), *(f"{k.partition('.')[2]}={text(r[k])}" for k in own)])
        for r in rows
    ]


def counterpart(folder: SweepFolder, row: int, policy: str) -> int:
    """Return the row of the cell of `policy` that differs from a cell in nothing else.

    Raises
    ------
    InputError
        If there is none, or there are several.
    """
    mine, keys = folder.row(row), shared_keys(folder.config()["swept"])
    table = numbered(folder.cells([POLICY, *keys, *_settings(folder)]))
    for key in keys:
        table = where_equal(table, key, mine[key])
    same = [cell for cell in table.to_pylist() if cell[ROW] != row]
    matching = [cell for cell in same if cell[POLICY] == policy]
    if len(matching) == 1:
        return int(matching[0][ROW])
    if not matching:
        known = list(dict.fromkeys(cell[POLICY] for cell in same))
        shown = ", ".join(map(str, known[:MAX_NAMES])) or "none"
        more = f" and {len(known) - MAX_NAMES} more" if len(known) > MAX_NAMES else ""
        raise InputError(
            f"no other cell of {policy} has the same {', '.join(keys)}; policies that have one: "
            f"{shown}{more}",
            rule="no such cell",
        )
    settings = [_setting(folder, cell) for cell in matching[:MAX_NAMES]]
    more = f" and {len(matching) - MAX_NAMES} more" if len(matching) > MAX_NAMES else ""
    raise InputError(
        f"{policy} has {len(matching)} settings; name one by its row: {'; '.join(settings)}{more}",
        rule="several cells",
    )


def _setting(folder: SweepFolder, cell: Mapping[str, Any]) -> str:
    words = (f"{k}={text(cell[k])}" for k in _settings(folder) if cell[k] is not None)
    return f"--against {cell[ROW]} ({', '.join(words)})"


def _settings(folder: SweepFolder) -> list[str]:
    return [key for key in folder.config()["swept"] if key.startswith(f"{POLICY}.")]
