"""Compiled loops over DAGs."""
