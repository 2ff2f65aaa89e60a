"""Runs of jobs, put together from their events."""

from __future__ import annotations

from typing import Any, Final

from policies.wing.lineage.openlineage.datasets import Datasets, MalformedError
from policies.wing.lineage.times import seconds

ENDS: Final = {"COMPLETE": "done", "FAIL": "failed", "ABORT": "failed"}
"""Outcomes by the types of events that end a run."""
TYPES: Final = ("START", "RUNNING", "OTHER", *ENDS)
BATCH, STREAMING, UNKNOWN = "BATCH", "STREAMING", ""
Key = tuple[str, str, str]
"""Namespace and name of a job, and the run's id: an id alone may be another job's too."""


class Run:
    """One run, as far as its events tell.

    Attributes
    ----------
    source : str
        Text of the SQL or source code facet; empty if there is none.
    first_s, last_s : float
        Times of the first and the last event, s.
    start_s, last_start_s : float or None
        Times of the first and the last ``START``.
    first_end_s, end_s : float or None
        Times of the first and the last end, the outcome of which counts.
    processing : str
        ``BATCH``, ``STREAMING`` or empty.
    containers : set of Key
        Runs that contain it: its parent, and the root of all.
    inputs : set of int
        Datasets that it reads.
    outputs : dict of int to int
        Datasets that it changes, and the bits of `policies.wing.lineage.openlineage.datasets`.
    ticks : list of (float, tuple of int, tuple of int)
        Times, inputs and outputs of ``RUNNING`` events.
    """

    __slots__ = (
        "containers", "end_s", "first_end_s", "first_s", "inputs", "key", "last_s", "last_start_s",
        "outcome", "outputs", "processing", "source", "start_s", "ticks",
    )  # fmt: skip

    def __init__(self, key: Key, time_s: float) -> None:
        self.key = key
        self.source = ""
        self.first_s = self.last_s = time_s
        self.start_s: float | None = None
        self.last_start_s: float | None = None
        self.first_end_s: float | None = None
        self.end_s: float | None = None
        self.outcome = "done"
        self.processing = UNKNOWN
        self.containers: set[Key] = _NO_KEYS
        self.inputs: set[int] = _NO_INPUTS
        self.outputs: dict[int, int] = _NO_OUTPUTS
        self.ticks: list[tuple[float, tuple[int, ...], tuple[int, ...]]] = _NO_TICKS

    @property
    def begin_s(self) -> float:
        """Time of its start, or of its first event."""
        return self.first_s if self.start_s is None else self.start_s

    @property
    def finish_s(self) -> float:
        """Time of its end, or of its last event."""
        return self.last_s if self.end_s is None else self.end_s

    @property
    def run_time(self) -> str:
        """Knowledge of its run time, one of `policies.wing.lineage.files.RUN_TIMES`."""
        if self.end_s is None:
            return "no_end" if self.first_s == self.last_s else "censored"
        return "no_start" if self.start_s is None and self.first_s == self.end_s else "known"

    def add_time(self, kind: str, time_s: float) -> None:
        """Add the time of an event."""
        self.first_s, self.last_s = min(self.first_s, time_s), max(self.last_s, time_s)
        if kind == "START":
            self.start_s = time_s if self.start_s is None else min(self.start_s, time_s)
            last = self.last_start_s
            self.last_start_s = time_s if last is None else max(last, time_s)
        elif kind in ENDS:
            if self.first_end_s is None or time_s < self.first_end_s:
                self.first_end_s = time_s
            if self.end_s is None or time_s > self.end_s:
                self.end_s, self.outcome = time_s, ENDS[kind]
            elif time_s == self.end_s and kind != "COMPLETE":  # of two at one instant, the failure
                self.outcome = ENDS[kind]


# shared by all runs that have none: most runs lack most of these
_NO_KEYS: Final[set[Key]] = set()
_NO_INPUTS: Final[set[int]] = set()
_NO_OUTPUTS: Final[dict[int, int]] = {}
_NO_TICKS: Final[list[tuple[float, tuple[int, ...], tuple[int, ...]]]] = []


