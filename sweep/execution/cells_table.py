"""Table of a sweep, ``cells.parquet``: one row per cell.

The long texts of many cells (configuration, command that reproduces the cell) do not fit into
memory. So there is a *narrow* table without them, and the full one in parts of `ROWS_A_GROUP` rows,
as they are written.
"""

from __future__ import annotations

import json
import shlex
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

import policies
from policies.knows import OMNISCIENT
from sim.base import columns
from sim.base.masking import mask, mask_under
from sim.base.text import single_line
from sim.cluster.load import CLUSTER_COLUMNS
from sim.metrics import METRICS
from sim.metrics.groups import metric_order
from sweep.execution.baseline_metrics import AGAINST_BASELINE, recompute
from sweep.execution.cell_metrics import CellMetrics, Flags
from sweep.execution.plan import IdentityCache, PlannedCell, PreparedGrid
from sweep.execution.undeclared import find_undeclared
from sweep.grid import what_ifs
from sweep.grid.cluster_checks import cost_month
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Grid, build_policy
from sweep.grid.overrides import quote
from sweep.stats.cell_columns import ABOUT, AXES, BOOTSTRAP, COST, ERROR, KNOWS, UNDECLARED
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
    """Build the narrow table of a finished sweep; `cached` flags rows that were computed before.

    The metrics are moved into it. Keys are bytes. Errors and commands are given for failed cells
    alone.
    """
    grid, metrics, n = prepared.grid, prepared.metrics, len(prepared.keys)
    labels = {key: _DictionaryColumn() for key in ("policy", "trace", *grid.swept)}
    capacity, seed = np.empty(n), np.empty(n, np.int64)
    flags = np.empty((len(ABOUT), n), bool)
    undeclared = find_undeclared(planned.cell.policy for planned in prepared.representatives)
    cluster_flags = IdentityCache(_cluster_flags)
    knowledge = IdentityCache(partial(_knowledge, undeclared))
    knows = _DictionaryColumn()
    for row, cell in enumerate(grid.cells):
        for key, column in labels.items():
            column.add(cell.labels[key])
        capacity[row], seed[row] = cell.capacity, cell.seed
        durations, is_oracle = knowledge(cell.policy)
        knows.add(durations)
        flags[:, row] = *cluster_flags(cell.cluster), is_oracle
    failed_cells = _failed_cells(prepared, errors)
    failed = {row: dict[str, Any](errors[planned.key]) for row, planned in failed_cells}
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
        table[key] = labels[key].column(partial(swept_column, key))
    table[KNOWS] = knows.column(columns.strings)
    for fact in CLUSTER_COLUMNS:
        values, is_present = metrics.column(fact)
        table[fact] = columns.from_numpy(values, is_present)
    unit_costs = IdentityCache(lambda cluster: cost_month(cluster, 1.0))
    costs = np.array([unit_costs(cell.cluster) for cell in grid.cells], np.float64)
    if not np.isnan(costs).all():
        costs *= metrics.column("n_machines")[0]
        table[COST] = columns.from_numpy(costs, ~np.isnan(costs))
    for name in _metric_order(metrics.names()):
        table[name] = pa.nulls(n) if name in AGAINST_BASELINE else metrics.column(name)[0]
    del metrics
    prepared.metrics = CellMetrics.empty()  # the table has them now
    if failed:
        for name in ERROR:
            part = name.removeprefix("error_")
            table[name] = columns.strings(failed.get(row, {}).get(part) for row in range(n))
        commands = {row: reproduce(grid, prepared.planned[row]) for row in failed}
        table["reproduce"] = columns.strings(commands.get(row) for row in range(n))
    table |= dict(zip(ABOUT, flags, strict=True))
    if grid.request.bootstrap is not None:
        table[BOOTSTRAP] = np.ones(n, bool)
    table["key"] = columns.fixed_binary(prepared.keys, KEY_BYTES)
    arrays = {k: v if isinstance(v, pa.Array) else columns.from_numpy(v) for k, v in table.items()}
    return recompute(pa.table(arrays), grid.swept, grid.request.baseline, prepared.cache)


def _failed_cells(
    prepared: PreparedGrid, errors: Mapping[str, CellError]
) -> Iterator[tuple[int, PlannedCell]]:
    """Yield the rows of the cells that failed."""
    keys = np.array([bytes.fromhex(key) for key in errors], prepared.keys.dtype)
    for row in np.flatnonzero(np.isin(prepared.keys, keys)).tolist() if len(keys) else ():
        yield row, prepared.planned[row]


