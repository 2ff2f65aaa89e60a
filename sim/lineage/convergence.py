"""How much aggregate value each round of the analysis finds (Fig. 6)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.lineage.dependencies import Dependencies
from sim.lineage.functions import value_of
from sim.lineage.graph import Graph, WeightFunction, Window, share_of_inputs
from sim.lineage.multi_hop import multi_hop
from sim.random import stream

F8 = NDArray[np.float64]


def value_by_round(
    edges: Dependencies,
    value: F8,
    numbered: Graph,
    *,
    wt_fn: WeightFunction = share_of_inputs,
) -> list[F8]:
    """Return each job's aggregate value after 0, 1, … rounds, up to convergence; no window.

    After round 0 it is the local value, after round k ≥ 1 that of all paths of at most 2^k hops.
    Hop after hop: what lies h hops below is W^h times the values, so no pair is formed.
    """
    from sim.kernels.flows import upward_step

    g = numbered
    weight = np.asarray(wt_fn(edges), np.float64)[g.edge]
    at_hop = value[g.row]
    total = at_hop.copy()
    found, hops, reach = [total[g.number]], 0, 0  # hops done, and those of the last round kept
    while True:
        at_hop = upward_step(g.out0, g.child, weight, at_hop)
        if not at_hop.any():
            break
        hops += 1
        total = total + at_hop
        if hops == max(2, 2 * reach):
            found.append(total[g.number])
            reach = hops
    if hops > reach:
        found.append(total[g.number])
    return found


def convergence(
    edges: Dependencies,
    value: F8,
    numbered: Graph,
    within: Window | None = None,
    *,
    n_sources: int = 200,
    seed: int = 0,
) -> pa.Table:
    """Return the share of mean aggregate value that each round has found (Fig. 6).

    Parameters
    ----------
    edges : Dependencies
        The DAG.
    value : (N,) float64
        Local values.
    numbered : Graph
        ``graph(edges)``.
    within : Window, optional
        ω; rounds under it are computed for `n_sources` valid jobs, drawn by `seed`.

    Returns
    -------
    pyarrow.Table
        ``round``, ``found`` (share of the converged mean), and ``found_within`` if asked for.
    """
    whole = [float(v.mean()) for v in value_by_round(edges, value, numbered)]
    columns = {"found": _shares(whole)}
    if within is not None:
        valid = np.flatnonzero(within.valid).astype(np.int32)
        drawn = stream(seed, "lineage", "convergence").permutation(len(valid))[:n_sources]
        sources = np.sort(valid[drawn])
        means, k = [], 0
        functions = value_of(value)
        last = multi_hop(edges, functions, within=within, sources=sources, numbered=numbered)
        while len(sources):
            found = multi_hop(
                edges, functions, within=within, sources=sources, numbered=numbered, rounds=k
            )
            means.append(float((found + value)[sources].mean()))
            if np.allclose(found[sources], last[sources], rtol=1e-9):
                break
            k += 1
        columns["found_within"] = _shares(means)
    n = max(map(len, columns.values()))
    padded = {name: np.append(c, np.ones(n - len(c))) for name, c in columns.items()}
    return pa.table({"round": np.arange(n, dtype=np.int32), **padded})


def _shares(means: list[float]) -> F8:
    found = np.array(means)
    return found / found[-1] if len(found) and found[-1] > 0 else np.ones(len(found))
