"""Compiled loops of BuildSchedule and of list scheduling of one DAG."""
