"""Durations that are learnt during the run."""
