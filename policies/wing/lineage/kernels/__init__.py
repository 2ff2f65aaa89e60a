"""Compiled loops over logs and dependencies."""
