"""Wing's Algorithm 1 (Chung et al., OSDI 2020, §4.4), literally: multi-hop analysis by doubling.

The printed pseudocode subtracts a table from another whose weights are grouped already, which can
be read in more than one way. What is meant: with F₀ the weighted single-hop edges and B₀ empty,

    F_{i+1} = F_i ⊗ F_i                  paths of exactly 2^{i+1} hops
    B_{i+1} = B_i ⊕ F_i ⊕ F_i ⊗ B_i      all shorter ones

where ⊗ joins two tables where paths meet and combines weights by ``e_op``, and ⊕ puts tables
together and groups equal pairs by ``p_op``. Both are associative and ⊗ distributes over ⊕, so every
path is counted once, whatever was grouped before. It ends when F is empty, after O(log diameter)
rounds, and B is the answer. `policies.wing.lineage.multi_hop` is compared with it: to a few units
in the last place, as sums over the same paths are taken in another order.
"""

from __future__ import annotations

from policies.wing.lineage.analyses import Functions
from policies.wing.lineage.dependencies import Dependencies, Window

Table = dict[tuple[int, int], float]
"""Weights of pairs: (upstream, downstream)."""


def algorithm_1(
    edges: Dependencies,
    functions: Functions,
    rounds: int | None = None,
    within: Window | None = None,
) -> Table:
    """Return all pairs on paths of at most 2^rounds hops that count within a window."""
    up, down = edges.upstream.tolist(), edges.downstream.tolist()
    frontier: Table = dict(zip(zip(up, down, strict=True), functions.wt_fn(edges), strict=True))
    base: Table = {}
    if rounds == 0:
        return base
    i = 0
    while frontier and (rounds is None or i < rounds):
        reach = extend_reach(frontier, base, functions)
        base = grouped([*base.items(), *frontier.items(), *reach], functions)
        frontier = grouped(extend_reach(frontier, frontier, functions), functions)
        i += 1
    pairs = grouped([*base.items(), *frontier.items()], functions)
    return {pair: weight for pair, weight in pairs.items() if counts(pair, within)}


def extend_reach(
    left: Table, right: Table, functions: Functions
) -> list[tuple[tuple[int, int], float]]:
    """Join paths that meet: the first ends where the second begins."""
    return [
        ((up, down), functions.e_op(a, b))
        for (up, met), a in left.items()
        for (begin, down), b in right.items()
        if begin == met
    ]


def grouped(pairs: list[tuple[tuple[int, int], float]], functions: Functions) -> Table:
    """Combine the weights of equal pairs."""
    table: Table = {}
    for pair, weight in pairs:
        table[pair] = functions.p_op(table[pair], weight) if pair in table else weight
    return table


def counts(pair: tuple[int, int], within: Window | None) -> bool:
    """Return True if a pair of jobs counts (§4.5.1)."""
    up, down = pair
    if within is None:
        return True
    return bool(within.valid[up]) and bool(within.submit_s[down] <= within.cut_s[up])
