"""Read the files of an application, or of several that were put together, event by event."""

from __future__ import annotations

import json
import math

from sim.base.reading import BadLineError, BadRows, OnBadRow, broken_text_error, handle_bad_line
from sim.traces.spark_eventlog.application import Application
from sim.traces.spark_eventlog.events import (
    APPLICATION_START,
    LOG_START,
    TASK_START,
    WORK_EVENTS,
    enter_start,
    event_name,
    handle_event,
    identity,
    is_read,
    parse_event,
)
from sim.traces.spark_eventlog.files import TruncatedError, lines
from sim.traces.spark_eventlog.logs import Log, LogFile


def read_log(log: Log, on_bad_row: OnBadRow, bad: BadRows) -> list[Application]:
    """Read the files of a log in pieces; return its applications, mostly one."""
    reader = _Reader(log, on_bad_row, bad)
    for file in log.files:
        reader.read(file)
    if log.n_missing:
        first = reader.applications[0]
        first.notice("a file of a rolled log is missing", log.n_missing)
        first.warnings.append(
            f"{log.path.name}: {log.n_missing:,} of {log.n_missing + len(log.files):,} files of "
            "a rolled log are missing, by their numbers"
        )
    return reader.applications


class _Reader:
    """Reader of the files of a log.

    Events between a LogStart and its ApplicationStart belong to the application that begins; they
    are kept until it is known whether that is another one.
    """

    def __init__(self, log: Log, on_bad_row: OnBadRow, bad: BadRows) -> None:
        self._log = log
        self._on_bad_row = on_bad_row
        self._bad = bad
        self._app = Application(log.path.name)
        self._prelude: list[tuple[int, bytes]] | None = None
        self.applications = [self._app]

    def read(self, file: LogFile) -> None:
        """Read a file."""
        self._app.file_rows.append(self._app.n_rows)
        number = 0
        try:
            for number, line, is_complete in lines(file.path):
                self._read_line(file, number, line, is_complete)
        except TruncatedError as error:
            if self._on_bad_row == "error" and not file.is_unfinished:
                raise broken_text_error(file.path, number + 1, error) from error
            self._app.notice("a truncated compressed file")
            self._app.warnings.append(
                f"{file.path.name} is truncated after line {number}: later events are missing"
            )
        self._flush(file)

    def _read_line(self, file: LogFile, number: int, line: bytes, is_complete: bool) -> None:
        app = self._app
        app.n_events += 1
        name = event_name(line)
        if name == TASK_START:
            self._flush(file)
            enter_start(self._app, line)
            return
        if name == LOG_START and _has_begun(app):
            self._flush(file)
            self._prelude = []
            return
        if not is_read(name):
            return
        if not is_complete and not _is_json(line):
            app.notice("a truncated last line")
            return
        if name == APPLICATION_START:
            self._begin(line)
            self._flush(file)
        elif self._prelude is not None and name and name not in WORK_EVENTS:
            self._prelude.append((number, line))
            return
        else:
            self._flush(file)
        self._handle(file, number, line)

    def _begin(self, line: bytes) -> None:
        """Begin another application, if the start is not that of the present one."""
        try:
            begins = identity(parse_event(line))
        except BadLineError:
            return
        app = self._app
        if _has_begun(app) and begins != (app.app_id, app.begin_ms):
            self._app = Application(self._log.path.name)
            self._app.file_rows.append(0)
            self.applications.append(self._app)

    def _flush(self, file: LogFile) -> None:
        """Enter the events that were kept into the present application."""
        prelude, self._prelude = self._prelude or [], None
        for number, line in prelude:
            self._handle(file, number, line)

    def _handle(self, file: LogFile, number: int, line: bytes) -> None:
        with handle_bad_line(file.path, number, self._on_bad_row, self._bad):
            handle_event(self._app, line)


def _has_begun(app: Application) -> bool:
    return math.isfinite(app.begin_ms) or bool(app.jobs) or bool(app.rows)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
