"""Compiled loops behind the lower bounds."""
