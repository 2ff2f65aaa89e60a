"""Parsers of what Slurm's commands print: ``scontrol show ...`` and ``sacctmgr -P show ...``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from sim.base.errors import InputError
from sim.base.reading import read_bytes
from sim.traces.slurm_site.slurm_conf import Record

_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/:]*)=")
NOTHING = ("", "(null)", "N/A", "n/a", "None", "NONE", "none", "Unknown", "UNLIMITED", "INFINITE")
"""Values that mean that nothing is set."""


def read_scontrol(path: Path, key: str) -> dict[str, Record]:
    """Return the records of ``scontrol show``, one a line (``-o``) or over several lines.

    Parameters
    ----------
    key : str
        The key that begins a record, such as ``NodeName``.

    Returns
    -------
    dict of str to dict
        Values by key in lower case, by name.
    """
    records: dict[str, Record] = {}
    text = read_bytes(path).decode("utf-8", "replace")
    for block in re.split(rf"(?m)^(?={key}=)", text):
        matches = list(_KEY.finditer(block))
        if not matches or matches[0][1] != key:
            continue
        ends = [match.start() for match in matches[1:]] + [len(block)]
        record = {
            match[1].lower(): block[match.end() : end].strip()
            for match, end in zip(matches, ends, strict=True)
        }
        records[record.pop(key.lower())] = record
    return records


def read_table(path: Path, needed: Sequence[str]) -> list[Record]:
    """Return the rows of a table of ``sacctmgr --parsable2``, by column in lower case, no spaces.

    Raises
    ------
    InputError
        If a needed column is missing, or a row has another number of fields.
    """
    lines = read_bytes(path).decode("utf-8", "replace").splitlines()
    names = [name.replace(" ", "").lower() for name in (lines[0] if lines else "").split("|")]
    for name in needed:
        if name.lower() not in names:
            raise InputError(
                f"the table has no column {name}; write it with sacctmgr --parsable2, and with its "
                "header",
                file=path,
                line=1,
                rule="missing column",
            )
    rows = []
    for number, line in enumerate(lines[1:], 2):
        values = line.split("|")
        if len(values) == len(names) + 1 and not values[-1]:
            values.pop()  # --parsable ends each line with the delimiter
        if line.strip() and len(values) != len(names):
            text = f"{len(values)} fields, where the header has {len(names)}"
            raise InputError(text, file=path, line=number, rule="wrong number of fields")
        if line.strip():
            rows.append(dict(zip(names, values, strict=True)))
    return rows


def is_set(value: str | None) -> bool:
    """Tell whether a value says something."""
    return value is not None and value not in NOTHING


def span_s(text: str) -> float | None:
    """Return a time of Slurm's, s: minutes, ``[days-]hours:minutes:seconds``; None for no limit.

    >>> span_s("90"), span_s("1-0"), span_s("08:00:00"), span_s("30:00"), span_s("UNLIMITED")
    (5400.0, 86400.0, 28800.0, 1800.0, None)
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if match is None:
        return None
    days, a, b, c = (int(part) if part else None for part in match.groups())
    if days is not None or c is not None:
        return (days or 0) * 86400.0 + (a or 0) * 3600.0 + (b or 0) * 60.0 + (c or 0)
    return (a or 0) * 60.0 + (b or 0)


def time_s(text: str) -> float | None:
    """Return a time such as ``2026-03-01T09:30:00``, s since 1970 by the log's own clock."""
    try:
        return datetime.fromisoformat(text[:19]).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def amounts(text: str) -> dict[str, float]:
    """Return trackable resources, ``cpu=96,mem=62.50G,gres/gpu=6``, by name; memory in GiB.

    >>> amounts("cpu=96,mem=512G,gres/gpu=6,node=4")
    {'cpu': 96.0, 'mem': 512.0, 'gres/gpu': 6.0, 'node': 4.0}
    """
    by_name: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", value)
        if match:
            scale = {
                "": 2.0**-10,
                "K": 2.0**-20,
                "M": 2.0**-10,
                "G": 1.0,
                "T": 2.0**10,
                "P": 2.0**20,
            }
            by_name[name] = float(match[1]) * (scale[match[2]] if name == "mem" else 1.0)
    return by_name
