"""Evaluators of the study: distances between drawn and real DAGs."""
