"""Compiled loops of environments: observations, and steps of many side by side."""
