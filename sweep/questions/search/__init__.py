"""Searches over capacity (SLO target) and over policy parameters (tuning).

A search is not a grid: its next cells follow from the results of the cells before. They run in
batches, side by side, cached like any others, so that the same command resumes a search.
"""
