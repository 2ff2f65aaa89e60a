"""Evaluators of Jockey's figures: deadlines, needs, predictions, progress, earlier runs."""
