"""Weights of errors in the variance of priors (`policies.estimates.priors`)."""

from __future__ import annotations

SHORTEST_S = 1e-3
"""Lower limit of durations, so that logarithms exist."""

RECENT = 100
"""Effective number of predictions in the errors of a kind of group: the T of SLearn's Fig. 4."""

OWN_RECENT = 10
"""Effective number of predictions in the errors of one group."""

KIND_WEIGHT = 4.0
"""Weight of the errors of a group's kind, in errors of the group itself."""
