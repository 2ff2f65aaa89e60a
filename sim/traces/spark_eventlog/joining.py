"""Join the logs of one application.

An application is known by its id and its start: ids of a local or a standalone master repeat. A
file without an application's start (a part of a rolled log) goes to the application of the same
Spark context, else to that of its folder, unless the two contradict each other: a job or attempt of
a stage starts at two times, or there are events after the application's end.
"""

from __future__ import annotations

import contextlib
import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from sim.base.errors import InputError
from sim.base.reading import BadLineError
from sim.traces.spark_eventlog.events import (
    APPLICATION_END,
    APPLICATION_START,
    JOB_START,
    STAGE_SUBMITTED,
    WORK_EVENTS,
    event_name,
    identity,
    parse_event,
)
from sim.traces.spark_eventlog.fields import number_or
from sim.traces.spark_eventlog.files import TruncatedError, lines
from sim.traces.spark_eventlog.logs import Log

_MAX_HEAD_LINES: Final = 1000
_TIMES: Final = (
    "Timestamp", "time", "Completion Time", "Finish Time", "Submission Time", "Launch Time",
)  # fmt: skip


@dataclass(frozen=True)
class _Head:
    """Beginning of a log.

    Attributes
    ----------
    application : (str, float) or None
        Id and start (ms) of the application, if the log has its start.
    context : str
        Databricks' id of the Spark context; empty for none.
    rollover : float
        Databricks' number of the file.
    first_ms : float
        Time of the first event that has one.
    """

    application: tuple[str, float] | None = None
    context: str = ""
    rollover: float = math.inf
    first_ms: float = math.inf


@dataclass(frozen=True)
class _Body:
    """Times at which jobs and attempts of stages start, by their numbers; the application's end."""

    starts: dict[tuple[str, float, float], float]
    end_ms: float


class _Piece:
    """A log that is an application or a part of one."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.head = _read_head(log)

    @cached_property
    def body(self) -> _Body:
        """Evidence against another log's being of the same application; read if needed."""
        return _read_body(self.log)


def join_logs(logs: list[Log]) -> list[Log]:
    """Join the logs of one application, in the order of their first events."""
    if len(logs) == 1:
        return logs
    groups: list[list[_Piece]] = []
    pieces = [_Piece(log) for log in logs]
    for piece in sorted(pieces, key=lambda piece: piece.head.application is None):
        group = _group(piece, groups)
        if group is None:
            groups.append([piece])
        else:
            group.append(piece)
    return [_joined(group) for group in groups]


def _group(piece: _Piece, groups: list[list[_Piece]]) -> list[_Piece] | None:
    """Return the group of the application that a log belongs to; None if it is of its own."""
    head = piece.head
    if head.application is not None:
        fitting = [group for group in groups if group[0].head.application == head.application]
        return next((group for group in fitting if not _contradicts(piece, group)), None)
    context = [group for group in groups if _shares_context(piece, group)]
    folder = [group for group in groups if _shares_folder(piece, group)]
    unknown = [group for group in folder if not (head.context and group[0].head.context)]
    fitting = [group for group in context if group in folder] or context or unknown
    if len(fitting) > 1:
        fitting = [group for group in fitting if _is_named_after(piece, group)]
    if len(fitting) != 1 or _contradicts(piece, fitting[0]):
        return None
    return fitting[0]


def _shares_context(piece: _Piece, group: list[_Piece]) -> bool:
    context = piece.head.context
    return bool(context) and any(other.head.context == context for other in group)


def _shares_folder(piece: _Piece, group: list[_Piece]) -> bool:
    return any(other.log.path.parent == piece.log.path.parent for other in group)


def _is_named_after(piece: _Piece, group: list[_Piece]) -> bool:
    application = group[0].head.application
    return application is not None and application[0] in piece.log.path.name


def _contradicts(piece: _Piece, group: list[_Piece]) -> bool:
    head, application = piece.head, group[0].head.application
    if head.application is None and application is not None and head.first_ms < application[1]:
        return True
    for other in group:
        if other.body.end_ms < head.first_ms < math.inf:
            return True
        both = piece.body.starts.keys() & other.body.starts.keys()
        if any(piece.body.starts[key] != other.body.starts[key] for key in both):
            return True
    return False


def _joined(group: list[_Piece]) -> Log:
    """Return the log of the pieces in order of their numbers, else of the times of their events.

    Of pieces that begin in the same millisecond, the application's start is first, then those whose
    names have a suffix: a rolled file has the name of the present one and a date or number.
    """
    numbers = {piece.head.rollover for piece in group}
    is_numbered = max(numbers) < math.inf and len({piece.head.context for piece in group}) == 1
    group.sort(
        key=lambda piece: (
            piece.head.rollover if is_numbered else piece.head.first_ms,
            piece.head.application is None,
            str(piece.log.path) + chr(sys.maxunicode),
        )
    )
    n_missing = sum(piece.log.n_missing for piece in group)
    if is_numbered:
        n_missing += int(max(numbers)) + 1 - len(numbers)
    files = tuple(file for piece in group for file in piece.log.files)
    return Log(group[0].log.path, files, n_missing)


def _read_head(log: Log) -> _Head:
    application, context = None, ""
    rollover = first_ms = math.inf
    with contextlib.closing(lines(log.files[0].path)) as text:
        try:
            for number, line, _ in text:
                name = event_name(line)
                try:
                    event = parse_event(line)
                    if name == APPLICATION_START:
                        application = identity(event)
                except BadLineError:  # told where the log is read
                    event = {}
                if math.isinf(first_ms):
                    first_ms = _time_ms(event)
                if "SparkContext Id" in event:
                    context = str(event["SparkContext Id"])
                    rollover = number_or(event.get("Rollover Number"), math.inf)
                if application or name in WORK_EVENTS or number > _MAX_HEAD_LINES:
                    break
        except (TruncatedError, InputError):
            pass
    return _Head(application, context, rollover, first_ms)


def _read_body(log: Log) -> _Body:
    starts: dict[tuple[str, float, float], float] = {}
    end_ms = math.inf
    for file in log.files:
        with contextlib.closing(lines(file.path)) as text:
            try:
                for _, line, _ in text:
                    name = event_name(line)
                    if name not in (JOB_START, STAGE_SUBMITTED, APPLICATION_END):
                        continue
                    try:
                        event = parse_event(line)
                    except BadLineError:  # told where the log is read
                        continue
                    if name == APPLICATION_END:
                        end_ms = _time_ms(event)
                    else:
                        starts.setdefault((name, *_numbers(event)), _time_ms(event))
            except (TruncatedError, InputError):
                continue
    return _Body(starts, end_ms)


def _numbers(event: dict[str, Any]) -> tuple[float, float]:
    """Return the number of a job, or number and attempt of a stage."""
    info = event.get("Stage Info")
    if not isinstance(info, dict):
        return number_or(event.get("Job ID"), -1), 0.0
    return number_or(info.get("Stage ID"), -1), number_or(info.get("Stage Attempt ID"), 0)


def _time_ms(event: dict[str, Any]) -> float:
    """Return the time of an event; inf if it has none."""
    records = [event, event.get("Task Info"), event.get("Stage Info")]
    times = (
        number_or(record.get(key), 0)
        for record in records
        if isinstance(record, dict)
        for key in _TIMES
    )
    return next((time_ms for time_ms in times if time_ms > 0), math.inf)
