"""Algorithm 2: the kernel against a plain reading of the paper, its invariants, its statistics."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from policies.alibaba.synth.shipped import SHIPPED
from sim.base.random import stream
from sim.dags import longest_path_levels, path_lengths
from sim.synth.fitted import tian_algorithm2
from sim.synth.fitted.histograms import Conditional, Histogram
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tables_file import read_tables
from sim.synth.fitted.tian_algorithm2 import Structure

TABLES = read_tables(SHIPPED)


def synthesize_dags(tables, n_stages, seed) -> Structure:
    return tian_algorithm2.synthesize_dags(tables, n_stages, seed, variant="paper")


def draw(table, condition, limit, u):
    """One draw from the cell of `condition`, among its values of at most `limit`."""
    cell = 0
    while cell + 1 < len(table.lower) and table.lower[cell + 1] <= condition:
        cell += 1
    pairs = zip(table.parts[cell].values.tolist(), table.parts[cell].counts.tolist(), strict=True)
    allowed = [(int(v), c) for v, c in pairs if v <= limit]
    ticket = int(u * sum(c for _, c in allowed))
    for value, count in allowed:
        ticket -= count
        if ticket < 0:
            return value
    raise AssertionError("the ticket is past the table")


def shuffled_prefix(items, n, uniforms):
    """Swap `n` random items to the front of the list, one uniform each."""
    for i in range(n):
        pick = i + int(uniforms[i] * (len(items) - i))
        items[i], items[pick] = items[pick], items[i]
    return items[:n]


def synthesize_dag(tables, s, u_length, u_permutation, u_level, u_child):
    """Algorithm 2, line by line; returns (len, levels, children), vertices from 0."""
    length = draw(tables.length, s, s, u_length)
    level = [0] * s
    for index, n in enumerate(shuffled_prefix(list(range(s)), s, u_permutation)):
        if index < length:
            level[n] = index + 1
        else:
            level[n] = draw(tables.level, length, length, u_level[index])
    on = {k: [n for n in range(s) if level[n] == k] for k in range(1, length + 1)}
    degree = [
        math.ceil(len(on[level[n] + 1]) / len(on[level[n]])) if level[n] < length else 0
        for n in range(s)
    ]
    first = [sum(degree[:n]) for n in range(s)]
    children: list[list[int]] = [[] for _ in range(s)]
    for k in range(1, length):
        for n in on[k]:
            children[n] = sorted(shuffled_prefix(on[k + 1], degree[n], u_child[first[n] :]))
    return length, level, children


def children_of(synthesized: Structure, job: int) -> list[list[int]]:
    graph = synthesized.graph
    begin, end = graph.job_stage0[job], graph.job_stage0[job + 1]
    return [
        (graph.edge_child[graph.edge0[g] : graph.edge0[g + 1]] - begin).tolist()
        for g in range(begin, end)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_kernel_equals_plain_python_to_the_bit(seed):
    sizes = TABLES.n_stages.draw(stream(seed, "test").random(400)).astype(np.int64)
    sizes[:8] = [1, 2, 34, 35, 36, 60, 131, 199]
    synthesized = synthesize_dags(TABLES, sizes, seed)
    n_all, n_edges = sizes.sum(), len(synthesized.graph.edge_child)
    u = {
        purpose: stream(seed, "synth", "alibaba2018", purpose).random(n)
        for purpose, n in {
            "length": len(sizes), "permutation": n_all, "level": n_all, "child": n_edges,
        }.items()
    }  # fmt: skip
    for job, size in enumerate(sizes.tolist()):
        begin, end = synthesized.graph.job_stage0[job], synthesized.graph.job_stage0[job + 1]
        length, level, children = synthesize_dag(
            TABLES,
            size,
            u["length"][job],
            u["permutation"][begin:end],
            u["level"][begin:end],
            u["child"][synthesized.graph.edge0[begin] : synthesized.graph.edge0[end]],
        )
        assert synthesized.length[job] == length
        assert synthesized.level[begin:end].tolist() == level
        assert children_of(synthesized, job) == children


@pytest.fixture(scope="module")
def many() -> Structure:
    sizes = TABLES.n_stages.draw(stream(7, "test").random(20_000)).astype(np.int64)
    return synthesize_dags(TABLES, sizes, seed=7)


def test_every_level_up_to_the_length_is_used_and_no_other(many):
    graph = many.graph
    assert (path_lengths(graph, many.level) == many.length).all()
    job = np.repeat(np.arange(len(many.length)), np.diff(graph.job_stage0))
    used = len(np.unique(job * 1_000 + many.level))
    assert many.level.min() == 1
    assert used == many.length.sum()


def test_edges_join_adjacent_levels_of_one_job(many):
    graph = many.graph
    parent, child = graph.edge_parent, graph.edge_child
    assert (many.level[child] == many.level[parent] + 1).all()
    job = np.repeat(np.arange(len(many.length)), np.diff(graph.job_stage0))
    assert (job[child] == job[parent]).all()


def test_number_of_children_is_the_ratio_of_the_levels_rounded_up(many):
    graph = many.graph
    job = np.repeat(np.arange(len(many.length)), np.diff(graph.job_stage0))
    key = job * 1_000 + many.level
    size = np.bincount(key, minlength=key.max() + 2)
    expected = -(-size[key + 1] // size[key])
    assert (np.diff(graph.edge0) == expected).all()


def test_children_are_drawn_without_replacement_and_ascending(many):
    graph = many.graph
    same_parent = np.diff(graph.edge_parent) == 0
    assert (np.diff(graph.edge_child)[same_parent] > 0).all()


def test_measured_critical_path_is_the_length_drawn(many):
    graph = many.graph
    assert (path_lengths(graph, longest_path_levels(graph)) == many.length).all()


def test_only_the_last_level_lacks_children_and_the_first_parents(many):
    graph = many.graph
    last = many.level == np.repeat(many.length, np.diff(graph.job_stage0))
    assert ((np.diff(graph.edge0) == 0) == last).all()
    assert (graph.n_parents[many.level == 1] == 0).all()
    orphans = (graph.n_parents[many.level > 1] == 0).mean()
    assert 0 < orphans < 0.25  # the paper's edge step leaves some of them without parents


@pytest.mark.parametrize("size", [2, 5, 9, 13, 20, 34, 50])
def test_lengths_follow_their_table(size):
    synthesized = synthesize_dags(TABLES, np.full(60_000 // size, size), seed=size)
    cell = TABLES.length.parts[TABLES.length.part_of(np.array([size]))[0]].up_to(size)
    assert_follows(synthesized.length, cell)


@pytest.mark.parametrize(("size", "length"), [(8, 5), (12, 4), (25, 8), (60, 20)])
def test_levels_past_the_first_vertices_follow_their_table(size, length):
    tables = with_length(length)
    synthesized = synthesize_dags(tables, np.full(3_000, size), seed=1)
    extra = np.bincount(synthesized.level, minlength=length + 1)[1:] - len(synthesized.length)
    cell = TABLES.level.parts[TABLES.level.part_of(np.array([length]))[0]].up_to(length)
    expected = cell.counts / cell.counts.sum() * extra.sum()
    assert chisquare(extra, expected).pvalue > 1e-3


def test_every_member_of_the_next_level_is_as_likely_a_child():
    tables = with_length(2)
    synthesized = synthesize_dags(tables, np.full(20_000, 9), seed=3)
    graph = synthesized.graph
    place = graph.edge_child - graph.job_stage0[graph.edge_child // 9]
    assert chisquare(np.bincount(place, minlength=9)).pvalue > 1e-3


def test_the_permutation_is_uniform_over_levels():
    synthesized = synthesize_dags(with_length(5), np.full(20_000, 5), seed=3)
    n_actual = np.bincount(synthesized.level[0::5], minlength=6)[1:]
    assert chisquare(n_actual).pvalue > 1e-3


def test_same_seed_same_bytes_and_another_seed_different_ones():
    sizes = np.arange(1, 60)
    first, second, other = (synthesize_dags(TABLES, sizes, seed) for seed in (1, 1, 2))
    assert first.graph.edge_child.tobytes() == second.graph.edge_child.tobytes()
    assert first.level.tobytes() == second.level.tobytes()
    assert first.level.tobytes() != other.level.tobytes()


def test_a_longer_list_of_sizes_begins_with_the_same_dags():
    sizes = TABLES.n_stages.draw(stream(5, "test").random(500)).astype(np.int64)
    few, more = synthesize_dags(TABLES, sizes[:100], 5), synthesize_dags(TABLES, sizes, 5)
    n, e = len(few.level), len(few.graph.edge_child)
    assert (more.level[:n] == few.level).all()
    assert (more.graph.edge_child[:e] == few.graph.edge_child).all()


def assert_follows(drawn, table: Histogram) -> None:
    """Chi-square test; values that are expected fewer than 5 times are pooled."""
    expected = table.counts / table.counts.sum() * len(drawn)
    n_actual = np.array([(drawn == value).sum() for value in table.values])
    assert n_actual.sum() == len(drawn)
    rare = expected < 5
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        n_actual = np.append(n_actual[~rare], n_actual[rare].sum())
    if expected[-1] < 5:
        expected = np.append(expected[:-2], expected[-2:].sum())
        n_actual = np.append(n_actual[:-2], n_actual[-2:].sum())
    assert chisquare(n_actual, expected).pvalue > 1e-3


def with_length(length: int) -> Tables:
    """The shipped tables with one length of all critical paths."""
    return replace(TABLES, length=Conditional({1: Histogram.count([length])}))
