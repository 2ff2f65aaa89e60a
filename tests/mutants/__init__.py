"""Mutation testing of the kernels: the share of small faults that worlds and tests catch."""