class Runs:
    """Runs by key, and the datasets that they name.

    Attributes
    ----------
    n_unzoned : int
        Number of events whose time states no zone.
    """

    def __init__(self) -> None:
        self.by_key: dict[Key, Run] = {}
        self.datasets = Datasets()
        self.n_unzoned = 0

    def add(self, event: Any) -> None:
        """Add an event to its run.

        Raises
        ------
        MalformedError
            If it lacks a field.
        """
        if not isinstance(event, dict):
            raise MalformedError("no JSON object")
        time_s = self.time_s(event)
        kind = event.get("eventType", "OTHER")
        if kind not in TYPES:
            raise MalformedError(f"eventType {kind!r}")
        job = event.get("job")
        name = job.get("name") if isinstance(job, dict) else None
        if not isinstance(job, dict) or not isinstance(name, str) or not name:
            raise MalformedError("no job name")
        about = event.get("run")
        run_id = about.get("runId") if isinstance(about, dict) else None
        if not isinstance(about, dict) or not isinstance(run_id, str) or not run_id:
            raise MalformedError("no runId")
        inputs = [self.datasets.named(entry)[0] for entry in _entries(event, "inputs")]
        outputs = [self.datasets.named(entry) for entry in _entries(event, "outputs")]
        key = (str(job.get("namespace") or ""), name, run_id)
        run = self.by_key.get(key)
        if run is None:
            run = self.by_key[key] = Run(key, time_s)
        run.add_time(kind, time_s)
        if job.get("facets"):
            _add_job_facets(run, job["facets"])
        if about.get("facets"):
            _add_containers(run, about["facets"])
        if inputs:
            run.inputs = run.inputs.union(inputs)
        if outputs:
            changes = dict(run.outputs)
            for number, change in outputs:
                changes[number] = changes.get(number, 0) | change
            run.outputs = changes
        if kind == "RUNNING" and (inputs or outputs) and run.processing != BATCH:
            tick = (time_s, tuple(inputs), tuple(number for number, _ in outputs))
            run.ticks = [tick] if run.ticks is _NO_TICKS else run.ticks
            if run.ticks[-1] is not tick:
                run.ticks.append(tick)

    def time_s(self, event: dict[str, Any]) -> float:
        """Return the time of an event, s."""
        text = event.get("eventTime")
        try:
            time_s, has_zone = seconds(text)
        except ValueError:
            raise MalformedError(f"eventTime {text!r}") from None
        self.n_unzoned += not has_zone
        return time_s


def _entries(event: dict[str, Any], side: str) -> list[Any]:
    entries = event.get(side)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise MalformedError("a dataset without a name")
    return entries


def _add_job_facets(run: Run, facets: Any) -> None:
    """Add the source code and the kind of processing."""
    if not isinstance(facets, dict):
        return
    for facet, key in (("sql", "query"), ("sourceCode", "sourceCode")):
        known = facets.get(facet)
        if isinstance(known, dict) and isinstance(known.get(key), str):
            run.source = max(run.source, known[key])  # whatever the order of events
            break
    kind = facets.get("jobType")
    if isinstance(kind, dict) and kind.get("processingType") in (BATCH, STREAMING):
        run.processing = max(run.processing, kind["processingType"])


def _add_containers(run: Run, facets: Any) -> None:
    """Add the parent, and the root of all parents."""
    if not isinstance(facets, dict):
        return
    for facet in ("parent", "parentRun"):
        parent = facets.get(facet)
        if not isinstance(parent, dict):
            continue
        for container in (parent, parent.get("root")):
            key = _key(container)
            if key is not None and key != run.key and key not in run.containers:
                run.containers = {*run.containers, key}


def _key(container: Any) -> Key | None:
    """Return the key of the run that a facet names; None if it names none."""
    if not isinstance(container, dict) or not isinstance(container.get("run"), dict):
        return None
    run_id = container["run"].get("runId")
    job = container.get("job")
    job = job if isinstance(job, dict) else {}
    if not isinstance(run_id, str) or not run_id:
        return None
    return str(job.get("namespace") or ""), str(job.get("name") or ""), run_id
