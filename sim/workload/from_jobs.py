"""Conversion of small workloads written by hand, as a list of dicts, into tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sim.base.errors import InputError, did_you_mean, unknown
from sim.workload.dates import is_date, to_seconds
from sim.workload.schema import (
    CATEGORY,
    DELAY,
    DEMAND_PREFIX,
    DEPENDENCY_KINDS,
    EDGE_KINDS,
    FEATURES,
    INPUT_KINDS,
    JOBS,
    LICENSE_PREFIX,
    OPTIONAL_COLUMNS,
    REQUEST_PREFIX,
    REQUIRED,
    RUNS_ON,
    SPEED_PREFIX,
    STAGE_LAG,
    WATTS,
    WIDTH_MIN,
    Column,
)

_JOB_KEYS: Mapping[str, Any] = {
    **{c.name: None if c.default is REQUIRED else c.default for c in JOBS},
    "stages": None,
}
_OPTIONAL_COLUMNS = tuple(column.name for column in OPTIONAL_COLUMNS["jobs"])
_OPTIONAL_KEYS = ("inputs", "after", "downloads", "licenses", *_OPTIONAL_COLUMNS)
_EDGE_COLUMNS = ("upstream", "downstream", "kind", DELAY.name)
_STAGE_COLUMNS = (RUNS_ON, STAGE_LAG, WATTS, *FEATURES)
_STAGE_KEYS = (
    *("name", "durations_s", "demand", "request", "parents", "speed"),
    *(c.name for c in _STAGE_COLUMNS),
)  # fmt: skip


def tables_from_jobs(jobs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Convert dicts of jobs into the arguments of `Workload.from_tables`."""
    dicts, meta = [*jobs], {"name": "jobs"}
    are_dicts = all(isinstance(job, Mapping) for job in dicts)
    if are_dicts and any(is_date(job.get("submit_s")) for job in dicts):
        submit_s, meta["zero"] = to_seconds([job.get("submit_s") for job in dicts])
        dicts = [{**job, "submit_s": time} for job, time in zip(dicts, submit_s, strict=True)]
    listed = [_checked_job(i, job) for i, job in enumerate(dicts)]
    listed.sort(key=lambda job: float(job["submit_s"]))
    columns: dict[str, list[Any]] = {k: [j[k] for j in listed] for k in _JOB_KEYS if k != "stages"}
    stages: dict[str, list[Any]] = {"job": [], "name": [], "n_tasks": []}
    tasks: dict[str, list[Any]] = {"stage": [], "duration_s": []}
    edges: dict[str, list[Any]] = {"parent": [], "child": [], "kind": []}
    demands: list[Mapping[str, float]] = []
    requests: list[Mapping[str, float]] = []
    speeds: list[Mapping[str, float]] = []
    columns |= _optional_columns(listed, OPTIONAL_COLUMNS["jobs"])
    columns |= _licences(listed)
    for row, job in enumerate(listed):
        stage0 = len(demands)
        names: dict[str, int] = {}
        for i, stage in enumerate(job["stages"]):
            where = f"job {job['job_id']!r} stage {i}"
            _check_keys(where, stage, _STAGE_KEYS, ("durations_s",))
            name = str(stage.get("name", f"stage-{i}"))
            if name in names:
                raise InputError(
                    f"{where}: the name {name!r} is taken by stage {names[name] - stage0}",
                    rule="duplicate stage name",
                )
            names[name] = len(demands)
            durations = _durations(where, stage["durations_s"])
            stages["job"].append(row)
            stages["name"].append(name)
            stages["n_tasks"].append(len(durations))
            tasks["stage"] += [len(demands)] * len(durations)
            tasks["duration_s"] += durations
            demands.append(_amounts(f"{where}: demand", stage.get("demand", {"cpu": 1.0})))
            requests.append(_amounts(f"{where}: request", stage.get("request", {})))
            speeds.append(_amounts(f"{where}: speed", stage.get("speed", {})))
        for i, stage in enumerate(job["stages"]):
            where = f"job {job['job_id']!r} stage {i}"
            parents = _by_kind(f"{where}: parents", stage.get("parents", ()), EDGE_KINDS)
            for parent, kind in parents.items():
                if parent not in names:
                    raise InputError(
                        f"{where}: the job has no stage {parent!r} to be its parent"
                        f"; {did_you_mean(parent, names)}stages: {', '.join(names)}",
                        rule="missing parent",
                    )
                edges["parent"].append(names[parent])
                edges["child"].append(stage0 + i)
                edges["kind"].append(kind)
    all_stages = [stage for job in listed for stage in job["stages"]]
    stages |= _optional_columns(all_stages, _STAGE_COLUMNS)
    requested = sorted({r for request in requests for r in request})
    resources = sorted({r for demand in demands for r in demand}.union(requested)) or ["cpu"]
    for r in resources:
        stages[DEMAND_PREFIX + r] = [float(d.get(r, 0.0)) for d in demands]
    for r in requested:
        stages[REQUEST_PREFIX + r] = [request.get(r) for request in requests]
    for name in sorted({name for speed in speeds for name in speed}):
        stages[SPEED_PREFIX + name] = [float(speed.get(name, 1.0)) for speed in speeds]
    return {
        "jobs": columns,
        "stages": stages,
        "tasks": tasks,
        "stage_edges": edges if edges["parent"] else None,
        "job_edges": _job_edges(listed),
        "downloads": _downloads(listed),
        "meta": meta,
    }


