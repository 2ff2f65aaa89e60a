"""Relations that hold for any log of events: changes of its form that change no result, to the bit.

Jobs, work, dependencies, templates and values of the runs stay as they were.
"""

from __future__ import annotations

import copy
import datetime as dt
import gzip
import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.wing.lineage import Options
from policies.wing.lineage.openlineage import read_events
from policies.wing.lineage.profiling import profile
from tests.policies.wing.lineage.events import MONDAY, Event, dataset

NAMES = ("s3://lake/a", "s3://lake/b", "s3://lake/b/dt=1", "s3://lake/c", "db/d")
MINUTE = 60.0


def stamp(minute: float) -> str:
    return (MONDAY + dt.timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")


def entry(draw: Any, side: str) -> Event:
    space, _, name = draw(st.sampled_from(NAMES)).rpartition("/")
    change = draw(st.sampled_from([None, None, "APPEND", "OVERWRITE", "TRUNCATE"]))
    if side == "inputs" or change is None:
        return dataset(name, space)
    return dataset(name, space, lifecycleStateChange={"lifecycleStateChange": change})


@st.composite
def logs(draw: Any, space: str = "old") -> list[Event]:
    """Draw runs over about two weeks, with ends that fail, several starts, and lost events."""
    events = []
    for number in range(draw(st.integers(1, 12))):
        begin = draw(st.integers(0, 14)) * 1440 + draw(st.integers(0, 3)) * 30
        base = {
            "run": {"runId": f"{number}", "facets": {}},
            "job": {"namespace": space, "name": f"job{draw(st.integers(0, 3))}.2025-03-03"},
        }
        sides = {
            side: [entry(draw, side) for _ in range(draw(st.integers(0, 2)))]
            for side in ("inputs", "outputs")
        }
        times = [(begin, "START")] * draw(st.integers(0, 1))
        times += [(begin + 5 * k, "RUNNING") for k in range(draw(st.integers(0, 2)))]
        ends = st.lists(st.sampled_from(["COMPLETE", "COMPLETE", "FAIL"]), max_size=2)
        times += [(begin + 20 + 10 * k, kind) for k, kind in enumerate(draw(ends))]
        events += [
            {"eventTime": stamp(when), "eventType": kind, **copy.deepcopy(base), **sides}
            for when, kind in times or [(begin, "START")]
        ]
    return events


def results(folder: Any, events: list[Event], space: str = "old") -> dict[str, Any]:
    """Return what is known of each run of a namespace."""
    path = folder / "events.jsonl"
    path.write_text("\n".join(json.dumps(e) for e in events))
    return results_of(path, space)


def results_of(path: Any, space: str = "old") -> dict[str, Any]:
    store = profile(read_events(path), Options(value="jobs"))
    jobs = store.tables["jobs"].to_pylist()
    names = store.tables["templates"].to_pylist()
    known = {}
    for job in jobs:
        if job["queue"] == space:
            template = names[job.pop("template")]
            kept_out = ("component", "job_id")
            values = {k: v for k, v in job.items() if k not in kept_out}
            values |= {f"template {k}": v for k, v in template.items() if k != "n_jobs"}
            known[job["job_id"]] = {k: str(v) for k, v in values.items()}
    edges = store.tables["dependencies"].to_pylist()
    ends = ("upstream", "downstream")
    pairs = {
        tuple(jobs[edge[end]]["job_id"] for end in ends): {
            k: str(v) for k, v in edge.items() if k not in ends
        }
        for edge in edges
        if all(jobs[edge[end]]["queue"] == space for end in ends)
    }
    return {"jobs": known, "dependencies": pairs}


@given(logs(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_order_repetition_files_and_compression(tmp_path_factory, events, random):
    folder = tmp_path_factory.mktemp("logs")
    expected = results(folder, events)
    shuffled = random.sample(events, len(events))
    assert results(folder, shuffled) == expected
    assert results(folder, shuffled + random.sample(events, len(events) // 2)) == expected
    parts = folder / "parts"
    parts.mkdir()
    for number in range(3):
        text = "\n".join(json.dumps(e) for e in shuffled[number::3])
        (parts / f"{number}.json.gz").write_bytes(gzip.compress(text.encode()))
    assert results_of(parts) == expected
    whole = folder / "list.json"
    whole.write_text(json.dumps({"events": shuffled}, indent=1))
    assert results_of(whole) == expected


@given(logs(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_parent_around_each_run(tmp_path_factory, events, names_data):
    folder = tmp_path_factory.mktemp("logs")
    expected = results(folder, events)
    wrapped = []
    for e in copy.deepcopy(events):
        parent = copy.deepcopy(e)
        parent["run"] = {"runId": f"parent-{e['run']['runId']}"}
        parent["job"] = {"namespace": "new", "name": "dag"}
        if not names_data:
            parent["inputs"] = parent["outputs"] = []
        key = {"run": {"runId": parent["run"]["runId"]}, "job": parent["job"]}
        e["run"]["facets"] = {"parent": key}
        wrapped += [parent, e]
    assert results(folder, wrapped) == expected


@given(logs())
@settings(max_examples=25, deadline=None)
def test_names_of_a_dataset(tmp_path_factory, events):
    folder = tmp_path_factory.mktemp("logs")
    expected = results(folder, events)
    renamed = json.loads(json.dumps(events))  # each entry an object of its own
    for e in renamed[::2]:
        for one_side in (e["inputs"], e["outputs"]):
            for named in one_side:
                named["namespace"] = named["namespace"].replace("s3://", "s3a://")
                named["name"] += "/"
    assert results(folder, renamed) == expected
    for number, e in enumerate(renamed):
        for one_side in (e["inputs"], e["outputs"]):
            for named in one_side:
                alias = {"namespace": "hive", "name": f"{named['namespace'][-6:]}.{named['name']}"}
                alias["name"] = alias["name"].replace("/", "")
                facets = named.setdefault("facets", {})
                if number % 3:
                    facets["symlinks"] = {"identifiers": [alias]}
                else:
                    facets["symlinks"] = {"identifiers": [
                        {"namespace": named["namespace"], "name": named["name"]}]}  # fmt: skip
                    named |= alias
    assert results(folder, renamed) == expected


@given(logs(), logs("new"))
@settings(max_examples=25, deadline=None)
def test_runs_of_another_namespace(tmp_path_factory, events, more):
    """They lie within the time of the old ones, and use data of their own."""
    folder = tmp_path_factory.mktemp("logs")
    first = {"eventTime": stamp(0), "eventType": "START", "run": {"runId": "begin"},
             "job": {"namespace": "old", "name": "edge"}}  # fmt: skip
    last = {**first, "run": {"runId": "end"}, "eventTime": stamp(16 * 1440)}
    events = [*events, first, {**first, "eventType": "COMPLETE"}, last,
              {**last, "eventType": "COMPLETE"}]  # fmt: skip
    expected = results(folder, events)
    more = json.loads(json.dumps(more).replace("lake", "pond").replace('"db"', '"pool"'))
    assert results(folder, [*more, *events]) == expected
    work = sum(float(job["compute_s"]) for job in expected["jobs"].values())
    assert math.isfinite(work)
