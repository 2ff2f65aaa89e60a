"""Checks of policies: invariants of their runs, repeatability, and what they do not know."""
