"""Backfilling: reservations for rigid jobs, based on estimated run times.

`orders` has EASY and conservative backfilling, `estimates` their run time estimates.
"""
