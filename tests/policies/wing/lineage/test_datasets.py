"""Names of one dataset, partitions inside folders, and changes that are no plain write."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.wing.lineage import make_logs
from policies.wing.lineage.dependencies import UNREAD_RULE, join
from policies.wing.lineage.openlineage import read_events
from tests.examples import examples
from tests.policies.wing.lineage.events import (
    DAYS,
    changed,
    clock,
    counts,
    daily,
    dataset,
    load_and_sum,
    pairs,
    profiled,
    run,
    scheduled,
    write,
)

SUM_OF_LOAD = {("orchard/load", "orchard/sum"): 28}


def symlinked(name, *aliases):
    identifiers = [{"namespace": "hive", "name": other, "type": "TABLE"} for other in aliases]
    return dataset(name, "s3://lake", symlinks={"identifiers": identifiers})


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        (dataset("fruit", "s3a://lake"), dataset("fruit", "s3://lake")),
        (dataset("fruit", "s3n://lake"), dataset("fruit", "S3A://lake")),
        (dataset("fruit/", "s3://lake"), dataset("/fruit", "s3://lake/")),
        (dataset("fruit/stg", "s3://lake"), dataset("stg", "s3://lake/fruit")),
        (dataset("c/fruit", "abfss://x@y"), dataset("c/fruit", "abfs://x@y")),
        (symlinked("warehouse/fruit", "default.fruit"), dataset("default.fruit", "hive")),
        (symlinked("warehouse/fruit", "default.fruit"), symlinked("other/fruit", "default.fruit")),
    ],
)
def test_names_of_one_dataset_are_one(tmp_path, capsys, stored, read):
    path = write(tmp_path / "e", daily(stored, read))
    store, _ = profiled(path, capsys)
    assert counts(store) == (56, 28, 2, 1400.0)
    assert pairs(store) == SUM_OF_LOAD
    assert scheduled(path, capsys)[0].job_edges.num_rows == 7


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        (dataset("STG.FRUIT"), dataset("stg.fruit")),
        (dataset("fruit", "postgres://h:5432"), dataset("fruit", "postgres://h")),
        (dataset("fruit", "gs://lake"), dataset("fruit", "gcs://lake")),
    ],
)
def test_names_of_another_spelling_are_told(tmp_path, capsys, stored, read):
    path = write(tmp_path / "e", daily(stored, read))
    for words in ((), ("--set", "partitions=inside")):
        store, printed = profiled(path, capsys, *words)
        assert counts(store)[1] == 0
        assert "28 reads of names that another job writes in other letters" in printed


def test_other_names_are_other_datasets(tmp_path, capsys):
    store, _ = profiled(write(tmp_path / "e", daily("fruit", dataset("fruit", "other"))), capsys)
    assert counts(store)[1] == 0
    assert "reads of files never written: 28" not in store.report  # raw is none either
    assert store.report["reads of files never written"] == 56


def test_a_renamed_dataset_is_one_with_its_previous_name(tmp_path, capsys):
    """A job that swaps names needs the data under the old one; the reader needs the swap."""
    swapped = []
    for day in range(DAYS):
        swapped += load_and_sum(day, "tmp.fruit", "fruit")
        swapped += run(
            clock(day, "01:21"), clock(day, "01:22"), f"swap-{day}", "swap",
            outputs=[changed("fruit", "RENAME", "tmp.fruit")],
        )  # fmt: skip
    store, _ = profiled(write(tmp_path / "e", swapped), capsys)
    assert pairs(store) == {
        ("orchard/load", "orchard/swap"): 28, ("orchard/swap", "orchard/sum"): 28,
    }  # fmt: skip
    own = []
    for day in range(DAYS):  # the load renames what it wrote itself
        own += load_and_sum(day, "tmp.fruit", "fruit")
        own[-3]["outputs"].append(changed("fruit", "RENAME", "tmp.fruit"))
    store, _ = profiled(write(tmp_path / "own", own), capsys)
    assert pairs(store) == SUM_OF_LOAD


DAY_OF = [f"dt=2025-03-{day:02d}" for day in range(1, 29)]


@pytest.mark.parametrize(("stored", "read"), [("fruit", "fruit/{}"), ("fruit/{}", "fruit")])
def test_partitions_inside_a_folder_are_joined_if_asked_for(tmp_path, capsys, stored, read):
    events = []
    for day, partition in enumerate(DAY_OF):
        events += load_and_sum(day, stored.format(partition), read.format(partition))
    path = write(tmp_path / "e", events)
    store, printed = profiled(path, capsys)
    assert counts(store)[1] == 0
    text = (
        "names inside a folder that another job writes"
        if stored == "fruit"
        else "folders inside which another job writes"
    )
    assert printed.startswith(f"28 reads of {text}; --set partitions=inside joins them")
    store, printed = profiled(path, capsys, "--set", "partitions=inside")
    assert pairs(store) == SUM_OF_LOAD
    assert printed.startswith("Overview")
    week, _ = scheduled(path, capsys, "--set", "partitions=inside")
    assert week.job_edges.num_rows == 7


def test_each_partition_has_its_own_writer(tmp_path, capsys):
    """A week's run reads seven daily partitions; a folder's reader what is new in it."""
    events = []
    for day in range(DAYS):
        events += load_and_sum(day, f"fruit${20250301 + day}", "other")
        read = [f"fruit${20250301 + d}" for d in range(max(day - 6, 0), day + 1)]
        events += run(clock(day, "02:00"), clock(day, "02:30"), f"week-{day}", "week", read)
    for words in ((), ("--set", "partitions=inside")):
        store, _ = profiled(write(tmp_path / "e", events), capsys, *words)
        n = sum(min(day + 1, 7) for day in range(DAYS))
        assert pairs(store) == {("orchard/load", "orchard/week"): n}
    events += run(clock(6, "03:00"), clock(6, "03:30"), "all-0", "all", ["fruit"])
    events += run(clock(13, "03:00"), clock(13, "03:30"), "all-1", "all", ["fruit"])
    store, _ = profiled(write(tmp_path / "all", events), capsys, "--set", "partitions=inside")
    assert pairs(store)["orchard/load", "orchard/all"] == 7 + 7


@pytest.mark.parametrize("change", ["TRUNCATE", "DROP", "ALTER"])
def test_emptying_makes_no_data(tmp_path, capsys, change):
    events = daily()
    for day in range(DAYS):
        events += run(
            clock(day, "00:30"), clock(day, "00:31"), f"j-{day}", "janitor",
            outputs=[changed("mart", change)],
        )  # fmt: skip
        events += run(clock(day, "00:45"), clock(day, "00:50"), f"v-{day}", "view", ["mart"])
    path = write(tmp_path / "e", events)
    store, _ = profiled(path, capsys)
    assert scheduled(path, capsys)[0].job_edges.num_rows == (13 if change == "ALTER" else 7)
    expected = dict(SUM_OF_LOAD)
    if change == "ALTER":
        expected["orchard/sum", "orchard/view"] = 27
        assert store.report["events: outputs altered, no writes"] == 28
    else:
        assert store.report["reads of files emptied before"] == 28
        assert store.report["events: outputs emptied or dropped, no writes"] == 28
    assert pairs(store) == expected
    assert store.template("orchard/janitor")["aggregate_value_p50"] == 1.0


def hourly(change):
    """Return 24 loads a day of one table, and a daily report of it."""
    output = changed("facts", change) if change else dataset("facts")
    events = []
    for day in range(DAYS):
        for hour in range(24):
            events += run(
                clock(day, f"{hour:02d}:05"), clock(day, f"{hour:02d}:15"), f"l-{day}-{hour}",
                "load", outputs=[output],
            )  # fmt: skip
        events += run(clock(day, "23:30"), clock(day, "23:50"), f"r-{day}", "report", ["facts"])
    return events


def test_a_reader_depends_on_all_that_was_added_since_it_last_read(tmp_path, capsys):
    path = write(tmp_path / "e", hourly("APPEND"))
    store, printed = profiled(path, capsys)
    assert pairs(store) == {("orchard/load", "orchard/report"): 28 * 24}
    assert scheduled(path, capsys)[0].job_edges.num_rows == 7 * 24
    assert UNREAD_RULE not in store.report
    assert printed.startswith("Overview")


@pytest.mark.parametrize("change", ["OVERWRITE", "CREATE", None])
def test_of_writes_that_replace_a_file_the_last_counts(tmp_path, capsys, change):
    store, printed = profiled(write(tmp_path / "e", hourly(change)), capsys)
    assert pairs(store) == {("orchard/load", "orchard/report"): 28}
    assert store.report.get(UNREAD_RULE, 0) == (0 if change else 28 * 23)
    first = "644 of 672 writes (95.8 %) have no reader, as another write of their file followed"
    assert printed.startswith(first) == (change is None)
    unused = store.value("shifting", "unused")
    assert np.isnan(unused) if change is None else unused == pytest.approx(672 / 700)


def test_a_run_that_empties_a_file_and_adds_to_it_replaces_it(tmp_path):
    outputs = [[changed("t", "TRUNCATE")], [changed("t", "APPEND")]]
    events = run(clock(0, "01:00"), clock(0, "01:10"), "a", "load", outputs=outputs[0])
    events[0]["outputs"] = outputs[1]
    logs = read_events(write(tmp_path / "e", events))
    assert logs.operation.tolist() == [4]  # overwrite


NAMES = ("f", "f/a", "f/a/x", "f/b", "g", "g$20250301")
OPERATION = st.tuples(
    st.integers(0, 12),
    st.integers(0, 5),
    st.sampled_from(["read", "write", "append", "overwrite", "truncate", "failed_write"]),
    st.sampled_from(NAMES),
)


def is_inside(name, folder):
    return name != folder and (name.startswith((f"{folder}/", f"{folder}$")))


def visible(rows, k, inside, window_s, last_read):
    """Return the writers that a read sees, by going through all that happened before it."""
    time, job, _, file = rows[k]
    seen = []  # (number, job, time, file), what has not been replaced
    for number in range(k):
        when, writer, operation, name = rows[number]
        covers = name == file or (inside and is_inside(file, name))
        part = inside and is_inside(name, file)
        if operation in ("read", "failed_write") or not (covers or part):
            continue
        if operation != "append":
            seen = [] if covers else [
                s for s in seen if not (s[3] == name or is_inside(s[3], name))
            ]  # fmt: skip
        seen.append((number, writer, when, name, operation))
    fresh = [s for s in seen if s[0] > last_read]
    sources = fresh or seen[-1:]
    return {
        s[1] for s in sources
        if s[4] != "truncate" and s[1] != job and time - s[2] <= window_s
    }  # fmt: skip


@given(st.lists(OPERATION, min_size=1, max_size=30), st.booleans(), st.integers(2, 12))
@settings(max_examples=examples(300), deadline=None)
def test_the_join_equals_a_walk_through_the_log(rows, inside, window_s):
    """One operation an instant: each read beside all before it, by the rules word by word."""
    rows = [(float(k), job, operation, file) for k, (_, job, operation, file) in enumerate(rows)]
    table = {
        "time_s": [row[0] for row in rows],
        "job": [str(row[1]) for row in rows],
        "operation": [row[2] for row in rows],
        "file": [row[3] for row in rows],
    }
    program = ["p", "p", "q", "q", "r", "s"]
    logs = make_logs(table, {
        "job_id": [str(j) for j in range(6)], "template_name": program,
        "submit_s": np.full(6, -1.0), "finish_s": np.full(6, 100.0),
    })  # fmt: skip
    edges = join(logs, window_s, inside=inside).dependencies
    actual = set(zip(edges.upstream.tolist(), edges.downstream.tolist(), strict=True))
    expected = set()
    last_read = defaultdict(lambda: -1)
    for k, (_, job, operation, file) in enumerate(rows):
        if operation == "read":
            since = last_read[program[job], file]
            expected |= {(w, job) for w in visible(rows, k, inside, window_s, since)}
            last_read[program[job], file] = k
    assert actual == expected
