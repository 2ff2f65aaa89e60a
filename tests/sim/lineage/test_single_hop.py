"""Reads joined to writes: the rules of §4.2 one by one, and pandas' merge_asof as the oracle."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.lineage import logs_of
from sim.lineage.dependencies import plain_edges, single_hop, without_cycles


def logs(rows, n_jobs=6):
    """Make logs of (time, job, operation, file); jobs run from 0 to 100, named 0, 1, ..."""
    time_s, job, operation, file = zip(*rows, strict=True)
    return logs_of(
        {
            "time_s": np.array(time_s, float),
            "job": [None if j is None else str(j) for j in job],
            "operation": list(operation),
            "file": [str(f) for f in file],
        },
        {
            "job_id": [str(j) for j in range(n_jobs)],
            "template_name": ["t"] * n_jobs,
            "submit_s": np.zeros(n_jobs),
            "finish_s": np.full(n_jobs, 100.0),
        },
    )


def edges_of(rows, **given):
    found = single_hop(logs(rows), **given)
    edges = found.dependencies
    pairs = list(zip(edges.upstream.tolist(), edges.downstream.tolist(), strict=True))
    return pairs, found.report


def test_last_writer_wins():
    rows = [(1, 0, "write", "f"), (2, 1, "write", "f"), (3, 2, "read", "f")]
    assert edges_of(rows) == ([(1, 2)], {})


def test_a_read_sees_only_writes_strictly_before_it():
    rows = [(1, 0, "write", "f"), (2, 1, "write", "f"), (2, 2, "read", "f")]
    assert edges_of(rows) == ([(0, 2)], {})


def test_a_write_older_than_the_window_is_not_joined():
    rows = [(0, 0, "write", "f"), (30, 1, "read", "f"), (31, 2, "read", "f")]
    assert edges_of(rows, window_s=30) == ([(0, 1)], {"reads of writes older than the window": 1})


def test_a_job_does_not_depend_on_itself():
    rows = [(0, 0, "write", "f"), (1, 1, "write", "f"), (2, 1, "read", "f")]
    assert edges_of(rows) == ([], {"reads of a job's own output": 1})


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
    found = single_hop(logs(rows)).downloads
    assert found.job.tolist() == [0, 0, 1]
    assert found.time_s.tolist() == [4, 5, 2]
    assert found.per_job(6).tolist() == [2, 1, 0, 0, 0, 0]


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
@settings(max_examples=60, deadline=None)
def test_without_cycles_drops_only_edges_inside_components(pairs):
    pairs = sorted(p for p in pairs if p[0] != p[1])
    edges = plain_edges(8, [p[0] for p in pairs], [p[1] for p in pairs])
    left, n_dropped = without_cycles(edges)
    kept = set(zip(left.upstream.tolist(), left.downstream.tolist(), strict=True))
    graph = nx.DiGraph(pairs)
    part = {v: i for i, c in enumerate(nx.strongly_connected_components(graph)) for v in c}
    assert kept == {(u, d) for u, d in pairs if part[u] != part[d] or u < d}
    assert n_dropped == len(pairs) - len(kept)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(list(kept)))


operation = st.tuples(
    st.integers(0, 12), st.integers(0, 5), st.sampled_from(["read", "write"]), st.integers(0, 3)
)


@given(st.lists(operation, min_size=1, max_size=40), st.integers(1, 8))
@settings(max_examples=80, deadline=None)
def test_the_join_equals_pandas_merge_asof(rows, window_s):
    seen = set()  # of writes of a file at an instant the oracle takes any; keep one
    rows = [
        r for r in rows if r[2] == "read" or not ((r[0], r[3]) in seen or seen.add((r[0], r[3])))
    ]
    if not rows:
        return
    table = pd.DataFrame(rows, columns=["time", "job", "operation", "file"]).sort_values(
        "time", kind="stable"
    )
    reads = table[table.operation == "read"][["time", "job", "file"]]
    writes = table[table.operation == "write"][["time", "job", "file"]]
    joined = pd.merge_asof(
        reads,
        writes.rename(columns={"job": "writer"}),
        on="time",
        by="file",
        allow_exact_matches=False,
        tolerance=window_s,
    ).dropna()
    want = {(int(w), int(j)) for w, j in zip(joined.writer, joined.job, strict=True) if w != j}
    found = single_hop(logs(rows), window_s=window_s)
    edges = found.dependencies
    got = set(zip(edges.upstream.tolist(), edges.downstream.tolist(), strict=True))
    n_cyclic = found.report.get("dependencies that close a cycle", 0)
    assert got <= want
    assert len(got) + n_cyclic == len(want)
