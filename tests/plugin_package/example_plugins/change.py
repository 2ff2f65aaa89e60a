"""A what-if: only the first jobs of a workload."""

from sweep.grid.changes import with_transform


def check(change):
    """Accept any number."""


def apply(parts, change):
    """Keep the first jobs."""
    return with_transform(parts, "example_first", {"jobs": change.value})


def phrase(change):
    """Write ``only the first 2 jobs``."""
    return f"only the first {change.value} jobs"
