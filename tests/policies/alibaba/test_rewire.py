"""rewire: new dependencies between the same jobs and stages."""

from __future__ import annotations

import numpy as np

import sim
from policies.alibaba.synth.rewire import rewire, synthesized_edges
from policies.alibaba.synth.shipped import SHIPPED
from sim.dags import Graphs
from sim.synth.fitted.tables_file import read_tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags


def test_stages_stay_and_edges_change():
    plain = sim.synthesize("alibaba2018", jobs=300, seed=1)
    synthesized = rewire(plain, seed=9)
    assert synthesized.jobs.equals(plain.jobs)
    assert synthesized.stages.equals(plain.stages)
    assert (synthesized.stage_duration_s == plain.stage_duration_s).all()
    assert synthesized.digest != plain.digest
    assert rewire(plain, seed=9).digest == synthesized.digest
    assert rewire(plain, seed=9, variant="paper").digest != synthesized.digest
    assert synthesized.meta["rewired"] == {"seed": 9, "variant": "improved"}


def by_branch(parents: dict[int, list[int]], rows: range) -> list[int]:
    """Depth-first order from the sinks, a stage after its parents, by row."""
    order: list[int] = []

    def visit(row: int) -> None:
        for parent in sorted(parents.get(row, ())):
            if parent not in order:
                visit(parent)
        if row not in order:
            order.append(row)

    inner = {parent for stages in parents.values() for parent in stages}
    for row in rows:
        if row not in inner:
            visit(row)
    return order


def parents_of(graphs: Graphs, rows: range) -> dict[int, list[int]]:
    parents: dict[int, list[int]] = {}
    for parent, child in zip(graphs.edge_parent.tolist(), graphs.edge_child.tolist(), strict=True):
        if child in rows:
            parents.setdefault(child, []).append(parent)
    return parents


def test_stages_are_matched_by_rank_in_depth_first_order():
    tables = read_tables(SHIPPED)
    graphs = Graphs.from_workload(sim.synthesize("alibaba2018", jobs=200, seed=4, variant="paper"))
    synthesized = synthesize_dags(tables, graphs.job_n_stages, 5).graph
    parent, child = synthesized_edges(graphs, tables, 5)
    for job in np.flatnonzero(graphs.job_n_stages > 3)[:40]:
        rows = range(graphs.job_stage0[job], graphs.job_stage0[job + 1])
        new_parents, old_parents = parents_of(synthesized, rows), parents_of(graphs, rows)
        row = dict(zip(by_branch(new_parents, rows), by_branch(old_parents, rows), strict=True))
        expected = {(row[a], row[b]) for b, stages in new_parents.items() for a in stages}
        actual = (child >= rows.start) & (child < rows.stop)
        assert expected == set(zip(parent[actual].tolist(), child[actual].tolist(), strict=True))


def test_tasks_that_differ_are_preserved():
    stages = [{"name": n, "durations_s": [1.0, 2.5], "demand": {"cpu": 1}} for n in "abc"]
    plain = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    synthesized = rewire(plain)
    assert synthesized.tasks.equals(plain.tasks)
    assert synthesized.stage_edges.num_rows >= 2
