"""Recorded rows of a sweep that another person may have written: checked before they are used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sim.base.errors import InputError
from sweep.stats.cell_columns import AXES, ERROR
from sweep.store import plain_data
from sweep.store.folder import CELLS, CONFIG, PROVENANCE, SweepFolder, strategy_files

_TEXTS = ("policy", "trace", "status", "config", "key")
_TYPES: Mapping[str, Callable[[pa.DataType], bool]] = {
    **dict.fromkeys((*_TEXTS, *ERROR, "reproduce"), pa.types.is_string),
    "capacity": pa.types.is_float64,
    "seed": pa.types.is_int64,
}
_PRESENT = (*AXES, "status", "config", "key")
"""Columns that have a value in each row."""
_PLAIN = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_string,
          pa.types.is_null)  # fmt: skip
_LISTS, _NAMES = ("words", "config_dirs", "swept", "metrics"), ("baseline", "experiment", "sweep")
_PARTS = ("policy", "trace", "cluster", "evaluator")


def check(folder: SweepFolder) -> None:
    """Refuse a folder whose cells and configuration are not of the form that a sweep writes.

    Raises
    ------
    InputError
        With the file, the column or key, and what it should be.
    """
    config = folder.config()
    for key in _LISTS:
        if not _is_texts(config[key]):
            raise folder.error(CONFIG, f"{key} is {_shown(config[key])}, not a list of texts")
    for key in _NAMES:
        if not isinstance(config.get(key), str | None):
            raise folder.error(CONFIG, f"{key} is {_shown(config[key])}, not a name")
    for key in ("study", *_PARTS):
        if not isinstance(config.get(key), Mapping | None):
            raise folder.error(CONFIG, f"{key} is {_shown(config[key])}, not keys with values")
    if not isinstance(folder.provenance(), Mapping):
        raise folder.error(PROVENANCE, "it has no keys with values")
    _ = folder.verdict(), folder.answer()  # each refuses what it can't read
    _ = [folder.read_json(name) for name in strategy_files() if name.endswith(".json")]
    _check_columns(folder, [*_TYPES, *config["swept"]])


def _check_columns(folder: SweepFolder, required: Sequence[str]) -> None:
    schema = folder.schema()
    for name in required:
        if name not in schema.names:
            raise folder.error(CELLS, f"it has no column {name!r}")
    for field in schema:
        is_right = _TYPES.get(field.name, lambda kind: any(is_plain(kind) for is_plain in _PLAIN))
        if not is_right(field.type):
            raise folder.error(CELLS, f"its column {field.name!r} has the type {field.type}")
    n_rows = 0
    for part in folder.parts(columns=_PRESENT):
        n_rows += part.num_rows
        for name in _PRESENT:
            if part[name].null_count:
                raise folder.error(CELLS, f"its column {name!r} has rows without a value")
    if not n_rows:
        raise folder.error(CELLS, "it has no rows")


def parsed_config(row: int, text: str) -> dict[str, Any]:
    """Parse the configuration of a cell.

    Raises
    ------
    InputError
        If it is not one.
    """
    try:
        config = plain_data.loads(text)
    except ValueError as error:
        raise InputError(f"the configuration of row {row} can't be read: {error}") from error
    if isinstance(config, dict) and all(isinstance(config.get(part), dict) for part in _PARTS):
        return config
    raise InputError(
        f"row {row} has no configuration of a cell: {_shown(config)} lacks one of "
        f"{', '.join(_PARTS)}"
    )


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"
