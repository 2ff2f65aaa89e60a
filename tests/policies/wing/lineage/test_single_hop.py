"""Reads joined to writes: the rules of §4.2 one by one, and a relational join as the oracle."""

from __future__ import annotations

import gzip
import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.wing.lineage import make_logs
from policies.wing.lineage.dependencies import (
    UNREAD_RULE,
    edges_from_pairs,
    single_hop,
    without_cycles,
)
from tests.examples import examples


def logs(rows, n_jobs=6, submit_s=None):
    """Make logs of (time, job, operation, file); jobs run from 0 to 100, named 0, 1, ...

    They may be submitted at other times, but in order of their names.
    """
    time_s, job, operation, file = zip(*rows, strict=True)
    return make_logs(
        {
            "time_s": np.array(time_s, float),
            "job": [None if j is None else str(j) for j in job],
            "operation": list(operation),
            "file": [str(f) for f in file],
        },
        {
            "job_id": [str(j) for j in range(n_jobs)],
            "template_name": ["t"] * n_jobs,
            "submit_s": np.zeros(n_jobs) if submit_s is None else np.array(submit_s, float),
            "finish_s": np.full(n_jobs, 100.0),
        },
    )


def edges_of(rows, submit_s=None, **options):
    result = single_hop(logs(rows, submit_s=submit_s), **options)
    edges = result.dependencies
    pairs = list(zip(edges.upstream.tolist(), edges.downstream.tolist(), strict=True))
    return pairs, result.report


def test_last_writer_wins():
    rows = [(1, 0, "write", "f"), (2, 1, "write", "f"), (3, 2, "read", "f")]
    assert edges_of(rows) == ([(1, 2)], {UNREAD_RULE: 1})


AFTER, BEFORE = (
    f"reads at the instant of a write, taken as {side} it" for side in ("after", "before")
)


def test_a_read_sees_writes_before_it():
    rows = [(1, 0, "write", "f"), (2, 1, "write", "f"), (2, 2, "read", "f")]
    assert edges_of(rows) == ([(0, 2)], {BEFORE: 1})  # who was submitted at one time ran together


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_who_starts_as_its_input_ends_has_that_input(order):
    submit_s = [0, 1, 2, 3, 4, 5]
    rows = [(9, 1, "write", "f"), (9, 3, "write", "f"), (9, 2, "read", "f"), (9, 4, "read", "f")]
    rows = [(8, 0, "write", "f"), *rows[order]]
    pairs, report = edges_of(rows, submit_s)
    assert pairs == [(1, 2), (3 if order.step is None else 1, 4)]  # the later row of the log wins
    unread = {UNREAD_RULE: 1} if order.step is None else {}
    assert report == {AFTER: 2, "writes at the instant of another job's": 1} | unread
    early = [(9, 1, "read", "f"), (9, 3, "write", "f"), (8, 0, "write", "f")]
    assert edges_of(early, submit_s) == ([(0, 1)], {BEFORE: 1})


def test_of_jobs_that_take_no_time_the_earlier_row_is_the_earlier_job():
    rows = [(2, 0, "write", "f"), (2, 1, "read", "f"), (2, 1, "write", "g"), (2, 0, "read", "g")]
    pairs, report = edges_of(rows, [2, 2, 2, 2, 2, 2])
    assert pairs == [(0, 1)]
    assert report == {AFTER: 1, BEFORE: 1, "reads before the first write": 1}
    late, _ = edges_of(rows, [3, 3, 3, 3, 3, 3])  # clocks that disagree: not at that instant
    assert late == []


def test_who_reads_and_writes_a_file_at_once_reads_what_was_before():
    rows = [(1, 0, "write", "f"), (2, 1, "write", "f"), (2, 1, "read", "f")]
    assert edges_of(rows, [0, 2, 3, 3, 3, 3]) == ([(0, 1)], {})
    rows = [(2, 0, "read", "f"), (2, 1, "write", "f"), (2, 0, "write", "f")]  # and another's write
    report = {"reads before the first write": 1, "writes at the instant of another job's": 1}
    assert edges_of(rows) == ([], {BEFORE: 1, **report})


