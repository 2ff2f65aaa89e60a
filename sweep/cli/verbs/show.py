"""Show a cell of a sweep that is over: configuration, metrics, error; or list its cells."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from sim.base.errors import InputError
from sweep.cli import say
from sweep.cli.command import Command
from sweep.grid.config_tree import to_yaml
from sweep.stats.arrange import NOT_METRICS
from sweep.store.folder import SweepFolder

USAGE = "[SWEEP] [CELL] [paths.results=DIR]"

LEAST_OF_KEY = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.epilog = (
        "CELL is the number of a row, or the beginning of a key; without it all cells are listed."
    )


def run(command: Command) -> int:
    """Print the cell, or the list."""
    results = command.results()
    names = list(command.names)
    if len(names) > 2:
        raise InputError(f"show takes a sweep and a cell, not {' '.join(names)}")
    sweep: str | None = None
    if len(names) == 2 or (names and not _looks_like_cell(names[0])):
        sweep = names.pop(0)
    folder = SweepFolder.find(results, sweep)
    rows = folder.cells().to_pylist()
    swept = folder.config()["swept"]
    if not names:
        print(_list(rows, swept))
    else:
        print(_cell(_find(rows, names[0], folder.sweep), swept))
    return 0


def _looks_like_cell(word: str) -> bool:
    return word.isdigit() or (len(word) >= LEAST_OF_KEY and set(word) <= set("0123456789abcdef"))


def _find(rows: list[dict[str, Any]], word: str, sweep: str) -> dict[str, Any]:
    if word.isdigit() and int(word) < len(rows):
        return {"row": int(word), **rows[int(word)]}
    found = [at for at, row in enumerate(rows) if row["key"].startswith(word)]
    if len(word) < LEAST_OF_KEY or not found:
        raise InputError(
            f"{sweep} has no cell {word!r}; valid: 0 to {len(rows) - 1}, or the first "
            f"{LEAST_OF_KEY} or more characters of a key"
        )
    return {"row": found[0], **rows[found[0]]}


def _list(rows: list[dict[str, Any]], swept: list[str]) -> str:
    header = ["row", "policy", "trace", "capacity", "seed", *swept, "status", "key", "error"]
    lines = []
    for at, row in enumerate(rows):
        labels = [_text(row[key]) for key in header[1:-3]]
        lines.append([str(at), *labels, row["status"], row["key"][:12], row["error_message"] or ""])
    return say.rows_as_text(header, lines)


def _cell(row: Mapping[str, Any], swept: list[str]) -> str:
    metrics = {
        name: value
        for name, value in row.items()
        if name not in NOT_METRICS and name not in swept and isinstance(value, float)
    }
    labels = {key: row[key] for key in ("policy", "trace", "capacity", "seed", *swept)}
    lines = [
        f"row {row['row']}: {row['status']}",
        f"key {row['key']}",
        "",
        to_yaml({"cell": labels, "config": json.loads(row["config"])}).rstrip(),
        "",
    ]
    if row["status"] == "failed":
        lines += [f"{row['error_type']} ({row['error_stage']}): {row['error_message']}"]
        lines += [row["error_traceback"] or ""]
    else:
        width = max(map(len, metrics), default=0)
        lines += [f"{name.ljust(width)}  {value:.6g}" for name, value in metrics.items()]
        lines += [""]
    return "\n".join([*lines, f"reproduce: {row['reproduce']}"])


def _text(value: object) -> str:
    return "" if value is None else str(value)
