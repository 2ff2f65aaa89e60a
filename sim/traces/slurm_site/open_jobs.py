"""Jobs that had not ended when ``sacct`` was written, as a queue: where there is no squeue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sim.traces.sacct.ran import RUNNING_STATES, WAITING_STATES
from sim.traces.sites.now import NO_LIMIT_S
from sim.traces.slurm_site.shown import span_s, time_s
from sim.traces.slurm_site.squeue import Queue, array_elements, written

_NEEDED = {"JobID", "State", "Submit", "Start"}
_NO_NODES = ("None assigned", "None")
Row = Mapping[str, str]


def open_jobs(rows: Sequence[Row]) -> Queue | None:
    """Return the jobs of an accounting that have not ended; None if there are none.

    The log was written when its running jobs had run for their ``Elapsed``, and no earlier than
    anything that it tells. A record has no end yet, so that of its time limit stands in its place.
    """
    jobs = [row for row in rows if "." not in row.get("JobID", "")]
    states = [(row.get("State") or "").partition(" ")[0] for row in jobs]
    rows_by_states = {
        named: [row for row, state in zip(jobs, states, strict=True) if state in named]
        for named in (WAITING_STATES, RUNNING_STATES)
    }
    waiting, running = rows_by_states.values()
    if not (waiting or running) or not rows[0].keys() >= _NEEDED:
        return None
    running = [row for row in running if time_s(row["Start"])]
    waiting = [element for row in waiting if time_s(row["Submit"]) for element in _elements(row)]
    ran_s = [(time_s(row["Start"]) or 0.0) + (span_s(row.get("Elapsed", "")) or 0.0)
             for row in running]  # fmt: skip
    known_s = [time_s(row.get(name, "")) for row in jobs for name in ("Submit", "Start", "End")]
    now_s = max([*ran_s, *filter(None, known_s)], default=0.0)
    records = [
        *(_record(row, time_s(row["Start"]) or now_s, now_s) for row in running),
        *(_record(row, _starts_s(row, now_s), now_s) for row in waiting),
    ]
    if not records:
        return None
    ids = [frozenset(row["JobID"] for row in open_rows) for open_rows in (waiting, running)]
    return Queue(now_s, records, *ids)


def _elements(row: Row) -> list[dict[str, str]]:
    """Return a row for each element of an array that waits."""
    elements = array_elements({"id": row["JobID"], "throttle": ""})
    return [{**row, "JobID": element["id"]} for element in elements]


def _starts_s(row: Row, now_s: float) -> float:
    """Return when a waiting job may start: now, or at its begin time."""
    return max(now_s, time_s(row.get("Eligible", "")) or now_s)


def _record(row: Row, start_s: float, now_s: float) -> dict[str, str]:
    """Return the fields of ``sacct`` of a job as if it had ended at its limit."""
    end_s = max(start_s + (span_s(row.get("Timelimit", "")) or NO_LIMIT_S), now_s + 1.0)
    elapsed = timedelta(seconds=int(end_s - start_s))
    record = {
        **row, "State": "COMPLETED", "Start": written(start_s), "End": written(end_s),
        "Elapsed": str(elapsed).replace(" days, ", "-").replace(" day, ", "-"),
    }  # fmt: skip
    if row.get("AllocCPUS", "") in ("", "0"):
        record["AllocCPUS"] = row.get("ReqCPUS", "")
    if not row.get("AllocTRES", ""):
        record["AllocTRES"] = row.get("ReqTRES", "")
    if row.get("NodeList", "") in _NO_NODES:
        record["NodeList"] = ""
    return {name: value for name, value in record.items() if name != "ElapsedRaw"}
