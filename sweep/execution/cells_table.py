"""The table of a sweep, ``cells.parquet``: a row a cell.

Of many cells its long texts (what the cell was asked for, the command that runs it again) do not
fit into memory: there is a *narrow* table, of all else and a few more columns, and the whole one in
parts of `ROWS_A_GROUP` rows, as they are written.
"""

from __future__ import annotations

import json
import shlex
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base import columns
from sim.base.masking import mask, mask_under
from sim.base.text import single_line
from sim.cluster.load import CLUSTER_COLUMNS
from sim.metrics import METRICS
from sweep.execution.baseline_metrics import AGAINST_BASELINE, recompute
from sweep.execution.cell_metrics import CellMetrics, Flags
from sweep.execution.plan import IdentityCache, PlannedCell, PreparedGrid
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Grid
from sweep.grid.overrides import quote
from sweep.stats.cell_columns import ABOUT, AXES, ERROR
from sweep.stats.cell_columns import text as shortest
from sweep.store.cell import CellError
from sweep.store.folder import ROWS_A_GROUP, SweepFolder
from sweep.store.shards import KEY_BYTES

_TEXTS = ("policy", "trace", "status")


def narrow(
    prepared: PreparedGrid,
    errors: Mapping[str, CellError],
    cached: Sequence[bool] | Flags | None = None,
) -> pa.Table:
    """Make the narrow table of a sweep that is over; `cached` tells who computed each row.

    The metrics go over into it. Keys are bytes. Errors and commands are of cells that failed, if
    there are any.
    """
    grid, metrics, n = prepared.grid, prepared.metrics, len(prepared.keys)
    labels = {key: _Coded() for key in ("policy", "trace", *grid.swept)}
    capacity, seed = np.empty(n), np.empty(n, np.int64)
    about = np.empty((len(ABOUT), n), bool)
    cluster = IdentityCache(_about)
    for at, cell in enumerate(grid.cells):
        for key, column in labels.items():
            column.add(cell.labels[key])
        capacity[at], seed[at] = cell.capacity, cell.seed
        about[:, at] = cluster(cell.cluster)
    those = _those(prepared, errors)
    failed = {row: dict[str, Any](errors[planned.key]) for row, planned in those}
    status = np.zeros(n, np.int32) if cached is None else np.array(cached, np.int32)
    status[list(failed)] = 2
    table: dict[str, Any] = {
        "policy": labels["policy"].column(columns.strings),
        "trace": labels["trace"].column(columns.strings),
        "capacity": capacity,
        "seed": seed,
        "status": _dictionary(status, columns.strings(["done", "cached", "failed"])),
    }
    for key in grid.swept:
        table[key] = labels[key].column(partial(_swept_column, key))
    for fact in CLUSTER_COLUMNS:
        known, there = metrics.column(fact)
        table[fact] = columns.from_numpy(known, there)
    for name in _names(metrics.names()):
        table[name] = pa.nulls(n) if name in AGAINST_BASELINE else metrics.column(name)[0]
    del metrics
    prepared.metrics = CellMetrics.of_none()  # the table has them all
    if failed:
        for name in ERROR:
            part = name.removeprefix("error_")
            table[name] = columns.strings(failed.get(at, {}).get(part) for at in range(n))
        commands = {at: reproduce(grid, prepared.planned[at]) for at in failed}
        table["reproduce"] = columns.strings(commands.get(at) for at in range(n))
    table |= dict(zip(ABOUT, about, strict=True))
    table["key"] = columns.fixed_binary(prepared.keys, KEY_BYTES)
    made = {k: v if isinstance(v, pa.Array) else columns.from_numpy(v) for k, v in table.items()}
    return recompute(pa.table(made), grid.swept, grid.request.baseline, prepared.cache)


def _those(
    prepared: PreparedGrid, errors: Mapping[str, CellError]
) -> Iterator[tuple[int, PlannedCell]]:
    """Rows of the cells that failed."""
    keys = np.array([bytes.fromhex(key) for key in errors], prepared.keys.dtype)
    for row in np.flatnonzero(np.isin(prepared.keys, keys)).tolist() if len(keys) else ():
        yield row, prepared.planned[row]


def _about(cluster: Mapping[str, Any]) -> tuple[bool, bool]:
    """Tell of a cluster's configuration what `ABOUT` names."""
    return cluster["shape"] == "slots", cluster.get("count") is not None


def parts(prepared: PreparedGrid, table: pa.Table) -> Iterator[pa.Table]:
    """Make the whole table, part by part, from the narrow one."""
    for begin in range(0, table.num_rows, ROWS_A_GROUP):
        part = table.slice(begin, ROWS_A_GROUP)
        cells = [prepared.planned[begin + at] for at in range(part.num_rows)]
        last = (*ERROR, "reproduce", "key")
        made = {name: _plain(part[name]) for name in part.column_names if name not in last}
        for name in ERROR:
            has = name in part.column_names
            made[name] = _plain(part[name]) if has else columns.strings([None] * len(cells))
        made["reproduce"] = columns.strings(reproduce(prepared.grid, row) for row in cells)
        made["config"] = columns.strings(canonical(prepared.shown(row.cell)) for row in cells)
        made["key"] = columns.to_hex(part["key"].combine_chunks())
        yield pa.table(made)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def read(folder: SweepFolder) -> pa.Table:
    """Read the narrow table of a sweep that is over."""
    return pa.concat_tables(_narrowed(part) for part in folder.parts(_TEXTS))


