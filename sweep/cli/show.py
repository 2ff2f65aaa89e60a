"""Verbs about a finished sweep: its cells, its report."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sim.base.errors import InputError
from sim.base.text import label, printable, table_lines
from sweep import driver
from sweep.cli.command import Command
from sweep.execution import baseline_metrics, cells_table
from sweep.grid import request
from sweep.grid.config_tree import to_yaml
from sweep.grid.overrides import Assignment
from sweep.report.contribution import Finished
from sweep.stats.cell_columns import ALL_METRICS, AXES, NOT_METRICS
from sweep.store.cache import Cache
from sweep.store.folder import FINDINGS, HTML, MARKDOWN, SweepFolder

MIN_KEY_LENGTH, KEY_SHOWN = 6, 12
REPORTS = "reports"
SIMULATION = "simulation"
"""Default evaluator."""


def show_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.usage = f"{parser.prog} [SWEEP] [CELL] [paths.results=DIR] [flags]"
    parser.epilog = (
        "CELL is a row number or the first characters of a key; without it all cells are listed."
    )


def show(command: Command) -> int:
    """Show a cell of a finished sweep: configuration, metrics, error; or list all cells."""
    folder, cell = chosen_cell(command)
    swept = folder.config()["swept"]
    if cell is None:
        _list(folder, swept)
    else:
        number = find_row(folder, cell)
        print(printable(_cell({"row": number, **folder.row(number)}, swept)))
    return 0


def chosen_cell(command: Command) -> tuple[SweepFolder, str | None]:
    """Find the sweep that the words of ``show`` name, and the word of a cell; None without one."""
    results = command.results()
    names = list(command.names)
    if len(names) > 2:
        raise InputError(f"show takes a sweep and a cell, not {' '.join(names)}")
    sweep: str | None = None
    if len(names) == 2 or (names and not _looks_like_cell(names[0])):
        sweep = names.pop(0)
    return driver.open_intact(results, sweep), names[0] if names else None


def _looks_like_cell(word: str) -> bool:
    return word.isdigit() or (len(word) >= MIN_KEY_LENGTH and set(word) <= set("0123456789abcdef"))


def find_row(folder: SweepFolder, word: str) -> int:
    """Return the row of a cell."""
    import pyarrow.compute as pc  # 0.05 s to import

    keys = folder.cells(["key"])["key"]
    if word.isdigit() and int(word) < len(keys):
        return int(word)
    number = pc.index(pc.starts_with(keys, word), True).as_py()
    if len(word) < MIN_KEY_LENGTH or number < 0:
        raise InputError(
            f"{folder.sweep} has no cell {word!r}; valid: 0 to {len(keys) - 1}, or the first "
            f"{MIN_KEY_LENGTH} or more characters of a key"
        )
    return int(number)


def _list(folder: SweepFolder, swept: list[str]) -> None:
    """Print one line a cell, in parts: there may be very many."""
    names = [*AXES, *swept, "status", "key", "error_message"]
    header = ["row", *names[:-1], "error"]
    n = 0
    for part in folder.parts(columns=names):
        rows = [row | {"key": row["key"][:KEY_SHOWN]} for row in part.to_pylist()]
        lines = [[str(i), *(_text(row[k]) for k in names)] for i, row in enumerate(rows, n)]
        print("\n".join(table_lines(header, lines)[n > 0 :]))
        n += part.num_rows


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
        width = max((len(label(name)) for name in metrics), default=0)
        lines += [f"{label(name).ljust(width)}  {value:.6g}" for name, value in metrics.items()]
        lines += [""]
    return "\n".join([*lines, f"reproduce: {row['reproduce']}"])


def _text(value: object) -> str:
    return "" if value is None else str(value)


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    words = "[SWEEP] [baseline=POLICY] [metrics=A,B] [--gantt ROW] [paths.results=DIR]"
    parser.usage = f"{parser.prog} {words} [flags]"
    parser.add_argument(
        "--gantt", type=int, metavar="ROW", help="draw the schedule of this cell (see `show`)"
    )
    parser.epilog = (
        "With another baseline= or other metrics= the report goes to reports/ in the results; "
        "nothing is run."
    )


def report(command: Command) -> int:
    """Write a sweep's report again, with another baseline= or metrics=."""
    results = command.results("baseline", "metrics")
    folder = driver.open_intact(results, command.sweep())
    cells, config, gantt = cells_table.read(folder), folder.config(), command.flags.gantt
    words = command.assignments("baseline", "metrics")
    if words:
        return _write_variant(folder, words, gantt)
    driver.replace_tables(folder, folder.parts, config, Cache(folder.results))
    driver.write_report(Finished(folder, cells, config, folder.provenance()), gantt=gantt)
    folder.commit()
    return _print_paths(folder)


def _write_variant(folder: SweepFolder, words: Sequence[Assignment], gantt: int | None) -> int:
    """Write the report with another baseline or other metrics, in a folder of its own."""
    config = dict(folder.config())
    for line in words:
        if line.key == "baseline":
            config["baseline"] = None if line.value is None else str(line.value)
        else:
            config["metrics"] = list(request.table_metrics(line, _custom_evaluator(config)))
            for name in config["metrics"]:
                if name not in (ALL_METRICS, *folder.schema().names):
                    raise InputError(f"metrics={name}: no cell of {folder.sweep} has it")
    cache = Cache(folder.results)
    cells = baseline_metrics.recompute(
        cells_table.read(folder), config["swept"], config["baseline"], cache
    )
    name = "--".join([folder.sweep, *(line.text for line in words)])
    other = SweepFolder(folder.results / REPORTS / re.sub(r"[^\w.=,-]", "_", name))
    other.replace(FINDINGS, folder.findings())
    sweep = Finished(other, cells, config, folder.provenance(), name=folder.sweep)
    driver.write_report(sweep, cache=cache, gantt=gantt)
    other.commit()
    return _print_paths(other)


def _custom_evaluator(config: Mapping[str, Any]) -> str | None:
    """Return the evaluator if it is not the default one, else None."""
    names = [name for name in config.get("evaluator", {}) if name != SIMULATION]
    return names[0] if names else None


def _print_paths(folder: SweepFolder) -> int:
    for name in (MARKDOWN, HTML):
        print(folder.path / name)
    return 0
