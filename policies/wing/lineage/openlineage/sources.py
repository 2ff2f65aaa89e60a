"""Files of OpenLineage events, and the events in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from policies.wing.lineage.openlineage.counts import EventCounts
from policies.wing.lineage.openlineage.values import Malformed, json_values
from sim.base.errors import InputError
from sim.base.reading import kind_of_json, open_text

_PEEK_BYTES: Final = 1 << 16
_MAX_CHARACTERS: Final = 4096
_MAX_DEPTH: Final = 4
_JOB_PARTS: Final = ("job", "run", "dataset")


def is_openlineage(path: str | os.PathLike[str]) -> bool:
    """Detect events: the content of a file, or of the first file of a folder, opens as JSON."""
    file = Path(path)
    if file.is_dir():
        first = next(iter(event_files(file)), None)
        return first is not None
    return file.is_file() and _opens_json(file)


def event_files(path: Path) -> list[Path]:
    """Return the files of JSON in a folder and below, in order of their names; or the file."""
    if not path.is_dir():
        return [path]
    inside = sorted(path.rglob("*"))
    return [
        file
        for file in inside
        if file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        and _opens_json(file)
    ]


def _opens_json(file: Path) -> bool:
    if not file.stat().st_size:
        return False
    with open_text(file) as stream:
        try:
            head: bytes = stream.read(_PEEK_BYTES)
        except OSError:  # a damaged file is told where it is read
            return False
    return head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\x1e")[:1] in (b"{", b"[")


def read_values(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the events of a file or folder with their places; `Malformed` for other text.

    An object with a list ``events``, as Marquez answers, holds its events.
    """
    files = event_files(path)
    if not files:
        raise InputError("the folder has no file of JSON", file=path, rule="missing file")
    for file in files:
        label = "" if len(files) == 1 else f"{file.relative_to(path)}:"
        for line, value in json_values(file):
            place = f"{label}{line}"
            if isinstance(value, dict) and isinstance(value.get("events"), list):
                yield from ((place, event) for event in value["events"])
            else:
                yield place, value


def wrapper_key(value: Any) -> str:
    """Return the keys that lead to an event inside a record; empty if there is none, or it is one.

    It may be text, as in a message of Kafka.
    """
    return _path_to_event(value, _MAX_DEPTH) or ""


def _path_to_event(value: Any, depth: int) -> str | None:
    if isinstance(value, str) and '"eventTime"' in value and value.lstrip().startswith("{"):
        return ""
    if not isinstance(value, dict):
        return None
    if "eventTime" in value and any(part in value for part in _JOB_PARTS):
        return ""
    if depth:
        for key, inner in value.items():
            rest = _path_to_event(inner, depth - 1)
            if rest is not None:
                return f"{key}.{rest}" if rest else str(key)
    return None


def nothing_read(path: Path, counts: EventCounts) -> InputError:
    """Return the error of a file without an event of a run: why its records are none."""
    n_values = counts.n_values
    if not n_values:
        return InputError("holds no event", file=path, rule="empty file")
    records = "the only record" if n_values == 1 else f"each of {n_values:,} records"
    if counts.wrapper:
        text = (
            f"{records} has its OpenLineage event under {counts.wrapper!r}; write the events "
            "themselves, one a line, such as with jq -c '.. | objects | select(has(\"eventTime\"))'"
        )
        return InputError(text, file=path, rule="wrapped events")
    reasons = [f"{n:,} {rule}" for rule, n in counts.statics.items()]
    if counts.bad:
        place, reason = counts.bad[0]
        reasons.append(f"{len(counts.bad):,} malformed, the first in line {place}: {reason}")
    text = f"none of {n_values:,} records is an OpenLineage event of a run: {'; '.join(reasons)}"
    return InputError(text, file=path, rule="no event")


def malformed_reason(value: Any, reason: str) -> str:
    """Return the reason why a value is no event, with the keys of an object that has none of it."""
    if isinstance(value, Malformed):
        return value.reason
    wrapper = wrapper_key(value)
    if wrapper:
        return f"the event is under {wrapper!r}"
    if isinstance(value, dict) and not {"eventTime", "eventType", *_JOB_PARTS} & {*value}:
        keys = ", ".join(str(key)[:30] for key in list(value)[:5]) or "none"
        kind = kind_of_json(json.dumps(value)[:_MAX_CHARACTERS])
        return f"{reason}; its keys: {keys}" + (f"; it looks like {kind}" if kind else "")
    return reason
