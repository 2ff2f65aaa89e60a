"""Compiled calculation of multifactor priorities and of fair share."""
