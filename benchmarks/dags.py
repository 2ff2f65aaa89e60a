"""Speed of `sim.dags` on one core, against networkx and a linear-programming solver.

Run as ``python -m benchmarks.dags [--jobs N]``. The DAGs are synthesized; the references run on the
first few of them, and ratios are of times a job.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms.bipartite import hopcroft_karp_matching
from scipy.optimize import linprog
from scipy.sparse import csr_array

from benchmarks.common import Row, parse_arguments, peak_memory, row, show, timed
from benchmarks.worlds import paper_dags
from sim import dags
from sim.dags import Graphs

N_REFERENCE = 300
"""Jobs of six stages and more that the references run on."""


def main() -> int:
    args = parse_arguments(__doc__, jobs=1_000_000)
    measured(paper_dags(100))  # compiles
    g = paper_dags(args.jobs)
    print(f"{g.n_jobs:,} jobs, {g.n_stages:,} stages, {g.n_edges:,} edges")
    return show("dags", [*measured(g), peak_memory()])


def measured(g: Graphs) -> list[Row]:
    """Time every function, those of §4.2 and §6 for jobs of six stages and more."""
    large = g.at_least(6)
    few = large.take(np.arange(min(N_REFERENCE, large.n_jobs)))
    drawn = [digraph(few, job) for job in range(few.n_jobs)]
    lengths, sizes = nx.dag_longest_path_length, large.job_n_stages
    rows = [
        speed("scatter and gather", g, lambda g: (dags.is_scatter(g), dags.is_gather(g))),
        speed("decomposition", g.take(dags.is_complex(g)), dags.decompose),
        speed("density and chains", g, lambda g: (dags.edge_density(g), dags.chain_ratio(g))),
        speed("degrees", g, lambda g: [dags.ccdf(d) for d in (g.n_parents, g.n_children)]),
    ]
    references: dict[str, tuple[Callable[[Graphs], Any], Callable[[], int]]] = {
        "critical path length": (dags.critical_path_length, on_all(lengths, drawn)),
        "compact levels": (dags.compact_levels, lambda: by_program(few)),
        "width": (dags.width, on_all(by_matching, drawn)),
        "isomorphism classes": (dags.classes, lambda: by_hash_and_vf2(drawn)),
    }
    for name, (function, reference) in references.items():
        rows.append(speed(f"{name}, six stages and more", large, function))
        if large.n_jobs:
            elapsed_s, n = timed(reference)
            title = f"... beside a reference on {few.n_jobs} of them"
            rows.append(row(title, rows[-1].measured * 1e3 * elapsed_s / n, "×"))
    rows.append(speed("uniform random DAGs", large, lambda _: dags.uniform_dags(sizes, 0)))
    random = dags.uniform_dags(sizes, 0)
    rows.append(speed("... compact levels", random, dags.compact_levels))
    rows.append(speed("... width", random, dags.width))
    return rows


def speed(name: str, g: Graphs, function: Callable[[Graphs], Any]) -> Row:
    """Time a function of new graphs, without cached properties."""
    fresh = Graphs(g.job_stage0, g.edge0, g.edge_child)
    elapsed_s, _ = timed(lambda: function(fresh))
    return row(name, g.n_jobs / elapsed_s / 1e3, "thousand jobs/s")


def digraph(g: Graphs, job: int) -> nx.DiGraph:
    begin, end = g.job_stage0[job : job + 2]
    edges = slice(g.edge0[begin], g.edge0[end])
    dag = nx.DiGraph()
    dag.add_nodes_from(range(begin, end))
    dag.add_edges_from(
        zip(g.edge_parent[edges].tolist(), g.edge_child[edges].tolist(), strict=True)
    )
    return dag


def on_all(function: Callable[[nx.DiGraph], Any], drawn: list[nx.DiGraph]) -> Callable[[], int]:
    def run() -> int:
        for dag in drawn:
            function(dag)
        return len(drawn)

    return run


def by_matching(dag: nx.DiGraph) -> int:
    """Width by networkx: stages less a matching in the transitive closure."""
    split = nx.Graph()
    split.add_nodes_from((v, 0) for v in dag)
    split.add_nodes_from((v, 1) for v in dag)
    split.add_edges_from(((a, 0), (b, 1)) for a, b in nx.transitive_closure_dag(dag).edges)
    return len(dag) - len(hopcroft_karp_matching(split, [(v, 0) for v in dag])) // 2


def by_program(g: Graphs) -> int:
    """Compact levels by HiGHS, a linear program a job."""
    lengths = dags.critical_path_length(g)
    for job in range(g.n_jobs):
        dag = g.take([job])
        ends = np.stack([dag.edge_parent, dag.edge_child], axis=1).ravel()
        rows = csr_array(
            (np.tile([1.0, -1.0], dag.n_edges), ends, np.arange(0, 2 * dag.n_edges + 1, 2)),
            shape=(dag.n_edges, dag.n_stages),
        )
        spans = dag.n_parents - dag.n_children
        linprog(spans, rows, -np.ones(dag.n_edges), bounds=(1, int(lengths[job])))
    return g.n_jobs


def by_hash_and_vf2(drawn: list[nx.DiGraph]) -> int:
    """Isomorphism classes by networkx's own hash and VF2."""
    buckets: dict[str, list[nx.DiGraph]] = defaultdict(list)
    for dag in drawn:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the hash changed in a version of networkx
            text = nx.weisfeiler_lehman_graph_hash(dag)
        bucket = buckets[text]
        if not any(nx.is_isomorphic(dag, other) for other in bucket):
            bucket.append(dag)
    return len(drawn)


if __name__ == "__main__":
    sys.exit(main())
