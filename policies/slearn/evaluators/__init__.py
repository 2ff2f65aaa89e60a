"""Evaluators of SLearn's figures: sizes, single jobs, variation."""
