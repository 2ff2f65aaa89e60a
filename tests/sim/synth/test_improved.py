"""The improved variant: the kernels against slow Python, its invariants, its statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

import sim
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import critical_path_length
from sim.synth.alibaba2018.shipped import SHIPPED
from sim.synth.fitted.fit import fit_structure
from sim.synth.fitted.fit_links import Seen
from sim.synth.fitted.histograms import Conditional, Grid, Histogram
from sim.synth.fitted.kernels.chance import MODULUS, uniform
from sim.synth.fitted.tables import NARROW, TREE, WIDE
from sim.synth.fitted.tables_file import read_tables
from sim.synth.fitted.tian_algorithm2 import (
    Structure,
    further_stages,
    generators,
    spread,
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
def test_kernels_equal_the_plain_reading_to_the_bit(seed):
    sizes = TABLES.n_stages.draw(stream(seed, "test").random(300)).astype(np.int64)
    sizes[:100] = np.arange(2, 102)
    sizes[100:103] = [131, 199, 1]
    made = synthesize_dags(TABLES, sizes, seed)
    states = generators(seed, len(sizes)).tolist()
    for job, n_stages in enumerate(sizes.tolist()):
        random = naive.Random(*states[job])
        length = int(made.length[job])
        shape = naive.pick(naive.given(LINKS.shape, n_stages, length), WIDE, random.uniform())
        ends = naive.run_ends(TABLES, LINKS, length, shape)
        run = LINKS.run_tree if shape == TREE else LINKS.run_other
        level_sizes = naive.draw_sizes(ends, n_stages, shape, run, random)
        begin, end = made.graph.job_stage0[job], made.graph.job_stage0[job + 1]
        assert np.bincount(made.level[begin:end])[1:].tolist() == level_sizes
        graph = made.graph.take([job])
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


def test_edges_go_down_within_a_job_and_none_comes_twice(many):
    graph = many.graph
    parent, child = graph.edge_parent, graph.edge_child
    assert (graph.stage_job[parent] == graph.stage_job[child]).all()
    assert (many.level[child] > many.level[parent]).all()
    key = parent.astype(np.int64) * graph.n_stages + child
    assert (np.diff(key) > 0).all()


def test_trees_are_trees_and_the_others_are_not(many):
    shape = Seen(many.graph, many.level, many.length).shape
    drawn = spread_shapes(many.length)
    several = many.length > 1
    assert (shape[several & (drawn == TREE)] == TREE).all()
    missed = several & (drawn != TREE) & (shape == TREE)
    assert missed.mean() < 0.002  # of two or three stages, there is often no other DAG


def spread_shapes(length):
    random = generators(7, len(SIZES))
    return spread(TABLES, LINKS, SIZES, length, random)[1]


def test_shapes_follow_their_table(many):
    graph = many.graph
    size, length = 7, 4
    jobs = (graph.job_n_stages == size) & (many.length == length)
    shape = spread_shapes(many.length)[jobs]
    table = naive.given(LINKS.shape, size, length)
    expected = table.counts / table.counts.sum() * len(shape)
    seen = [(shape == value).sum() for value in table.values]
    assert chisquare(seen, expected).pvalue > 1e-3


def test_further_stages_take_one_stage_of_each_level_off():
    length = Conditional({1: Histogram.of([2, 3], [10, 5])})
    level = Conditional({1: Histogram.of([1, 2], [14, 11]), 3: Histogram.of([1, 2, 3], [9, 8, 5])})
    tables = replace(TABLES, length=length, level=level)
    assert further_stages(tables, 2).tolist() == [4, 1]
    assert further_stages(tables, 3).tolist() == [4, 3, 0]


@pytest.mark.parametrize("size", [3, 6, 10, 40])
def test_lengths_are_those_of_the_paper_variant(size):
    sizes = np.full(500, size)
    paper = synthesize_dags(TABLES, sizes, 3, variant="paper")
    assert (synthesize_dags(TABLES, sizes, 3).length == paper.length).all()


def test_same_seed_same_bytes_and_a_longer_list_begins_alike(many):
    again = synthesize_dags(TABLES, SIZES[:500], seed=7)
    n, e = again.graph.n_stages, again.graph.n_edges
    assert again.level.tobytes() == many.level[:n].tobytes()
    assert again.graph.edge_child.tobytes() == many.graph.edge_child[:e].tobytes()
    other = synthesize_dags(TABLES, SIZES[:500], seed=8)
    assert other.graph.edge_child.tobytes() != again.graph.edge_child.tobytes()


def test_a_fit_on_what_it_made_gives_the_tables_back(many):
    again = fit_structure(many.graph, TABLES).links
    assert again.run_tree == pytest.approx(LINKS.run_tree, abs=0.12)
    assert again.run_other == pytest.approx(LINKS.run_other, abs=0.12)
    for row, column in ((2, 2), (2, 3), (3, 3)):
        one = naive.given(LINKS.joined_tree, row, column)
        two = naive.given(again.joined_tree, row, column)
        assert (one.values @ one.counts) / one.counts.sum() == pytest.approx(
            (two.values @ two.counts) / two.counts.sum(), abs=90
        )
    shape = naive.given(LINKS.shape, 6, 4)
    found = naive.given(again.shape, 6, 4)
    assert found.counts[0] / found.counts.sum() == pytest.approx(
        shape.counts[0] / shape.counts.sum(), abs=0.08
    )


def test_a_packed_grid_is_read_as_it_is_written():
    from sim.synth.fitted.kernels.chance import draw

    cells = [Histogram.of([1, 4, 9], [1, 2, 1]), Histogram.of([2]), Histogram.of([0, 7])]
    grid = Grid({1: Conditional({2: cells[0], 6: cells[1]}), 5: Conditional({0: cells[2]})})
    packed = grid.packed()
    for row in range(8):
        for column in range(9):
            wanted = naive.given(grid, row, column)
            for at in (1e-9, 0.24, 0.26, 0.5, 0.74, 0.76, 0.999):
                assert draw(packed, row, column, 9, at) == naive.pick(wanted, 9, at)
    assert draw(packed, 1, 2, 4, 0.999) == 4


def test_a_fit_on_few_jobs_says_which_cells_it_pooled_and_still_synthesizes():
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
    made = synthesize_dags(tables, np.array([1, 2, 5, 9]), 0)
    assert made.length.tolist() == [1, 2, 2, 2]
    assert made.graph.job_n_edges.tolist() == [0, 1, 4, 8]


def test_tables_without_an_edge_step_and_unknown_variants_are_errors():
    with pytest.raises(InputError, match="take variant=paper"):
        synthesize_dags(replace(TABLES, links=None), np.array([3]), 0)
    with pytest.raises(InputError, match="did you mean 'improved'"):
        synthesize_dags(TABLES, np.array([3]), 0, variant="improve")


def test_narrow_jobs_end_in_one_stage_and_wide_ones_in_several(many):
    drawn = spread_shapes(many.length)
    graph = many.graph
    last = many.level == np.repeat(many.length, graph.job_n_stages)
    on_last = np.add.reduceat(last.astype(int), graph.job_stage0[:-1])
    room = (graph.job_n_stages > many.length) & (many.length > 1)
    assert (on_last[room & (drawn == WIDE)] > 1).all()
    assert (on_last[room & (drawn == NARROW)] == 1).all()
    assert (on_last[room & (drawn == TREE)] == 1).all()
