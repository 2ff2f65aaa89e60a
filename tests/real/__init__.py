"""Runs of real schedulers, and what makes them."""
