"""OpenLineage events by hand: single ones, and 28 days of a load and a sum after it."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from policies.wing.lineage import Store
from sim.cli.main import main
from sim.workload.workload import Workload

MONDAY = dt.datetime(2025, 3, 3, tzinfo=dt.UTC)
DAYS = 28
BEGIN, END = "2025-03-17", "2025-03-24"
"""A window of 14 jobs of the daily log, with two weeks before it."""
Event = dict[str, Any]


def clock(day: int, time: str) -> str:
    """Return the time of a day of the log, such as ``01:20``."""
    hour, minute = time.split(":")
    when = MONDAY + dt.timedelta(days=day, hours=int(hour), minutes=int(minute))
    return when.isoformat().replace("+00:00", "Z")


def dataset(name: str, space: str = "warehouse", **facets: Any) -> Event:
    return {"namespace": space, "name": name, **({"facets": facets} if facets else {})}


def changed(name: str, change: str, before: str = "", space: str = "warehouse") -> Event:
    """Return a dataset with a lifecycleStateChange facet."""
    facet: Event = {"lifecycleStateChange": change}
    if before:
        facet["previousIdentifier"] = {"namespace": space, "name": before}
    return dataset(name, space, lifecycleStateChange=facet)


def event(
    kind: str,
    time: str,
    run: str,
    name: str,
    inputs: Iterable[Any] = (),
    outputs: Iterable[Any] = (),
    **more: Any,
) -> Event:
    """Return an event; datasets are names or whole entries, `more` replaces parts of it.

    ``parent`` is the run id and the job's name of its parent, ``facets`` are those of the job.
    """
    parent = more.pop("parent", None)
    run_facets: Event = {}
    if parent:
        job = {"namespace": "orchard", "name": parent[1]}
        run_facets["parent"] = {"run": {"runId": parent[0]}, "job": job}
    entries = [
        [d if isinstance(d, dict) else dataset(d) for d in side] for side in (inputs, outputs)
    ]
    return {
        "eventType": kind,
        "eventTime": time,
        "run": {"runId": run, "facets": run_facets},
        "job": {
            "namespace": more.pop("space", "orchard"),
            "name": name,
            "facets": more.pop("facets", {}),
        },
        "inputs": entries[0],
        "outputs": entries[1],
        **more,
    }


def run(
    begin: str, end: str, run_id: str, name: str, inputs: Any = (), outputs: Any = (), **more: Any
) -> list[Event]:
    """Return the two events of a run; `kind` is that of its end."""
    end_kind = more.pop("kind", "COMPLETE")
    return [
        event("START", begin, run_id, name, inputs, **more),
        event(end_kind, end, run_id, name, inputs, outputs, **more),
    ]


def load_and_sum(day: int, stored: Any = "stg.fruit", read: Any = None, **more: Any) -> list[Event]:
    """Return a day's load (20 min) of a dataset, and the sum (30 min) that reads it."""
    read = stored if read is None else read
    return [
        *run(
            clock(day, "01:00"),
            clock(day, "01:20"),
            f"load-{day}",
            "load",
            ["raw"],
            [stored],
            **more,
        ),
        *run(
            clock(day, "01:25"), clock(day, "01:55"), f"sum-{day}", "sum", [read], ["mart"], **more
        ),
    ]


def daily(stored: Any = "stg.fruit", read: Any = None) -> list[Event]:
    """Return 28 days of loads and sums: 56 jobs, 28 dependencies, 1,400 minutes."""
    return [event for day in range(DAYS) for event in load_and_sum(day, stored, read)]


def write(path: Path, events: Iterable[Any], form: str = "lines") -> Path:
    """Write events in one of the forms in which they are exported."""
    texts = [text if isinstance(text, str) else json.dumps(text) for text in events]
    lines = "\n".join(texts) + "\n"
    if form == "folder":
        path.mkdir()
        (path / "_SUCCESS").write_text("")
        for number in range(3):
            part = "\n".join(texts[number::3])
            (path / f"part-{number}.json.gz").write_bytes(gzip.compress(part.encode()))
        return path
    if form.startswith("pretty"):
        entries = [json.loads(text) for text in texts]
        lines = "\n".join(json.dumps(entry, indent=2) for entry in entries)
        content = json.dumps(entries, indent=2) if form == "pretty list" else lines
    else:
        content = {
            "byte order mark": "\ufeff" + lines,
            "list": f"[{','.join(texts)}]",
            "glued": "".join(texts),
            "events": f'{{"events": [{",".join(texts)}], "totalCount": {len(texts)}}}',
        }.get(form, lines)
    data = content.encode("utf-16" if form == "utf-16" else "utf-8")
    path.write_bytes(gzip.compress(data) if form == "gzip" else data)
    return path


def profiled(path: Path, capsys: Any, *words: str) -> tuple[Store, str]:
    """Profile a log through the command line; return the profile and what was printed."""
    out = path.parent / f"{path.name}.profile"
    assert main(["lineage", str(path), "--out", str(out), "--value", "jobs", *words]) == 0
    return Store.read(out), capsys.readouterr().out


def scheduled(path: Path, capsys: Any, *words: str) -> tuple[Workload, str]:
    """Make the window's workload through the command line; return it and what was printed."""
    out = path.parent / f"{path.name}.week"
    window = ["--workload", str(out), "--begin", BEGIN, "--end", END, "--value", "jobs"]
    assert main(["lineage", str(path), *window, *words]) == 0
    return Workload.read(out), capsys.readouterr().out


def counts(store: Store) -> tuple[int, int, int, float]:
    """Return jobs, dependencies, recurring templates and minutes of work of a profile."""
    jobs = store.tables["jobs"]
    minutes = sum(jobs["compute_s"].to_pylist()) / 60
    recurring = sum(store.tables["templates"]["recurring"].to_pylist())
    return jobs.num_rows, store.tables["dependencies"].num_rows, recurring, minutes


def pairs(store: Store) -> dict[tuple[str, str], int]:
    """Count the dependencies by pair of template names."""
    names = store.tables["templates"]["template"].to_pylist()
    template = store.tables["jobs"]["template"].to_pylist()
    counted: dict[tuple[str, str], int] = {}
    edges = store.tables["dependencies"]
    for up, down in zip(
        edges["upstream"].to_pylist(), edges["downstream"].to_pylist(), strict=True
    ):
        pair = names[template[up]], names[template[down]]
        counted[pair] = counted.get(pair, 0) + 1
    return counted
