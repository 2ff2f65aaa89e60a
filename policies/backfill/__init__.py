"""Backfilling: reservations for rigid jobs, based on estimated run times.

`orders` has EASY and conservative backfilling, `estimates` their run time estimates, `multifactor`
both in the order of Slurm's priorities, which are in `priorities` and `fair_share`.
"""
