"""Tests, in rooms like those of the code."""