def test_a_download_follows_the_write_of_its_instant():
    rows = [(1, 0, "write", "f"), (2, 1, "write", "f"), (2, None, "download", "f")]
    result = single_hop(logs(rows))
    assert result.downloads.job.tolist() == [1]
    assert result.report == {AFTER.replace("reads", "downloads"): 1}


def test_a_write_older_than_the_window_is_not_joined():
    rows = [(0, 0, "write", "f"), (30, 1, "read", "f"), (31, 2, "read", "f")]
    assert edges_of(rows, window_s=30) == ([(0, 1)], {"reads of writes older than the window": 1})


def test_a_job_does_not_depend_on_itself():
    rows = [(0, 0, "write", "f"), (1, 1, "write", "f"), (2, 1, "read", "f")]
    assert edges_of(rows) == ([], {"reads of a job's own output": 1, UNREAD_RULE: 1})


def test_odd_input_is_counted_by_rule():
    rows = [
        (0, 1, "read", "never"),
        (1, 1, "read", "f"),
        (2, 0, "write", "f"),
        (2, 1, "write", "f"),
        (3, 2, "read", "f"),
        (4, None, "download", "absent"),
        (101, 2, "read", "f"),
        (-1, 2, "write", "g"),
    ]
    assert edges_of(rows) == (
        [(1, 2)],
        {
            "reads of files never written": 1,
            "reads before the first write": 1,
            "downloads of files never written": 1,
            "writes at the instant of another job's": 1,
            "operations before their job's submission": 1,
            "operations after their job's end": 1,
            UNREAD_RULE: 1,
        },
    )


def test_edges_know_their_first_read():
    rows = [
        (1, 0, "write", "f"),
        (5, 1, "read", "f"),
        (2, 0, "write", "g"),
        (3, 1, "read", "g"),
        (9, 1, "read", "g"),
    ]
    edges = single_hop(logs(rows)).dependencies
    assert (edges.read_s.tolist(), edges.written_s.tolist(), edges.n_reads.tolist()) == (
        [3],
        [2],
        [3],
    )


def test_downloads_go_to_the_last_writer():
    rows = [
        (1, 1, "write", "f"),
        (2, None, "download", "f"),
        (3, 0, "write", "f"),
        (5, None, "download", "f"),
        (4, None, "download", "f"),
    ]
    result = single_hop(logs(rows)).downloads
    assert result.job.tolist() == [0, 0, 1]
    assert result.time_s.tolist() == [4, 5, 2]
    assert result.per_job(6).tolist() == [2, 1, 0, 0, 0, 0]


def test_a_cycle_loses_the_edges_that_lead_backward():
    rows = [
        (1, 0, "write", "f"),
        (2, 1, "read", "f"),
        (3, 1, "write", "g"),
        (4, 0, "read", "g"),
        (5, 2, "read", "g"),
    ]
    assert edges_of(rows) == ([(0, 1), (1, 2)], {"dependencies that close a cycle": 1})


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=24))
@settings(max_examples=examples(120), deadline=None)
def test_without_cycles_drops_only_edges_inside_components(pairs):
    pairs = sorted(p for p in pairs if p[0] != p[1])
    edges = edges_from_pairs(8, [p[0] for p in pairs], [p[1] for p in pairs])
    left, n_dropped = without_cycles(edges)
    selected = set(zip(left.upstream.tolist(), left.downstream.tolist(), strict=True))
    graph = nx.DiGraph(pairs)
    part = {v: i for i, c in enumerate(nx.strongly_connected_components(graph)) for v in c}
    assert selected == {(u, d) for u, d in pairs if part[u] != part[d] or u < d}
    assert n_dropped == len(pairs) - len(selected)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(list(selected)))


