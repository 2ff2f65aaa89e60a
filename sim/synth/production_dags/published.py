"""What is published of the DAGs of a large enterprise's private stack.

Grandl et al., *Do the hard stuff first* (DAGPS, MSR-TR-2016-19), §2.3, Tables 1 and 2, and §4.4.
"""

from __future__ import annotations

VARIATION = {
    "cpu": 0.76,
    "mem": 1.01,
    "net_read": 1.69,
    "net_write": 7.08,
    "disk_read": 1.39,
    "disk_write": 1.94,
}
"""Coefficient of variation of the demands of tasks (Table 1)."""

HISTOGRAM = {
    "critical path": (0.146, 0.132, 0.152, 0.153, 0.416),
    "unconstrained": (0.156, 0.204, 0.142, 0.164, 0.333),
    "unordered": (0.0, 0.036, 0.118, 0.279, 0.566),
}
"""Part of the DAGs in which that share of all work lies there, by fifths (Table 2)."""

EITHER_ABOVE = 0.54
"""DAGs with more than 80 % of their work on the critical path, or more than 80 % unconstrained."""

DEPTH_P50 = 7.0
TASKS_P50 = 1000.0
IN_DEGREE = (7.0, 48.0)
"""Median and 75th percentile of how many tasks a task waits for."""
OUT_DEGREE = (1.0, 4.0)
"""Median and 75th percentile of how many tasks wait for a task."""
FOUR_PARTS = 0.24
"""DAGs that split into four or more totally ordered parts (§4.4)."""
RECURRING = 0.4
"""Jobs that rerun an earlier program (§2.1, §7.1: up to 40 %)."""
