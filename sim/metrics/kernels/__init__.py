"""Loops over what happened in a run."""
