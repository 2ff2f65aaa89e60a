"""Workloads: tables, columns, validation, storage and digest, transformations."""
