"""Keys of cells: digests of all that a cell's numbers follow from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sweep.grid.config_tree import canonical


def policy_text(policy: Mapping[str, Any]) -> str:
    """Write what of a policy stands in a key: not where its module lies."""
    return canonical({"name": policy["name"], "params": policy["params"]})


def cell_key(
    policy: str, cluster: str, evaluator: str, capacity: str, seed: str, workload: str, sources: str
) -> bytes:
    """SHA-256 of all that a cell's numbers follow from: its configuration and two digests.

    Parts come as canonical texts and stand in the order of names; `workload` is the name of its
    recipe (`sweep.execution.inputs`), `sources` the digest of what runs the cell.
    """
    content = (
        f'{{"capacity":{capacity},"cluster":{cluster},"evaluator":{evaluator},'
        f'"policy":{policy},"seed":{seed},"sources":"{sources}","workload":"{workload}"}}'
    )
    return hashlib.sha256(content.encode()).digest()
