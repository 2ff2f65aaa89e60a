"""Files that searches add to a sweep's folder."""

TARGETS = "targets.parquet"
"""Capacity that meets each target."""
SETTINGS, IMPORTANCE = "settings.parquet", "importance.parquet"
"""Settings that a parameter search tried, and how much each parameter matters."""
WHAT_IF = "what_if.parquet"
EQUAL = "equal_capacity.parquet"
