"""Compiled loops over the DAGs of a workload."""
