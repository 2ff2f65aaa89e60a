"""Cells as Ray tasks."""
