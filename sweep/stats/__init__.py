"""How sure the numbers of a sweep are.

`interval` and `intervals` are of one policy over its seeds; `difference` and `ratio` compare two
policies that met the same (trace, seed) pairs; `holm` corrects for comparing many.
"""

from sweep.stats.inference import (
    ALPHA,
    CONFIDENCE,
    FIRST_SEEDS,
    MIN_PAIRS,
    Paired,
    difference,
    holm,
    interval,
    intervals,
    pairs_needed,
    ratio,
)

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "FIRST_SEEDS",
    "MIN_PAIRS",
    "Paired",
    "difference",
    "holm",
    "interval",
    "intervals",
    "pairs_needed",
    "ratio",
]
