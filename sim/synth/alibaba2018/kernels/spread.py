"""How many stages each level of a DAG has: the improved variant of Algorithm 2's level step.

Tian et al., SoCC 2019, §7.2, lines 4 to 8, draw each further stage's level on its own. Here they
come in runs over neighbouring levels, and the last level has a rule of its own.
"""

from __future__ import annotations

from sim.base.arrays import F8, I8
from sim.base.jit import jit
from sim.synth.alibaba2018.kernels.chance import draw, uniform

TREE, NARROW, WIDE = 1, 2, 3
"""Shapes: a gathering tree; another DAG with one stage on its last level; with several."""


@jit
def draw_shapes(n_stages: I8, length: I8, table: I8, state_random: I8, out_shape: I8) -> None:
    """Draw each job's shape, given its stages and the length of its critical path."""
    for j in range(len(length)):
        at = uniform(state_random[j])
        out_shape[j] = draw(table, n_stages[j], length[j], WIDE, at)


@jit
def spread(
    size0: I8, n_stages: I8, shape: I8, ends0: I8, ends: F8, run: F8, state_random: I8, out_size: I8
) -> None:
    """Spread each job's stages over its levels.

    Every level has one; a WIDE job's last level another. The others come in runs, which end on a
    drawn level and go on to the level before with chance `run`.
    """
    for j in range(len(shape)):
        random = state_random[j]
        first = size0[j]
        n_levels = size0[j + 1] - first
        left = n_stages[j] - n_levels
        for i in range(n_levels):
            out_size[first + i] = 1
        if shape[j] == WIDE and left > 0:
            out_size[first + n_levels - 1] = 2
            left -= 1
        while left > 0:
            at = uniform(random)
            i = 0
            while ends[ends0[j] + i] <= at:
                i += 1
            out_size[first + i] += 1
            left -= 1
            while left > 0 and i > 0 and uniform(random) < run[j]:
                i -= 1
                out_size[first + i] += 1
                left -= 1
