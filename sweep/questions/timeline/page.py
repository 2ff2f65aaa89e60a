"""An interactive page of one run, or of two above each other: Gantt chart, queue, use, reasons."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base import files, html
from sim.base.errors import InputError
from sim.engine.stops import REASONS
from sweep.questions.timeline.columns import DONE, MAX_TASKS, Timeline, stage_times

_FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Page:
    """The page of some timelines; a notebook shows it in a frame."""

    text: str

    def write(self, path: Path) -> None:
        """Write the page: one file that opens without a network."""
        files.write_text(path, self.text)

    def _repr_html_(self) -> str:
        frame = '<iframe style="width:100%;height:46rem;border:0" srcdoc="{}"></iframe>'
        return frame.format(self.text.replace("&", "&amp;").replace('"', "&quot;"))


def draw(timelines: Sequence[Timeline]) -> Page:
    """Draw runs above each other; they share the time axis.

    Raises
    ------
    InputError
        If a run has more than `MAX_TASKS` tasks.
    """
    for timeline in timelines:
        n = max(timeline.result.workload.columns.n_tasks, len(timeline.task))
        if n > MAX_TASKS:
            raise InputError(
                f"{timeline.title} has {n:,} tasks; a page draws up to {MAX_TASKS:,}: "
                "write --perfetto FILE.json.gz, which takes any number",
                rule="too many tasks",
            )
    template = html.environment(_FOLDER).get_template("timeline.html.j2")
    script = (_FOLDER / "timeline.js").read_text(encoding="utf-8")
    style = html.css() + (_FOLDER / "timeline.css").read_text(encoding="utf-8")
    runs = [_run(timeline) for timeline in timelines]
    return Page(
        template.render(
            title=" and ".join(timeline.title for timeline in timelines),
            runs=[timeline.title for timeline in timelines],
            data=html.script_json(runs),
            js=script,
            css=style,
        )
    )


def _run(timeline: Timeline) -> dict[str, Any]:
    """Return what the page knows of a run: names as JSON, columns as packed binary arrays."""
    result, columns = timeline.result, timeline.result.workload.columns
    cluster = result.cluster
    stages, jobs = result.workload.stages, result.workload.jobs
    stage_names, stage_code = _encoded(stages["name"].to_pylist())
    parent = np.repeat(np.arange(len(timeline.demand), dtype=np.int32), np.diff(columns.edge0))
    lane0 = np.searchsorted(timeline.lane, np.arange(len(timeline.lane_machine) + 1))
    times = stage_times(timeline)
    stops = np.flatnonzero(timeline.reason != DONE)
    arrays: dict[str, NDArray[Any]] = {
        "start": timeline.start_s,
        "finish": timeline.finish_s,
        "ready": timeline.ready_s,
        "stage": timeline.stage.astype(np.int32),
        "pilot": timeline.is_pilot.astype(np.uint8),
        "stopRow": stops.astype(np.int32),
        "stopReason": timeline.reason[stops].astype(np.uint8),
        "stopTask": (timeline.task - columns.stage_task0[timeline.stage])[stops].astype(np.int32),
        "lane0": lane0.astype(np.int32),
        "laneMachine": timeline.lane_machine,
        "stageJob": columns.stage_job,
        "stageName": stage_code,
        "stageTasks": columns.stage_n_tasks.astype(np.int32),
        "stageReady": times["ready"],
        "stageStart": times["start"],
        "stageFinish": times["finish"],
        "demand": timeline.demand.ravel(),
        "edgeParent": parent,
        "edgeChild": columns.edge_child,
        "jobStage0": columns.job_stage0.astype(np.int32),
        "jobSubmit": result.job_submit,
        "jobStart": result.job_start,
        "jobFinish": result.job_finish,
        "jobDeadline": timeline.deadline_s,
        "jobFailed": result.job_failed.astype(np.uint8),
        "jobEstimate": result.estimate_s,
        "jobUtility": _or_nan(result.utility, len(result.job_submit)),
        "jobWorth": _or_nan(result.job_worth, len(result.job_submit)),
        "jobWork": columns.job_work,
        "jobGang": columns.job_min_tasks.astype(np.int32),
        "jobUser": columns.job_user,
        "jobQueue": columns.job_queue,
        "jobTemplate": columns.job_template,
        "capacity": cluster.capacity.ravel(),
    }
    return {
        "title": timeline.title,
        "resources": list(cluster.resources),
        "reasons": list(REASONS),
        "isPool": bool(cluster.unit),
        "machines": list(cluster.names),
        "jobs": [str(name) for name in jobs["job_id"].to_pylist()],
        "stageNames": stage_names,
        "users": list(columns.user_names),
        "queues": list(columns.queue_names),
        "templates": list(columns.template_names),
        **_packed(arrays),
    }


def _or_nan(column: NDArray[Any] | None, n: int) -> NDArray[Any]:
    return np.full(n, np.nan) if column is None else column


def _encoded(values: Sequence[Any]) -> tuple[list[str], NDArray[np.int32]]:
    """Return distinct texts in order of appearance, and the index of each value."""
    codes: dict[str, int] = {}
    code = [codes.setdefault(str(value), len(codes)) for value in values]
    return list(codes), np.array(code, np.int32)


def _packed(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Put arrays one after the other, little-endian and compressed, with a table of contents."""
    parts, fields, offset = [], {}, 0
    for name, array in arrays.items():
        kind = np.dtype(array.dtype).newbyteorder("<")
        content = np.ascontiguousarray(array, kind).tobytes()
        fields[name] = [kind.str[1:], offset, len(array)]
        padding = -len(content) % 8  # typed arrays begin at multiples of their size
        parts.append(content + bytes(padding))
        offset += len(content) + padding
    packed = gzip.compress(b"".join(parts), 6, mtime=0)
    return {"fields": fields, "data": base64.b64encode(packed).decode()}