def _job_edges(listed: list[dict[str, Any]]) -> dict[str, list[Any]] | None:
    rows = {job["job_id"]: row for row, job in enumerate(listed)}
    edges: list[tuple[int, int, str, float]] = []
    for row, job in enumerate(listed):
        where = f"job {job['job_id']!r}: inputs"
        inputs = _by_kind(where, job.get("inputs", ()), INPUT_KINDS)
        named = [(where, name, kind, 0.0) for name, kind in inputs.items()]
        named += _dependencies(f"job {job['job_id']!r}: after", job.get("after", {}))
        for place, name, kind, delay_s in named:
            if name not in rows:
                suggestion = did_you_mean(name, rows)
                raise InputError(
                    f"{place}: there is no job {name!r}; {suggestion}name a job by its job_id",
                    rule="missing input",
                )
            edges.append((rows[name], row, kind, delay_s))
    if not edges:
        return None
    columns = dict(zip(_EDGE_COLUMNS, map(list, zip(*edges, strict=True)), strict=True))
    if not any(columns[DELAY.name]):
        del columns[DELAY.name]
    return columns


def _dependencies(where: str, after: Any) -> list[tuple[str, str, str, float]]:
    """Return place, job, kind and delay (s) of each dependency of a job."""
    if not isinstance(after, Mapping):
        raise InputError(
            f'{where} must be a dict of kind to jobs, such as {{"afterok": ["a"]}}, not {after!r}',
            rule="wrong type",
        )
    listed: list[tuple[str, str, str, float]] = []
    for kind, jobs in after.items():
        if kind not in DEPENDENCY_KINDS:
            message = unknown("kind of dependency", kind, DEPENDENCY_KINDS)
            raise InputError(f"{where}: {message}", rule="unknown kind")
        place = f"{where}.{kind}"
        if isinstance(jobs, (str, bytes)) or not hasattr(jobs, "__iter__"):
            raise InputError(
                f"{place} must be a list of names or a dict of name to delay (s), not {jobs!r}",
                rule="wrong type",
            )
        delays = jobs if isinstance(jobs, Mapping) else dict.fromkeys(jobs, 0.0)
        listed += [(place, str(n), kind, _number(f"{place}: {n}", s)) for n, s in delays.items()]
    return listed


def _downloads(listed: list[dict[str, Any]]) -> dict[str, list[Any]] | None:
    rows = [
        (row, _number(f"job {job['job_id']!r}: downloads", time))
        for row, job in enumerate(listed)
        for time in job.get("downloads", ())
    ]
    return {"job": [r for r, _ in rows], "time_s": [t for _, t in rows]} if rows else None


