"""The file of probability tables: JSON, short enough to read and to diff."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from sim.base import files
from sim.base.errors import InputError
from sim.synth.alibaba2018 import histogram_text as text
from sim.synth.alibaba2018.joint_text import read_joint, show_joint
from sim.synth.alibaba2018.links_text import read_links, show_links
from sim.synth.alibaba2018.tables import Tables, check_tables

FORMAT = "probability tables 1"
"""First entry of the file; a later, incompatible form gets another number."""

SHIPPED = Path(__file__).with_name("tables.json")
"""The tables of Alibaba's cluster-trace-v2018, which travel with the package."""

_WHOLE = ("n_stages", "n_tasks")
_PLAIN = (*_WHOLE, "duration_s", "interval_s")
_GIVEN = ("length", "level")


def write_tables(tables: Tables, path: str | os.PathLike[str]) -> None:
    """Write `tables` to the file `path`, whole or not at all."""
    parts = [
        f'"format": {json.dumps(FORMAT)}',
        f'"provenance": {json.dumps(tables.provenance, indent=1, ensure_ascii=False)}',
        f'"quantum": {json.dumps(dict(tables.quantum))}',
        *(f'"{name}": {text.show(getattr(tables, name))}' for name in _PLAIN),
        *(f'"{name}": {text.show_cells(getattr(tables, name))}' for name in _GIVEN),
        *(f'"demand {name}": {text.show(table)}' for name, table in tables.demand.items()),
    ]
    if tables.links is not None:
        parts.append(f'"links": {show_links(tables.links)}')
    if tables.joint is not None:
        parts.append(f'"joint": {show_joint(tables.joint)}')
    files.write_text(Path(path), "{\n" + ",\n".join(parts) + "\n}\n")


def read_tables(path: str | os.PathLike[str] = SHIPPED) -> Tables:
    """Read what `write_tables` wrote."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"can't read the tables: {error.strerror}; make them with `python -m sim fit`",
            file=path,
        ) from error
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not a file of tables: {error}", file=path, line=line) from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise InputError(
            f"not a file of tables (no format {FORMAT!r}); make one with `python -m sim fit`",
            file=path,
        )
    needed = (*_PLAIN, *_GIVEN, "quantum")
    missing = [name for name in needed if name not in raw]
    if missing:
        raise InputError(f"no table {missing[0]!r}; needed: {', '.join(needed)}", file=path)
    found: dict[str, Any] = {
        name: text.histogram(raw[name], name, path, 1 if name in _WHOLE else None)
        for name in _PLAIN
    }
    found |= {name: text.conditional(raw[name], name, path) for name in _GIVEN}
    if "links" in raw:
        found["links"] = read_links(raw["links"], path)
    found["demand"] = {
        name.removeprefix("demand "): text.histogram(table, name, path)
        for name, table in raw.items()
        if name.startswith("demand ")
    }
    if "joint" in raw:
        metrics = ("duration_s", "n_tasks", *(f"demand {name}" for name in found["demand"]))
        found["joint"] = read_joint(raw["joint"], metrics, path)
    tables = Tables(
        **found,
        quantum=_quantum(raw["quantum"], path),
        provenance=raw.get("provenance", {}),
    )
    check_tables(tables, path)
    return tables


def _quantum(raw: Any, path: str | os.PathLike[str]) -> dict[str, float]:
    if isinstance(raw, dict) and all(
        isinstance(v, (int, float)) and not isinstance(v, bool) and 0 < v < float("inf")
        for v in raw.values()
    ):
        return {str(k): float(v) for k, v in raw.items()}
    raise InputError("'quantum' must give a positive number for each resource", file=path)
