"""Cells are planned and run."""