def _optional_columns(rows: list[Any], columns: Iterable[Column]) -> dict[str, list[Any]]:
    """Return the optional columns that any of the jobs or stages has; categories as strings."""
    present = {}
    for c in columns:
        if any(c.name in row for row in rows):
            values = [row.get(c.name, c.default) for row in rows]
            present[c.name] = [*map(str, values)] if c.type == CATEGORY else values
    return present


def _licences(listed: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the columns of licences that any of the jobs holds."""
    amounts = [
        _amounts(f"job {job['job_id']!r}: licenses", job.get("licenses", {})) for job in listed
    ]
    names = sorted({name for licences in amounts for name in licences})
    return {
        LICENSE_PREFIX + name: [licences.get(name, 0.0) for licences in amounts] for name in names
    }


def _checked_job(i: int, job: Mapping[str, Any]) -> dict[str, Any]:
    where = f"job {job['job_id']!r}" if "job_id" in job else f"job {i}"
    _check_keys(where, job, (*_JOB_KEYS, *_OPTIONAL_KEYS), ("submit_s", "stages"))
    checked = {**_JOB_KEYS, "job_id": f"job-{i}", **job}
    checked["job_id"] = str(checked["job_id"])
    if "min_tasks" not in job:
        checked["min_tasks"] = job.get(WIDTH_MIN.name) or 0
    for key in [k for k in ("submit_s", "priority", "poll_lag_s") if k in checked]:
        checked[key] = _number(f"{where}: {key}", checked[key])
    if not checked["stages"]:
        raise InputError(f"{where} has no stages; it needs at least one", rule="job without stages")
    return checked


def _check_keys(where: str, entry: object, known: Iterable[str], required: tuple[str, ...]) -> None:
    if not isinstance(entry, Mapping):
        raise InputError(f"{where} must be a dict, not {entry!r}", rule="wrong type")
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: {unknown('key', key, known)}", rule="unknown key")
    for key in required:
        if key not in entry:
            raise InputError(f"{where} has no {key!r}", rule="missing key")


def _durations(where: str, durations: Any) -> list[float]:
    if isinstance(durations, (str, bytes)) or not hasattr(durations, "__iter__"):
        raise InputError(
            f"{where}: durations_s must be a list of numbers, not {durations!r}", rule="wrong type"
        )
    listed = [_number(f"{where}: durations_s", d) for d in durations]
    if not listed:
        raise InputError(
            f"{where} has no tasks; durations_s needs one number a task", rule="no tasks"
        )
    return listed


def _amounts(where: str, amounts: Any) -> Mapping[str, float]:
    """Return numbers by name: of resources, or of classes of machines."""
    if not isinstance(amounts, Mapping):
        raise InputError(f"{where} must be a dict, not {amounts!r}", rule="wrong type")
    return {str(name): _number(f"{where} for {name}", x) for name, x in amounts.items()}


def _by_kind(where: str, edges: Any, known: tuple[str, ...]) -> dict[str, str]:
    """Return the kind of edge by name, from a dict, or from a list of names of the first kind."""
    if isinstance(edges, Mapping):
        kinds = {str(k): str(v) for k, v in edges.items()}
        for kind in kinds.values():
            if kind not in known:
                message = unknown("kind of edge", kind, known)
                raise InputError(f"{where}: {message}", rule="unknown kind")
        return kinds
    if isinstance(edges, (str, bytes)) or not hasattr(edges, "__iter__"):
        raise InputError(
            f"{where} must be a list of names or a dict of name to kind, not {edges!r}",
            rule="wrong type",
        )
    return {str(name): known[0] for name in edges}


def _number(where: str, value: Any) -> float:
    if isinstance(value, (str, bytes, bool)) or value is None:
        raise InputError(f"{where} must be a number, not {value!r}", rule="wrong type")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} must be a number, not {value!r}", rule="wrong type") from error
