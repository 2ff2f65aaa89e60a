"""The improved variant: the kernels against slow Python, its invariants, its statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

import sim
from policies.alibaba.synth.shipped import SHIPPED
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import critical_path_length
from sim.synth.fitted.fit import fit_structure
from sim.synth.fitted.fit_links import ObservedDags
from sim.synth.fitted.histograms import Conditional, Grid, Histogram
from sim.synth.fitted.kernels.chance import MODULUS, uniform
from sim.synth.fitted.tables import NARROW, TREE, WIDE
from sim.synth.fitted.tables_file import read_tables
from sim.synth.fitted.tian_algorithm2 import (
    Structure,
    draw_level_sizes,
    further_stages,
    generators,
    synthesize_dags,
)
from tests.sim.synth import naive_improved as naive

TABLES = read_tables(SHIPPED)
LINKS = TABLES.links
SIZES = TABLES.n_stages.draw(stream(7, "test").random(20_000)).astype(np.int64)


@pytest.fixture(scope="module")
def many() -> Structure:
    return synthesize_dags(TABLES, SIZES, seed=7)


@pytest.mark.parametrize("seed", range(4))
def test_kernels_equal_plain_python_to_the_bit(seed):
    sizes = TABLES.n_stages.draw(stream(seed, "test").random(300)).astype(np.int64)
    sizes[:100] = np.arange(2, 102)
    sizes[100:103] = [131, 199, 1]
    synthesized = synthesize_dags(TABLES, sizes, seed)
    states = generators(seed, len(sizes)).tolist()
    for job, n_stages in enumerate(sizes.tolist()):
        random = naive.Random(*states[job])
        length = int(synthesized.length[job])
        shape = naive.pick(naive.lookup(LINKS.shape, n_stages, length), WIDE, random.uniform())
        ends = naive.run_ends(TABLES, LINKS, length, shape)
        run = LINKS.run_tree if shape == TREE else LINKS.run_other
        level_sizes = naive.draw_sizes(ends, n_stages, shape, run, random)
        begin, end = synthesized.graph.job_stage0[job], synthesized.graph.job_stage0[job + 1]
        assert np.bincount(synthesized.level[begin:end])[1:].tolist() == level_sizes
        graph = synthesized.graph.take([job])
        edges = list(zip(graph.edge_parent.tolist(), graph.edge_child.tolist(), strict=True))
        assert edges == naive.draw_edges(LINKS, level_sizes, shape, random)


def test_the_generator_draws_uniforms():
    states = generators(0, 3)
    assert (states > 0).all()
    assert (states < np.array(MODULUS)).all()
    drawn = np.array([[uniform(state) for _ in range(4_000)] for state in states])
    assert kstest(drawn.ravel(), "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(drawn)[np.triu_indices(3, 1)]).max() < 0.06
    pairs = np.histogram2d(drawn[0, :-1], drawn[0, 1:], bins=5)[0].ravel()
    assert chisquare(pairs).pvalue > 1e-3


def test_every_level_is_used_and_rows_ascend_with_levels(many):
    graph = many.graph
    assert (np.diff(many.level)[np.diff(graph.stage_job) == 0] >= 0).all()
    used = len(np.unique(graph.stage_job.astype(np.int64) * 1_000 + many.level))
    assert used == many.length.sum()
    assert many.level.max() == many.length.max()


def test_the_measured_critical_path_is_the_length_drawn(many):
    assert (critical_path_length(many.graph) == many.length).all()


def test_edges_go_down_within_a_job_and_are_distinct(many):
    graph = many.graph
    parent, child = graph.edge_parent, graph.edge_child
    assert (graph.stage_job[parent] == graph.stage_job[child]).all()
    assert (many.level[child] > many.level[parent]).all()
    key = parent.astype(np.int64) * graph.n_stages + child
    assert (np.diff(key) > 0).all()


def test_trees_are_trees_and_the_others_are_not(many):
    shape = ObservedDags(many.graph, many.level, many.length).shape
    drawn = draw_shapes(many.length)
    several = many.length > 1
    assert (shape[several & (drawn == TREE)] == TREE).all()
    missed = several & (drawn != TREE) & (shape == TREE)
    assert missed.mean() < 0.002  # of two or three stages, there is often no other DAG


def draw_shapes(length):
    random = generators(7, len(SIZES))
    return draw_level_sizes(TABLES, LINKS, SIZES, length, random)[1]


def test_shapes_follow_their_table(many):
    graph = many.graph
    size, length = 7, 4
    jobs = (graph.job_n_stages == size) & (many.length == length)
    shape = draw_shapes(many.length)[jobs]
    table = naive.lookup(LINKS.shape, size, length)
    expected = table.counts / table.counts.sum() * len(shape)
    n_actual = [(shape == value).sum() for value in table.values]
    assert chisquare(n_actual, expected).pvalue > 1e-3


def test_further_stages_omit_one_stage_of_each_level():
    length = Conditional({1: Histogram.count([2, 3], [10, 5])})
    level = Conditional(
        {1: Histogram.count([1, 2], [14, 11]), 3: Histogram.count([1, 2, 3], [9, 8, 5])}
    )
    tables = replace(TABLES, length=length, level=level)
    assert further_stages(tables, 2).tolist() == [4, 1]
    assert further_stages(tables, 3).tolist() == [4, 3, 0]


@pytest.mark.parametrize("size", [3, 6, 10, 40])
def test_lengths_are_those_of_the_paper_variant(size):
    sizes = np.full(500, size)
    paper = synthesize_dags(TABLES, sizes, 3, variant="paper")
    assert (synthesize_dags(TABLES, sizes, 3).length == paper.length).all()


def test_same_seed_same_bytes_and_a_longer_list_has_the_same_beginning(many):
    again = synthesize_dags(TABLES, SIZES[:500], seed=7)
    n, e = again.graph.n_stages, again.graph.n_edges
    assert again.level.tobytes() == many.level[:n].tobytes()
    assert again.graph.edge_child.tobytes() == many.graph.edge_child[:e].tobytes()
    other = synthesize_dags(TABLES, SIZES[:500], seed=8)
    assert other.graph.edge_child.tobytes() != again.graph.edge_child.tobytes()


def test_a_fit_to_synthesized_dags_recovers_the_tables(many):
    again = fit_structure(many.graph, TABLES).links
    assert again.run_tree == pytest.approx(LINKS.run_tree, abs=0.12)
    assert again.run_other == pytest.approx(LINKS.run_other, abs=0.12)
    for row, column in ((2, 2), (2, 3), (3, 3)):
        first = naive.lookup(LINKS.joined_tree, row, column)
        second = naive.lookup(again.joined_tree, row, column)
        assert (first.values @ first.counts) / first.counts.sum() == pytest.approx(
            (second.values @ second.counts) / second.counts.sum(), abs=90
        )
    shape = naive.lookup(LINKS.shape, 6, 4)
    actual = naive.lookup(again.shape, 6, 4)
    assert actual.counts[0] / actual.counts.sum() == pytest.approx(
        shape.counts[0] / shape.counts.sum(), abs=0.08
    )


def test_a_packed_grid_is_read_as_it_is_written():
    from sim.synth.fitted.kernels.chance import draw

    cells = [Histogram.count([1, 4, 9], [1, 2, 1]), Histogram.count([2]), Histogram.count([0, 7])]
    grid = Grid({1: Conditional({2: cells[0], 6: cells[1]}), 5: Conditional({0: cells[2]})})
    packed = grid.packed()
    for row in range(8):
        for column in range(9):
            expected = naive.lookup(grid, row, column)
            for u in (1e-9, 0.24, 0.26, 0.5, 0.74, 0.76, 0.999):
                assert draw(packed, row, column, 9, u) == naive.pick(expected, 9, u)
    assert draw(packed, 1, 2, 4, 0.999) == 4


def test_a_fit_to_few_jobs_names_pooled_cells_and_synthesizes():
    stages = [
        {"name": "a", "durations_s": [1.0]},
        {"name": "b", "durations_s": [1.0], "parents": ["a"]},
    ]
    workload = sim.Workload.from_jobs([{"submit_s": float(i), "stages": stages} for i in range(5)])
    from sim.synth.fitted.fit import fit_workload

    tables = fit_workload(workload)
    assert tables.links.provenance["pooled"] == [
        "joined_tree: nothing seen to count, 500 taken",
        "joined_first: nothing seen to count, 500 taken",
        "joined_plain: nothing seen to count, 500 taken",
        "joined_again: nothing seen to count, 500 taken",
        "surplus: nothing seen to count, 0 taken",
        "far: nothing seen to count, 0 taken",
    ]
    synthesized = synthesize_dags(tables, np.array([1, 2, 5, 9]), 0)
    assert synthesized.length.tolist() == [1, 2, 2, 2]
    assert synthesized.graph.job_n_edges.tolist() == [0, 1, 4, 8]


def test_tables_without_an_edge_step_and_unknown_variants_are_errors():
    with pytest.raises(InputError, match="take variant=paper"):
        synthesize_dags(replace(TABLES, links=None), np.array([3]), 0)
    with pytest.raises(InputError, match="did you mean 'improved'"):
        synthesize_dags(TABLES, np.array([3]), 0, variant="improve")


def test_narrow_jobs_end_in_one_stage_and_wide_ones_in_several(many):
    drawn = draw_shapes(many.length)
    graph = many.graph
    last = many.level == np.repeat(many.length, graph.job_n_stages)
    on_last = np.add.reduceat(last.astype(int), graph.job_stage0[:-1])
    room = (graph.job_n_stages > many.length) & (many.length > 1)
    assert (on_last[room & (drawn == WIDE)] > 1).all()
    assert (on_last[room & (drawn == NARROW)] == 1).all()
    assert (on_last[room & (drawn == TREE)] == 1).all()
