"""Compiled loops of estimators."""
