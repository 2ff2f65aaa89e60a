"""Compiled loops of BuildSchedule: a DAG's tasks in a resource-time space."""
