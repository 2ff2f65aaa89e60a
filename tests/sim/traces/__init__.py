"""Tests of the readers of real traces."""
