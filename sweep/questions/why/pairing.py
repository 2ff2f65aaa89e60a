"""The cell of another policy that differs in nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.base.errors import InputError
from sweep.driver.captured_run import capture_cell
from sweep.questions.why.explanation import Explanation
from sweep.stats.cell_columns import AXES, text
from sweep.store.folder import SweepFolder

POLICY = "policy"
MAX_NAMES = 5
"""Policies that a message names."""


def explain(folder: SweepFolder, row: int, other: int) -> Explanation:
    """Run two cells of a sweep again, and compare them job by job."""
    rows = [folder.row(number) for number in (row, other)]
    for key in _shared_keys(folder):
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
    keys = [*_shared_keys(folder), *_settings(folder)]
    table = folder.cells([POLICY, *keys, "status"]).to_pylist()
    mine = table[row]
    same = [
        number
        for number, cell in enumerate(table)
        if number != row and all(text(cell[k]) == text(mine[k]) for k in _shared_keys(folder))
    ]
    matching = [number for number in same if table[number][POLICY] == policy]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        known = list(dict.fromkeys(table[n][POLICY] for n in same))
        shown = ", ".join(map(str, known[:MAX_NAMES])) or "none"
        more = f" and {len(known) - MAX_NAMES} more" if len(known) > MAX_NAMES else ""
        raise InputError(
            f"no other cell of {policy} has the same {', '.join(_shared_keys(folder))}; "
            f"policies that have one: {shown}{more}",
            rule="no such cell",
        )
    settings = [_setting(folder, table[number], number) for number in matching[:MAX_NAMES]]
    more = f" and {len(matching) - MAX_NAMES} more" if len(matching) > MAX_NAMES else ""
    raise InputError(
        f"{policy} has {len(matching)} settings; name one by its row: {'; '.join(settings)}{more}",
        rule="several cells",
    )


def _setting(folder: SweepFolder, cell: Mapping[str, Any], number: int) -> str:
    words = (f"{k}={text(cell[k])}" for k in _settings(folder) if cell[k] is not None)
    return f"--against {number} ({', '.join(words)})"


def _shared_keys(folder: SweepFolder) -> list[str]:
    """Return the columns that say which cell it is, but the policy and its settings."""
    keys = (*AXES, *folder.config()["swept"])
    return [key for key in keys if key.partition(".")[0] != POLICY]


def _settings(folder: SweepFolder) -> list[str]:
    return [key for key in folder.config()["swept"] if key.startswith(f"{POLICY}.")]
