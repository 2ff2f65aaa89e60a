"""DAGs of given sizes, by Algorithm 2 as printed or improved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, I8
from sim.base.errors import InputError, unknown
from sim.base.ragged import offsets
from sim.dags import Graphs
from sim.synth.alibaba2018.algorithm2 import draw_lengths, link_levels
from sim.synth.alibaba2018.improved import generators, link, spread
from sim.synth.alibaba2018.tables import Tables

Variant = Literal["improved", "paper"]
VARIANTS: tuple[str, ...] = get_args(Variant)


@dataclass(frozen=True, eq=False)
class Structure:
    """J DAGs with G stages in all."""

    graph: Graphs  # the DAGs
    length: I8  # their critical path lengths, in stages
    level: I4  # levels of the stages, from 1


def synthesize_dags(
    tables: Tables, n_stages: NDArray[np.integer], seed: int, variant: str = "improved"
) -> Structure:
    """Synthesize one DAG of each of the given sizes.

    A DAG's critical path length comes from CP(n) in either variant. Then ``"paper"`` draws levels
    and edges as Algorithm 2 of Tian et al. (SoCC 2019, §7.2) is printed: see `algorithm2`. And
    ``"improved"``, with tables of what Algorithm 2 leaves out, draws the sizes of levels, from the
    same table of levels, and edges between them: see `improved`.
    """
    if variant not in VARIANTS:
        raise InputError(unknown("variant", variant, VARIANTS), rule="unknown variant")
    sizes: I8 = np.asarray(n_stages, dtype=np.int64)
    stage0 = offsets(sizes)
    length = draw_lengths(tables, sizes, seed)
    if variant == "paper":
        level, edge0, child = link_levels(tables, stage0, length, seed)
        return Structure(Graphs(stage0, edge0, child), length, level)
    if tables.links is None:
        raise InputError(
            "the tables hold no edge step (links), which variant=improved draws from; fit them "
            "from a workload, or take variant=paper",
            rule="no links",
        )
    random = generators(seed, len(sizes))
    size, shape = spread(tables, tables.links, sizes, length, random)
    edge0, child = link(tables.links, stage0, length, size, shape, random)
    rank = np.arange(len(size)) - np.repeat(offsets(length)[:-1], length)
    level = np.repeat(rank.astype(np.int32) + np.int32(1), size)
    return Structure(Graphs(stage0, edge0, child), length, level)
