"""Compiled loops of the arbiter."""
