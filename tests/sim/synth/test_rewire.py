"""Dependencies replaced: the same jobs and stages, DAGs of as many stages."""

from __future__ import annotations

import numpy as np

import sim
from sim.dags import Graphs, compact_levels
from sim.synth.alibaba2018.rewire import rewire, synthesized_edges
from sim.synth.alibaba2018.structure import synthesize_dags
from sim.synth.alibaba2018.tables_file import read_tables


def test_stages_stay_and_edges_change():
    plain = sim.synthesize("alibaba2018", jobs=300, seed=1)
    made = rewire(plain, seed=9)
    assert made.jobs.equals(plain.jobs)
    assert made.stages.equals(plain.stages)
    assert (made.stage_duration_s == plain.stage_duration_s).all()
    assert made.digest != plain.digest
    assert rewire(plain, seed=9).digest == made.digest
    assert rewire(plain, seed=9, variant="paper").digest != made.digest
    assert made.meta["rewired"] == {"seed": 9, "variant": "improved"}


def test_stages_take_the_place_of_the_same_rank_by_level():
    tables = read_tables()
    graphs = Graphs.of(sim.synthesize("alibaba2018", jobs=200, seed=4, variant="paper"))
    made = synthesize_dags(tables, graphs.job_n_stages, 5)
    parent, child = synthesized_edges(graphs, tables, 5)
    levels = compact_levels(graphs)
    for job in np.flatnonzero(graphs.job_n_stages > 3)[:40]:
        begin, end = graphs.job_stage0[job], graphs.job_stage0[job + 1]
        rows = sorted(range(begin, end), key=lambda row: (levels[row], row))
        wanted = {
            (rows[a - begin], rows[b - begin])
            for a, b in zip(made.graph.edge_parent, made.graph.edge_child, strict=True)
            if begin <= a < end
        }
        here = (parent >= begin) & (parent < end)
        assert wanted == set(zip(parent[here].tolist(), child[here].tolist(), strict=True))


def test_tasks_that_differ_are_kept():
    stages = [{"name": n, "durations_s": [1.0, 2.5], "demand": {"cpu": 1}} for n in "abc"]
    plain = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    made = rewire(plain)
    assert made.tasks.equals(plain.tasks)
    assert made.stage_edges.num_rows >= 2
