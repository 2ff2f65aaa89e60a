"""Compiled loops of environments."""
