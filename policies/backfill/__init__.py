"""Backfilling: room for rigid jobs is reserved by how long jobs are taken to run.

`orders` has EASY and conservative backfilling, `estimates` what they take a job to run.
"""