operation = st.tuples(
    st.integers(0, 12), st.integers(0, 5), st.sampled_from(["read", "write"]), st.integers(0, 3)
)
submissions = st.lists(st.integers(0, 6), min_size=6, max_size=6).map(sorted)


@given(st.lists(operation, min_size=1, max_size=40), submissions, st.integers(1, 8))
@settings(max_examples=examples(400), deadline=None)
def test_the_join_equals_a_relational_one(rows, submit_s, window_s):
    """Every read beside every write of its file; those that may come before it; the last of them.

    By time, and of writes at one instant by row of the log. One comes before a read at its own
    instant if its job was submitted before the reader, or both at that instant and it first.
    """
    table = pd.DataFrame(rows, columns=["time", "job", "operation", "file"])
    table["row"] = table.index
    table["submit"] = table.job.map(dict(enumerate(submit_s)))
    reads = table[table.operation == "read"]
    both = reads.merge(table[table.operation == "write"], on="file", suffixes=("", "_w"))
    at_once = both.time_w == both.time
    writes = both[at_once & (both.job_w != both.job)]
    none_ran = (both.submit_w == both.time) & (both.submit == both.time)
    after = at_once & ((both.submit_w < both.submit) | (none_ran & (both.job_w < both.job)))
    last = both[(both.time_w < both.time) | after].sort_values(["time_w", "row_w"])
    last = last.groupby("row").tail(1)
    met = last[(last.time - last.time_w <= window_s) & (last.job_w != last.job)]
    want = set(zip(met.job_w.tolist(), met.job.tolist(), strict=True))
    result = single_hop(logs(rows, submit_s=submit_s), window_s=window_s)
    edges = result.dependencies
    got = set(zip(edges.upstream.tolist(), edges.downstream.tolist(), strict=True))
    n_cyclic = result.report.get("dependencies that close a cycle", 0)
    assert got <= want
    assert len(got) + n_cyclic == len(want)
    tied, followed = set(writes.row), set(both[after].row)
    assert result.report.get(AFTER, 0) == len(followed)
    assert result.report.get(BEFORE, 0) == len(tied - followed)


def recorded(path, cut):
    """Return a recorded workflow's operations, its tasks' submissions and its declared edges.

    Each task starts as its last parent ends; times may be cut to whole seconds.
    """
    flow = json.loads(gzip.decompress(path.read_bytes()))["workflow"]
    tasks = {task["id"]: task for task in flow["specification"]["tasks"]}
    elapsed_s = {task["id"]: task["runtimeInSeconds"] for task in flow["execution"]["tasks"]}
    edges = {(up, name) for name, task in tasks.items() for up in task["parents"]}
    start, end = {}, {}
    for name in nx.lexicographical_topological_sort(
        nx.DiGraph([*edges, *((t, "") for t in tasks)])
    ):
        if name:
            start[name] = max((end[up] for up in tasks[name]["parents"]), default=0.0)
            end[name] = start[name] + elapsed_s[name]
    names = sorted(start, key=lambda name: start[name])
    index = np.floor if cut else float
    rows = []
    for row, name in enumerate(names):
        rows += [(index(start[name]), row, "read", f) for f in tasks[name].get("inputFiles", ())]
        rows += [(index(end[name]), row, "write", f) for f in tasks[name].get("outputFiles", ())]
    submit_s = [index(start[name]) for name in names]
    return rows, submit_s, {(names.index(up), names.index(down)) for up, down in edges}


@pytest.mark.parametrize("cut", [False, True], ids=["exact", "whole seconds"])
def test_recorded_workflows_without_a_gap_have_their_declared_edges(shared_traces, cut):
    n_edges = 0
    for path in sorted((shared_traces / "wfcommons").glob("*.json.gz")):
        rows, submit_s, declared = recorded(path, cut)
        result = single_hop(logs(rows, len(submit_s), submit_s)).dependencies
        assert (
            set(zip(result.upstream.tolist(), result.downstream.tolist(), strict=True)) == declared
        )
        n_edges += len(declared)
    assert n_edges == 1169
