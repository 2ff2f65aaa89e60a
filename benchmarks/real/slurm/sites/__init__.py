"""Whole sites on loopback: kinds of nodes, partitions, limits and accounts of unmodified Slurm."""
