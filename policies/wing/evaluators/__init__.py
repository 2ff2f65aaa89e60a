"""Evaluators of Wing's figures: kinds of jobs, predicted readers, worth."""
