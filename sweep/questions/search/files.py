"""Files that searches add to a sweep's folder."""

TARGETS = "targets.parquet"
"""Capacity that meets each target."""
SETTINGS, IMPORTANCE = "settings.parquet", "importance.parquet"
"""Settings that a parameter search tried, and how much each parameter matters."""
WHAT_IF, WHAT_IF_GROUPS = "what_if.parquet", "what_if_groups.parquet"
"""Changes beside today; waits of groups of jobs under each."""
EQUAL = "equal_capacity.parquet"
