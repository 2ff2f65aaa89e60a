"""Statistics of a sweep: confidence intervals, paired tests, the correction for many tests.

`interval` and `intervals` average one policy over its seeds; `difference` and `ratio` compare two
policies on the (trace, seed) pairs that both ran; `holm` corrects for comparing many.
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
