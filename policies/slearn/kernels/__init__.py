"""Compiled histories and choices of SLearn's estimators."""
