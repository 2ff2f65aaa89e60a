"""Small DAGs for tests: by hand, at random, all of a size, and those of the real sample."""

from __future__ import annotations

import csv
import gzip
from itertools import combinations, permutations, product
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa

from sim.base.random import stream
from sim.dags import Graphs

Job = tuple[int, list[tuple[int, int]]]
"""Number of stages, and edges."""


def graphs_of(*jobs: Job) -> Graphs:
    n_stages = np.array([n for n, _ in jobs], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(n_stages)]).astype(np.int64)
    edges = [(first[j] + p, first[j] + c) for j, (_, es) in enumerate(jobs) for p, c in es]
    both = np.array(edges, dtype=np.int32).reshape(-1, 2)
    return Graphs.from_edges(n_stages, both[:, 0], both[:, 1])


def random_job(seed: int, n: int, density: float) -> Job:
    """Draw a DAG of n stages with rows in any order, not uniformly."""
    rng = stream(seed, "test dags")
    name = rng.permutation(n).tolist()
    pairs = list(combinations(range(n), 2))
    keep = rng.random(len(pairs)) < density
    return n, [(name[a], name[b]) for (a, b), k in zip(pairs, keep, strict=True) if k]


def assorted(n_jobs: int, largest: int) -> list[Job]:
    """Jobs of 1 to `largest` stages, from empty to full."""
    rng = stream(n_jobs, "test dags, assorted")
    sizes = rng.integers(1, largest + 1, n_jobs).tolist()
    densities = rng.choice([0.0, 0.1, 0.2, 0.4, 0.7, 1.0], n_jobs).tolist()
    return [random_job(i, n, d) for i, (n, d) in enumerate(zip(sizes, densities, strict=True))]


def every_dag(n: int) -> list[Job]:
    """All labelled DAGs of n stages."""
    pairs = list(combinations(range(n), 2))
    result = set()
    for order in permutations(range(n)):
        for chosen in product([False, True], repeat=len(pairs)):
            scatter = [pair for pair, c in zip(pairs, chosen, strict=True) if c]
            result.add(frozenset((order[a], order[b]) for a, b in scatter))
    return [(n, sorted(edges)) for edges in sorted(result, key=sorted)]


def job_of(graphs: Graphs, job: int) -> Job:
    begin, end = graphs.job_stage0[job : job + 2].tolist()
    edges = slice(graphs.edge0[begin], graphs.edge0[end])
    pairs = zip(graphs.edge_parent[edges] - begin, graphs.edge_child[edges] - begin, strict=True)
    return end - begin, [(int(p), int(c)) for p, c in pairs]


def digraph(job: Job) -> nx.DiGraph:
    n, edges = job
    dag = nx.DiGraph()
    dag.add_nodes_from(range(n))
    dag.add_edges_from(edges)
    return dag


def clean_sample(folder: Path) -> Graphs:
    """Return the DAGs of the sample's jobs without missing parents, with all their rows."""
    from policies.alibaba.trace.rows import parse_names as parse

    path = folder / "alibaba2018" / "batch_task_6600_jobs.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        rows = [(row["job_name"], row["task_name"]) for row in csv.DictReader(file)]
    names = parse(pa.array([task for _, task in rows]))
    parents: dict[int, list[int]] = {}
    for row, parent in zip(names.row.tolist(), names.parent.tolist(), strict=True):
        parents.setdefault(row, []).append(parent)
    jobs: dict[str, list[int]] = {}
    for row, (job, _) in enumerate(rows):
        jobs.setdefault(job, []).append(row)
    clean: list[Job] = []
    for rows_of_job in jobs.values():
        stages = sorted(rows_of_job, key=lambda row: int(names.number[row]))  # as the loader
        place = {int(names.number[row]): i for i, row in enumerate(stages)}
        named = [(p, i) for i, row in enumerate(stages) for p in parents.get(row, [])]
        if all(p in place for p, _ in named):
            clean.append((len(stages), [(place[p], i) for p, i in named]))
    return graphs_of(*clean)
