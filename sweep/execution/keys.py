"""Keys of cells: digests of everything that determines a cell's numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sweep.grid.cluster_checks import without_price
from sweep.grid.config_tree import canonical


def policy_text(policy: Mapping[str, Any]) -> str:
    """Write the part of a policy that belongs to a key: without the path of its module."""
    return canonical({"name": policy["name"], "params": policy["params"]})


def cluster_text(cluster: Mapping[str, Any]) -> str:
    """Write the part of a cluster that belongs to a key: without prices."""
    return canonical(without_price(cluster))


def cell_key(
    policy: str, cluster: str, evaluator: str, capacity: str, seed: str, workload: str, sources: str
) -> bytes:
    """SHA-256 of everything that determines a cell's numbers: configuration and two digests.

    The parts are canonical texts, in the order of their names. `workload` is the name of its
    recipe (`sweep.execution.inputs`), `sources` the digest of the code that runs the cell
    (`sweep.store.sources.cell_digest`). `sweep.execution.plan.prepare` calls it.
    """
    content = (
        f'{{"capacity":{capacity},"cluster":{cluster},"evaluator":{evaluator},'
        f'"policy":{policy},"seed":{seed},"sources":"{sources}","workload":"{workload}"}}'
    )
    return hashlib.sha256(content.encode()).digest()