def _cluster_flags(cluster: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return the flags of `ABOUT` about a cluster's configuration."""
    return cluster["shape"] == "slots", cluster.get("count") is not None


def _knowledge(
    undeclared: Mapping[str, Sequence[str]], policy: Mapping[str, Any]
) -> tuple[str | None, bool]:
    """Return a policy's knowledge of durations, and whether it is an oracle."""
    built = build_policy(policy)
    knows = built.may_know if built else None
    if policy["name"] in undeclared and knows != OMNISCIENT:
        return UNDECLARED, True
    return (knows.durations, knows.is_oracle) if knows else (None, False)


def parts(prepared: PreparedGrid, table: pa.Table) -> Iterator[pa.Table]:
    """Build the full table, part by part, from the narrow one."""
    for begin in range(0, table.num_rows, ROWS_A_GROUP):
        part = table.slice(begin, ROWS_A_GROUP)
        cells = [prepared.planned[begin + row] for row in range(part.num_rows)]
        late_columns = (*ERROR, "reproduce", "key")
        full = {
            name: _decoded(part[name]) for name in part.column_names if name not in late_columns
        }
        for name in ERROR:
            has = name in part.column_names
            full[name] = _decoded(part[name]) if has else columns.strings([None] * len(cells))
        full["reproduce"] = columns.strings(reproduce(prepared.grid, cell) for cell in cells)
        full["config"] = columns.strings(
            canonical(prepared.masked_config(cell.cell)) for cell in cells
        )
        full["key"] = columns.to_hex(part["key"].combine_chunks())
        yield pa.table(full)


def _decoded(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def read(folder: SweepFolder) -> pa.Table:
    """Read the narrow table of a finished sweep."""
    return pa.concat_tables(_narrow_part(part) for part in folder.parts(_TEXTS))


def _narrow_part(part: pa.Table) -> pa.Table:
    import pyarrow.compute as pc  # 0.05 s to import: not where nothing is read

    failed = pc.equal(part["status"].cast(pa.string()), "failed")
    null = pa.scalar(None, pa.string())
    replaced = {
        "reproduce": pc.if_else(failed, part["reproduce"], null),
        "key": columns.from_hex(part["key"].combine_chunks(), KEY_BYTES),
    }
    columns_kept = {
        name: part[name] for name in part.column_names if name not in ("config", *replaced)
    }
    return pa.table({**columns_kept, **replaced})


class _DictionaryColumn:
    """Builder of a column with few distinct values."""

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
        """Build the dictionary column; `make` turns the distinct values into an array."""
        return _dictionary(np.frombuffer(self._numbers, np.int32), make([*self._values.values()]))


def _dictionary(numbers: Any, values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(columns.from_numpy(numbers), values)


def with_status(cells: pa.Table, status: str) -> pa.Table:
    """Return the table with one status in every row."""
    column = columns.constant(status, cells.num_rows)
    return cells.set_column(cells.column_names.index("status"), "status", column)


def reproduce(grid: Grid, row: PlannedCell) -> str:
    """Write the command that runs this cell alone, in this process, as for a debugger."""
    request = grid.request
    labels = dict(row.cell.labels)
    if own := request.own_traces.get(labels["trace"]):
        labels["trace"] = f"{labels['trace']}:{own.format}:{own.path}"
    words = [f"{key}={labels[key]}" for key in AXES]
    words += [fixed.text for fixed in request.fixed if _applies(fixed.key, row)]
    swept = ((key, row.cell.labels[key]) for key in grid.swept)
    words += [quote(key, value) for key, value in swept if value is not None]
    words += ["what_if.today=false"] * any(_is_change(word) for word in words)
    words += [word for word in request.words if word.startswith("paths.traces=")]
    words += ["launcher=inline"]
    words += [f"--config-dir={folder}" for folder in request.options.recorded_dirs]
    return mask(" ".join(["python -m sweep", *map(_shell_word, words)]))


def _is_change(word: str) -> bool:
    return word.startswith("what_if.")


@lru_cache(maxsize=4096)  # the commands of a million cells are made of a few hundred words
def _shell_word(word: str) -> str:
    r"""Quote a word for a shell, control characters as ``$'\x1b'``: safe to print and paste."""
    if single_line(word) == word:
        return shlex.quote(word)
    plain = [c if single_line(c) == c and c not in "\\'" else "" for c in word]
    escaped = ["".join(f"\\x{byte:02x}" for byte in c.encode()) for c in word]
    return f"$'{''.join(c or e for c, e in zip(plain, escaped, strict=True))}'"


def _applies(key: str, row: PlannedCell) -> bool:
    """Tell whether the cell uses a fixed key: a policy may lack a parameter, or add no trace."""
    if key.startswith(what_ifs.ADDED):
        return row.cell.labels[what_ifs.ADD_AXIS] is not None
    head, _, inner = key.partition(".")
    parameter, policy = inner.split(".")[0], row.cell.policy
    if head != "policy" or parameter not in policy["params"]:
        return head != "policy"
    return parameter not in policies.spec(policy["name"]).fixed


def _metric_order(names: Sequence[str]) -> list[str]:
    """Order metric names: known ones in their order, then the others."""
    present = {name for name in names if name not in CLUSTER_COLUMNS}
    known = [name for name in METRICS if name in present or name in AGAINST_BASELINE]
    return [*known, *sorted(present - {*METRICS}, key=metric_order)]


def _masked(key: str, values: Sequence[Any]) -> list[Any]:
    """Mask secrets; values that differ are told apart by a number."""
    masked_config, used = dict[str, Any](), dict[str, int]()
    for value in values:
        text = json.dumps(value)
        if text not in masked_config:
            masked = mask_under(key, value)
            if masked != value:
                n = used[str(masked)] = used.get(str(masked), 0) + 1
                masked = masked if n == 1 else f"{masked} ({n})"
            masked_config[text] = masked
    return [masked_config[json.dumps(value)] for value in values]


def swept_column(key: str, known: Sequence[Any]) -> pa.Array:
    """Build a column of numbers, or of text if any value is not one; null where not used."""
    values = _masked(key, known)
    kinds = {type(value) for value in values if value is not None}
    if kinds and (kinds <= {bool} or kinds <= {int, float}):
        kind = (bool if kinds == {bool} else np.int64) if len(kinds) == 1 else np.float64
        kind = np.float64 if float in kinds else kind
        return columns.nullable(values, kind)
    return columns.strings([None if v is None else shortest(v) for v in values])
