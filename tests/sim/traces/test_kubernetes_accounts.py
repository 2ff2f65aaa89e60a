"""Every pod is counted, in whatever order, form and number of files the objects come."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.check.account import check_account
from sim.traces import read_trace
from tests.examples import examples
from tests.sim.traces.kubernetes_objects import container, job, pod, write

JOBS = ("load", "sum", "")
CPUS = {"0": 0.0, "500m": 0.5, "3": 3.0, "1.25": 1.25}
SECONDS = st.integers(0, 200)


@st.composite
def pods(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """Draw a pod; some never ran, had not ended, or have a field that can't be read."""
    start = draw(st.none() | SECONDS)
    end = None if start is None else draw(st.none() | SECONDS)
    is_failed = draw(st.booleans()) and (end is not None or start is None)
    cpu = draw(st.sampled_from(sorted(CPUS)))
    item = pod(
        f"p{number}", start, end, created=draw(SECONDS), phase="Failed" if is_failed else "",
        job=draw(st.sampled_from(JOBS)),
        containers=[container(cpu=cpu, memory="512Mi"), container(cpu="100m")],
    )  # fmt: skip
    if draw(st.integers(0, 9)) == 0:
        item["metadata"]["creationTimestamp"] = "yesterday"
    return item


@st.composite
def jobs(draw: st.DrawFn, name: str) -> dict[str, Any]:
    return job(
        name, draw(st.integers(1, 6)), draw(st.integers(1, 4)), created=draw(SECONDS),
        succeeded=draw(st.integers(0, 6)), failed=draw(st.integers(0, 3)),
        condition=draw(st.sampled_from(["", "Complete", "Failed"])),
    )  # fmt: skip


@st.composite
def objects(draw: st.DrawFn) -> list[dict[str, Any]]:
    drawn = [draw(pods(i)) for i in range(draw(st.integers(0, 12)))]
    drawn += [draw(jobs(name)) for name in JOBS[:-1] if draw(st.booleans())]
    return [pod("always", 0, 60, containers=[container(cpu="3", memory="512Mi"), {}]), *drawn]


def second(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def plain_count(path: Path) -> dict[str, float]:
    """Count the objects of a file anew, with loops alone."""
    items = json.loads(path.read_text())["items"]
    total = {"cpu_s": 0.0, "mem_gib_s": 0.0, "tasks": 0.0, "jobs": 0.0}
    keys, ended = set(), dict.fromkeys(JOBS, 0)
    for item in [item for item in items if item["kind"] == "Pod"]:
        if item["metadata"]["creationTimestamp"] == "yesterday":
            total["jobs"] += 1
            continue
        owners = item["metadata"].get("ownerReferences", [])
        keys.add(owners[0]["name"] if owners else item["metadata"]["uid"])
        total["tasks"] += 1
        if item["status"]["phase"] not in ("Succeeded", "Failed"):
            continue
        ended[owners[0]["name"] if owners else ""] += 1
        requests = item["spec"]["containers"][0]["resources"]["requests"]
        cpus = CPUS[requests["cpu"]] + 0.1 * ("resources" in item["spec"]["containers"][1])
        for status in item["status"]["containerStatuses"]:
            run_s = second(status["state"]["terminated"]["finishedAt"])
            run_s -= second(item["status"]["conditions"][0]["lastTransitionTime"])
            total["cpu_s"] += cpus * max(run_s, 0)
            total["mem_gib_s"] += 0.5 * max(run_s, 0)
    for item in [item for item in items if item["kind"] == "Job"]:
        name, spec = item["metadata"]["name"], item["spec"]
        n_ended = item["status"]["succeeded"] + item["status"]["failed"]
        total["tasks"] += max(n_ended - ended[name], 0)
        if name not in keys and not n_ended:
            total["tasks"] += min(spec["completions"], spec["parallelism"])
        keys.add(name)
    total["jobs"] += len(keys)
    return total


@settings(max_examples=examples(160), deadline=None)
@given(objects())
def test_all_work_of_the_objects_is_counted(drawn: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name) / "objects.json", *drawn)
        w = read_trace("kubernetes", path, on_bad_row="skip")
        check_account(w, **plain_count(path))


@settings(max_examples=examples(80), deadline=None)
@given(objects(), st.randoms(use_true_random=False), st.integers(1, 3))
def test_order_files_and_compression_change_nothing(
    drawn: list[dict[str, Any]], rng: random.Random, n_files: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        whole = write(Path(name) / "objects.json", *drawn)
        expected = read_trace("kubernetes", whole, on_bad_row="skip")
        folder = Path(name) / "parts"
        folder.mkdir()
        shuffled = rng.sample(drawn, len(drawn))
        n_files = min(n_files, len(drawn))
        for i in range(n_files):
            text = "\n".join(json.dumps(item) for item in shuffled[i::n_files])
            (folder / f"part{i}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        w = read_trace("kubernetes", folder, on_bad_row="skip")
        assert w.digest == expected.digest
        assert w.meta["report"]["account"] == expected.meta["report"]["account"]
        assert w.meta["report"]["dropped"] == expected.meta["report"]["dropped"]


@settings(max_examples=30, deadline=None)
@given(objects())
def test_objects_of_another_namespace_leave_the_others_as_they_were(
    drawn: list[dict[str, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        alone = read_trace("kubernetes", write(Path(name) / "a.json", *drawn), on_bad_row="skip")
        late = [pod(f"p{i}", 500, 560 + i, created=500, namespace="glade") for i in range(3)]
        both = read_trace(
            "kubernetes", write(Path(name) / "b.json", *late, *drawn), on_bad_row="skip"
        )
        is_old = [text.startswith("grove/") for text in both.jobs["job_id"].to_pylist()]
        assert both.take(is_old).digest == alone.digest
