"""Reader of OpenLineage events (JSON lines, or one JSON list) into the two logs.

Each run becomes a job: ``START`` gives its start (events have no submission time), ``COMPLETE``,
``FAIL`` or ``ABORT`` its end; without these it starts at its first event, or ends at its last. Each
input of a run is read at its start. Each output is written at its end, unless it failed or was
aborted. Events about a job or a dataset without a run (JobEvent, DatasetEvent) are only counted. A
file's name is the dataset's ``namespace/name``, a template's name is the job's, and the queue is
the job's namespace. See https://openlineage.io/spec.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from sim.base.errors import InputError
from sim.base.reading import OnBadRow, json_values, parse_json, read_text
from sim.lineage.logs import Logs, make_logs

_ENDS = {"COMPLETE": "done", "FAIL": "failed", "ABORT": "failed"}
_TYPES = ("START", "RUNNING", "OTHER", *_ENDS)
_PEEK = 1 << 16


def is_openlineage(path: str | os.PathLike[str]) -> bool:
    """Detect events: the file's first character opens a JSON object or list."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(_PEEK).lstrip()[:1] in (b"{", b"[")


def read_events(path: str | os.PathLike[str], on_bad_row: OnBadRow = "skip") -> Logs:
    """Read OpenLineage events as logs."""
    runs: dict[str, dict[str, Any]] = {}
    bad: list[tuple[int, str]] = []
    statics: dict[str, int] = {}
    n_seen = 0
    for line, event in _events(Path(path)):
        n_seen += 1
        try:
            static = _static_rule(event)
            if static:
                statics[static] = statics.get(static, 0) + 1
            else:
                _add_event(event, runs)
        except _MalformedError as error:
            if on_bad_row == "error":
                raise InputError(
                    f"{error}; fix the event, or skip it", file=path, line=line, rule="malformed"
                ) from None
            bad.append((line, str(error)))
    if not n_seen:
        raise InputError("holds no event", file=path, rule="empty file")
    logs = _logs(runs)
    if bad:
        shown = ", ".join(f"{line} ({why})" for line, why in bad[:5])
        more = ", …" if len(bad) > 5 else ""
        logs.report[f"events: malformed, lines {shown}{more}"] = len(bad)
    n_lost = sum(len(run["outputs"]) for run in runs.values() if run["outcome"] != "done")
    n_open = sum(run["end_s"] is None for run in runs.values())
    anomalies = {"outputs of runs that failed": n_lost, "runs that did not end": n_open}
    logs.report.update({f"events: {rule}": n for rule, n in {**statics, **anomalies}.items() if n})
    return logs


class _MalformedError(Exception):
    """An event lacks a field, which the message names."""


def _events(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line, event); a line that is not JSON is yielded as text."""
    if path.is_file() and not path.stat().st_size:
        return
    text = read_text(path)
    if text.lstrip().startswith("["):
        begin = text.index("[") + 1
        yield from json_values(path, text, begin, between=" \t\r\n,", end="]")
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield number, parse_json(line)
            except ValueError:
                yield number, line


def _static_rule(event: Any) -> str:
    """Return the report rule of an event without a run; the empty string for events of runs."""
    if not isinstance(event, dict) or "run" in event or "eventType" in event:
        return ""
    kind = "dataset" if "dataset" in event else "job"
    if not isinstance(event.get(kind), dict):
        return ""
    _time(event.get("eventTime"))
    if not isinstance(event[kind].get("name"), str) or not event[kind]["name"]:
        raise _MalformedError(f"no {kind} name")
    return f"of a {kind}, not of a run"


def _add_event(event: Any, runs: dict[str, dict[str, Any]]) -> None:
    """Add one event to its run."""
    if not isinstance(event, dict):
        raise _MalformedError("no JSON object")
    time_s = _time(event.get("eventTime"))
    kind = event.get("eventType", "OTHER")
    if kind not in _TYPES:
        raise _MalformedError(f"eventType {kind!r}")
    job = event.get("job")
    name = job.get("name") if isinstance(job, dict) else None
    if not isinstance(job, dict) or not isinstance(name, str) or not name:
        raise _MalformedError("no job name")
    run_id = event["run"].get("runId") if isinstance(event.get("run"), dict) else None
    if not isinstance(run_id, str) or not run_id:
        raise _MalformedError("no runId")
    named = {side: _datasets(event.get(side)) for side in ("inputs", "outputs")}
    space = str(job.get("namespace") or "")
    run = runs.setdefault(
        f"{space}/{name}/{run_id}",
        {"name": name, "queue": space, "source": "", "first_s": time_s, "last_s": time_s,
         "start_s": None, "end_s": None, "outcome": "done", "inputs": {}, "outputs": {}},
    )  # fmt: skip
    run["first_s"], run["last_s"] = min(run["first_s"], time_s), max(run["last_s"], time_s)
    run["source"] = run["source"] or _source(job)
    if kind == "START":
        run["start_s"] = time_s if run["start_s"] is None else min(run["start_s"], time_s)
    elif kind in _ENDS:
        run["end_s"], run["outcome"] = time_s, _ENDS[kind]
    for side, names in named.items():
        run[side].update(dict.fromkeys(names))


def _time(text: Any) -> float:
    try:
        when = dt.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise _MalformedError(f"eventTime {text!r}") from None
    zoned = when if when.tzinfo else when.replace(tzinfo=dt.timezone.utc)  # noqa: UP017
    return zoned.timestamp()


def _datasets(entries: Any) -> list[str]:
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(
        isinstance(d, dict) and isinstance(d.get("name"), str) for d in entries
    ):
        raise _MalformedError("a dataset without a name")
    return [f"{d.get('namespace') or ''}/{d['name']}" for d in entries]


def _source(job: dict[str, Any]) -> str:
    """Return the text of the SQL or source code facet, if there is one."""
    facets = job.get("facets")
    for facet, key in (("sql", "query"), ("sourceCode", "sourceCode")):
        known = facets.get(facet) if isinstance(facets, dict) else None
        if isinstance(known, dict) and isinstance(known.get(key), str):
            return str(known[key])
    return ""


def _logs(runs: dict[str, dict[str, Any]]) -> Logs:
    begin_s = [r["first_s"] if r["start_s"] is None else r["start_s"] for r in runs.values()]
    end_s = [r["last_s"] if r["end_s"] is None else r["end_s"] for r in runs.values()]
    rows: list[tuple[float, str, str, str]] = []
    for (job, run), first_s, last_s in zip(runs.items(), begin_s, end_s, strict=True):
        rows += [(first_s, job, "read", dataset) for dataset in run["inputs"]]
        if run["outcome"] == "done":
            rows += [(last_s, job, "write", dataset) for dataset in run["outputs"]]
    rows.sort(key=lambda row: row[0])
    columns = ("time_s", "job", "operation", "file")
    operations = {name: [row[i] for row in rows] for i, name in enumerate(columns)}
    jobs = {
        "job_id": list(runs),
        "template_name": [r["name"] for r in runs.values()],
        "signature": [r["source"] for r in runs.values()],
        "queue": [r["queue"] for r in runs.values()],
        "submit_s": begin_s,
        "finish_s": end_s,
        "outcome": [r["outcome"] for r in runs.values()],
    }
    return make_logs(_table(operations), _table(jobs))


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    types = {name: pa.float64() if name.endswith("_s") else pa.string() for name in columns}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})
