"""How sure the numbers of a sweep are.

`interval` and `intervals` are of one policy over its seeds; `difference` and `ratio` compare two
policies that met the same (trace, seed) pairs; `holm` corrects for comparing many.
"""

from sweep.stats.inference import (
    CONFIDENCE,
    MIN_PAIRS,
    Paired,
    difference,
    holm,
    interval,
    intervals,
    ratio,
)

__all__ = [
    "CONFIDENCE",
    "MIN_PAIRS",
    "Paired",
    "difference",
    "holm",
    "interval",
    "intervals",
    "ratio",
]