def _narrowed(part: pa.Table) -> pa.Table:
    import pyarrow.compute as pc  # 0.05 s to import: not where nothing is read

    failed = pc.equal(part["status"].cast(pa.string()), "failed")
    none = pa.scalar(None, pa.string())
    found = {
        "reproduce": pc.if_else(failed, part["reproduce"], none),
        "key": columns.from_hex(part["key"].combine_chunks(), KEY_BYTES),
    }
    kept = {name: part[name] for name in part.column_names if name not in ("config", *found)}
    return pa.table({**kept, **found})


class _Coded:
    """A column in which a few values come again and again."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._number: dict[str, int] = {}
        self._numbers = array("i")

    def add(self, value: Any) -> None:
        """Add a row."""
        text = value if type(value) is str else json.dumps(value)
        number = self._number.setdefault(text, len(self._number))
        if number == len(self._values):
            self._values[text] = value
        self._numbers.append(number)

    def column(self, make: Callable[[list[Any]], pa.Array]) -> pa.Array:
        """Return all rows, of the values that are made of those there are."""
        return _dictionary(np.frombuffer(self._numbers, np.int32), make([*self._values.values()]))


def _dictionary(numbers: Any, values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(columns.from_numpy(numbers), values)


def with_status(cells: pa.Table, status: str) -> pa.Table:
    """Return the same table with one status in every row."""
    column = columns.constant(status, cells.num_rows)
    return cells.set_column(cells.column_names.index("status"), "status", column)


def reproduce(grid: Grid, row: PlannedCell) -> str:
    """Write the command that runs this cell alone, in this process, under a debugger's eyes."""
    request = grid.request
    words = [f"{key}={row.cell.labels[key]}" for key in AXES]
    words += [fixed.text for fixed in request.fixed if _applies(fixed.key, row)]
    swept = ((key, row.cell.labels[key]) for key in grid.swept)
    words += [quote(key, value) for key, value in swept if value is not None]
    words += [word for word in request.words if word.startswith("paths.traces=")]
    words += ["launcher=inline"]
    words += [f"--config-dir={folder}" for folder in request.options.user_dirs]
    return mask(" ".join(["python -m sweep", *map(_shell_word, words)]))


def _shell_word(word: str) -> str:
    r"""Quote a word for a shell; control characters as ``$'\x1b'``, fit to be shown and pasted."""
    if single_line(word) == word:
        return shlex.quote(word)
    signs = [sign if single_line(sign) == sign and sign not in "\\'" else "" for sign in word]
    coded = ["".join(f"\\x{byte:02x}" for byte in sign.encode()) for sign in word]
    return f"$'{''.join(sign or code for sign, code in zip(signs, coded, strict=True))}'"


def _applies(key: str, row: PlannedCell) -> bool:
    """Tell whether a fixed key was used by this cell: a policy may lack a parameter."""
    head, _, inner = key.partition(".")
    return head != "policy" or inner.split(".")[0] in row.cell.policy["params"]


def _names(found: Sequence[str]) -> list[str]:
    """Names of all metrics: the known ones in their order, then the others."""
    seen = {name for name in found if name not in CLUSTER_COLUMNS}
    known = [name for name in METRICS if name in seen or name in AGAINST_BASELINE]
    return [*known, *sorted(name for name in seen if name not in METRICS)]


def _masked(key: str, values: Sequence[Any]) -> list[Any]:
    """Mask secrets; values that differ still do, by a number."""
    shown, used = dict[str, Any](), dict[str, int]()
    for value in values:
        text = json.dumps(value)
        if text not in shown:
            masked = mask_under(key, value)
            if masked != value:
                n = used[str(masked)] = used.get(str(masked), 0) + 1
                masked = masked if n == 1 else f"{masked} ({n})"
            shown[text] = masked
    return [shown[json.dumps(value)] for value in values]


def _swept_column(key: str, known: Sequence[Any]) -> pa.Array:
    """Make numbers of numbers and text of everything else; null where a key does not apply."""
    values = _masked(key, known)
    kinds = {type(value) for value in values if value is not None}
    if kinds and (kinds <= {bool} or kinds <= {int, float}):
        kind = (bool if kinds == {bool} else np.int64) if len(kinds) == 1 else np.float64
        kind = np.float64 if float in kinds else kind
        return columns.nullable(values, kind)
    return columns.strings([None if v is None else shortest(v) for v in values])
